# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import isolated_chips

from support import hostile
from support.kube.stub import node

CHIPS = "huawei.com/Ascend910"
PLUGINS = "/api/v1/namespaces/kube-system/configmaps"
CLUSTERDS = "/api/v1/namespaces/cluster-system/configmaps"
# As MindCluster 26.1.0 documents them.
REASONS = {
    "Ascend910-3": [
        {
            "fault_code": "80E18005",
            "fault_level": "ManuallySeparateNPU",
            "upgrade_type": "FaultFrequency",
            "upgrade_time": 1770811685650,
        }
    ],
    "Ascend910-10": [{"fault_code": "AutofillFaultCode", "fault_level": "ManuallySeparateNPU", "upgrade_type": "FaultAutofill"}],
}
MANUAL = {
    "Total": ["Ascend910-2"],
    "Detail": {"Ascend910-2": [{"FaultCode": "8C084E00", "FaultLevel": "ManuallySeparateNPU", "LastSeparateTime": 1770811685650}]},
}
RESET = {"ThirdPartyResetDevs": [{"CardId": 2, "DeviceId": 0, "PhyID": 4, "LogicID": 4}], "ManualResetDevs": [{"PhyID": 1}]}


def lacking(name="a", **kwargs):
    made = node(name, allocatable={CHIPS: "6"}, **kwargs)
    made["status"]["capacity"] = {CHIPS: "8"}
    return made


def read(cluster, *nodes):
    return isolated_chips.read(cluster, {one["metadata"]["name"]: one for one in nodes})


def put(api, collection, name, **data):
    api.put(collection, {"metadata": {"name": name}, "data": data})


def test_who_isolates_which_chips_and_how_they_are_released(api, cluster):
    put(
        api,
        PLUGINS,
        "mindx-dl-deviceinfo-a",
        ManuallySeparateNPU="Ascend910-10,Ascend910-3",
        UpgradeFaultReason=json.dumps(REASONS),
    )
    put(api, CLUSTERDS, "clusterd-manual-info-cm", a=json.dumps(MANUAL), b=json.dumps(MANUAL))
    found = read(cluster, lacking(annotations={"ResetInfo": json.dumps(RESET)}))
    assert found == {
        "a": [
            "the device plugin isolates Ascend910-3 (80E18005), Ascend910-10 until it is released:"
            " kubectl -n kube-system edit configmap mindx-dl-deviceinfo-a",
            "clusterd isolates Ascend910-2 (8C084E00) until it is released:"
            " kubectl -n cluster-system edit configmap clusterd-manual-info-cm",
            "the device plugin could not reset the chips with the physical IDs 1, 4: reset them from outside, or reboot the host",
        ]
    }


def test_a_fleet_in_order_costs_nothing(api, cluster):
    whole = node("a", allocatable={CHIPS: "8"}, annotations={"ResetInfo": json.dumps(RESET)})
    whole["status"]["capacity"] = {CHIPS: "8"}
    assert read(cluster, whole) == {} and not [path for _method, path in api.requests if "configmaps" in path]


def test_nothing_is_isolated(api, cluster):
    put(api, PLUGINS, "mindx-dl-deviceinfo-a", ManuallySeparateNPU="", UpgradeFaultReason="{}")
    assert read(cluster, lacking(annotations={"ResetInfo": '{"ThirdPartyResetDevs": null, "ManualResetDevs": null}'})) == {}


def test_an_account_that_may_not_read_them(api, cluster):
    for path in (PLUGINS + "/mindx-dl-deviceinfo-a", CLUSTERDS + "/clusterd-manual-info-cm"):
        text = 'configmaps "%s" is forbidden: User "u" cannot get resource "configmaps" in API group "" in the namespace "%s"'
        api.faults["GET", path] = (403, text % (path.rpartition("/")[2], path.split("/")[4]))
    assert read(cluster, lacking()) == {}


@pytest.mark.parametrize(
    "text", [*hostile.templates("/tmp/x"), "[" * 10**5, "7", '{"Total": 7, "Detail": []}', "\x1b[2J", "x" * 10**6]
)
def test_whoever_may_write_there_decides_nothing(api, cluster, text):
    put(api, PLUGINS, "mindx-dl-deviceinfo-a", ManuallySeparateNPU=text, UpgradeFaultReason=text)
    put(api, CLUSTERDS, "clusterd-manual-info-cm", a=text)
    assert read(cluster, lacking(annotations={"ResetInfo": text})) == {}


def test_what_is_read_of_a_report_is_bounded(api, cluster):
    names = ",".join("Ascend910-%d" % number for number in range(5000))
    put(
        api,
        PLUGINS,
        "mindx-dl-deviceinfo-a",
        ManuallySeparateNPU=names,
        UpgradeFaultReason=json.dumps({"Ascend910-1": [REASONS] * 9}),
    )
    (told,) = read(cluster, lacking())["a"]
    assert told.count("Ascend910-") == 64
