# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import targets as preflight_targets

from support.fleet.preflight import cluster_nodes, facts, host, judge

VALIDATED = {"version": "25.5.0", "firmware_version": "7.8.0.5.216"}


def targets(verdicts, done, validated=None, **kwargs):
    results = {verdict.name: verdict.result() for verdict in verdicts}
    return preflight_targets.targets(results, done, {"a": validated or VALIDATED}, "npu-operator", **kwargs)


def fleet():
    empty = host("cpu", fact={"chip_count": 0, "family": None})
    return [host("a"), host("b"), host("c", fact=facts("d500", "boot-c")), empty]


def test_targets():
    assert targets(judge(fleet()), ["a", "c", "cpu"]) == {
        "labels": [
            {
                "name": "a",
                "boot_id": "boot-a",
                "gate": 0,
                "labels": {
                    "openfuyao.com/npu.present": "",
                    "npuops.ascend/chip": "910B",
                    "npuops.ascend/driver-version": "25.5.0",
                    "npuops.ascend/firmware-version": "7.8.0.5.216",
                    "npuops.ascend/components": "enabled",
                    "accelerator": "huawei-Ascend910",
                    "workerselector": "dls-worker-node",
                    "node-role.kubernetes.io/worker": "worker",
                    "host-arch": "huawei-arm",
                },
            },
            {
                "name": "c",
                "boot_id": "boot-c",
                "gate": 0,
                "labels": {
                    "openfuyao.com/npu.present": "",
                    "npuops.ascend/chip": "310P",
                    "npuops.ascend/driver-version": "25.5.0",
                    "npuops.ascend/components": "enabled",
                    "accelerator": "huawei-Ascend310P",
                    "workerselector": "dls-worker-node",
                    "node-role.kubernetes.io/worker": "worker",
                    "host-arch": "huawei-arm",
                },
            },
        ],
        # b failed on the way; its family is deployed all the same.
        "accelerators": ["huawei-Ascend310P", "huawei-Ascend910"],
        "driver_path": "/var/lib/Ascend/driver",
        "kubelet_dir": "/var/lib/kubelet",
        "containerd_dir": "/run/containerd",
        "daemonsets": [
            {"namespace": "npu-operator", "name": "ascend-device-plugin310p-daemonset", "nodes": ["c"]},
            {"namespace": "npu-operator", "name": "ascend-device-plugin-daemonset", "nodes": ["a"]},
            {"namespace": "npu-operator", "name": "npu-exporter", "nodes": ["a", "c"]},
            {"namespace": "npu-operator", "name": "npu-node-agent", "nodes": ["a", "c"]},
        ],
        "nodes": [
            {"name": "a", "resource": "huawei.com/Ascend910", "count": 8},
            {"name": "c", "resource": "huawei.com/Ascend310P", "count": 4},
        ],
        "adopt": {
            "a": ["ascend-device-plugin-daemonset", "npu-exporter", "npu-node-agent"],
            "c": ["ascend-device-plugin310p-daemonset", "npu-exporter", "npu-node-agent"],
        },
    }


@pytest.mark.parametrize(
    "name, kubelet_dir, containerd_dir",
    [
        ("k3s", "/var/lib/kubelet", "/run/k3s/containerd"),
        ("k0s", "/var/lib/k0s/kubelet", "/run/k0s"),
        ("microk8s", "/var/snap/microk8s/common/var/lib/kubelet", "/var/snap/microk8s/common/run"),
        ("none", "/var/lib/kubelet", "/run/containerd"),
    ],
)
def test_directories_of_the_distribution(name, kubelet_dir, containerd_dir):
    """By its name alone: a host may say any path, and the DaemonSets mount it on all hosts."""
    runtime = {"name": name, "kubelet_dir": "/etc", "address": "/root/containerd.sock"}
    result = targets(judge([host("a", fact=facts(boot_id="boot-a", runtime=runtime))]), ["a"])
    assert (result["kubelet_dir"], result["containerd_dir"]) == (kubelet_dir, containerd_dir)


def test_paused_nodes_are_labelled_but_not_waited_for():
    nodes = cluster_nodes("b", "c", "cpu")
    nodes.update(cluster_nodes("a", labels={"npuops.ascend/components": "paused"}))
    result = targets(judge(fleet(), nodes), ["a", "b"])
    assert [entry["name"] for entry in result["labels"]] == ["a", "b"]
    assert [entry["name"] for entry in result["nodes"]] == ["b"]


def test_components_that_are_off_are_not_waited_for():
    result = targets(judge(fleet()), ["a"], device_plugin=False, exporter=False, node_agent=False)
    assert (result["daemonsets"], result["nodes"]) == ([], [])


def test_virtual_npus_are_waited_for_beside_whole_chips():
    vnpus = [{"chip": 0, "id": 100, "template": "vir10_3c_32g"}, {"chip": 0, "id": 101, "template": "vir10_3c_32g"}]
    verdicts = judge([host("a", fact=facts("d802", "boot-a", vnpus=vnpus))])
    chips = verdicts[0].facts["chip_count"]
    assert targets(verdicts, ["a"])["nodes"] == [
        {"name": "a", "resource": "huawei.com/Ascend910", "count": chips - 1},
        {"name": "a", "resource": "huawei.com/Ascend910-10c.3cpu.32g", "count": 2},
    ]


def test_chips_that_are_not_ok_are_not_waited_for():
    ill = [{"npu": number, "chip": 0, "bus_id": "0000:0%d:00.0" % number, "health": "Critical"} for number in (1, 2)]
    assert targets(judge([host("a")]), ["a"], dict(VALIDATED, chip_health=ill))["nodes"] == [
        {"name": "a", "resource": "huawei.com/Ascend910", "count": 8, "least": 6}
    ]


@pytest.mark.parametrize("told", ["Critical", ["Critical"], [{"health": "Critical"}], [{"npu": 1}] * 5000, {"a": 1}])
def test_a_host_cannot_break_the_run_with_what_it_says_of_its_chips(told):
    assert targets(judge([host("a")]), ["a"], dict(VALIDATED, chip_health=told))["nodes"] == [
        {"name": "a", "resource": "huawei.com/Ascend910", "count": 8}
    ]


@pytest.mark.parametrize("firmware", [None, "7.8.0.5.216, 7.8.0.6.201", "x" * 64, 7])
def test_what_the_chips_run_is_no_longer_known(firmware):
    results = {verdict.name: verdict.result() for verdict in judge([host("a")])}
    validated = {"a": {"version": "25.5.0", "firmware_version": firmware}}
    (node,) = preflight_targets.targets(results, ["a"], validated, "npu-operator")["labels"]
    assert node["labels"]["npuops.ascend/firmware-version"] is None
