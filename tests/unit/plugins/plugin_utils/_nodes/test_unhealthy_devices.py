# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import unhealthy_devices

from support.hostile import templates
from support.kube.stub import node

CHIPS = "huawei.com/Ascend910"


def machine(name="a", offers=7, has=8):
    found = node(name, allocatable={CHIPS: str(offers)})
    found["status"]["capacity"] = {CHIPS: str(has), "cpu": "64"}
    return found


def pod(name, devices, resource=CHIPS, phase="Running", where="containerStatuses"):
    """``devices``: {ID: health}."""
    resources = [{"resourceID": device, "health": health} for device, health in devices.items()]
    statuses = [{"name": "main", "allocatedResourcesStatus": [{"name": resource, "resources": resources}]}]
    return {
        "metadata": {"namespace": "train", "name": name},
        "spec": {"nodeName": "a"},
        "status": {"phase": phase, where: statuses},
    }


class Cluster:
    def __init__(self, pods, refused=False):
        self.pods, self.refused, self.asked = pods, refused, []

    def list(self, path, field_selector):
        self.asked.append((path, field_selector))
        if self.refused:
            raise kube_client.Forbidden("forbidden", missing={"verb": "list"})
        return self.pods


def test_only_pods_on_unhealthy_devices_are_named():
    pods = [pod("b", {"Ascend910-3": "Unhealthy", "Ascend910-4": "Healthy"}), pod("a", {"Ascend910-1": "Healthy"}),
            pod("init", {"Ascend910-5": "Unhealthy"}, where="initContainerStatuses")]  # fmt: skip
    cluster = Cluster(pods)
    assert unhealthy_devices.read(cluster, {"a": machine()}) == {"a": ["train/b (Ascend910-3)", "train/init (Ascend910-5)"]}
    assert cluster.asked == [("/api/v1/pods", "spec.nodeName=a")]


@pytest.mark.parametrize("changes", [{"phase": "Succeeded"}, {"resource": "nvidia.com/gpu"}])
def test_others_are_not(changes):
    assert unhealthy_devices.told_by([pod("b", {"Ascend910-3": "Unhealthy"}, **changes)]) == []


def test_a_node_that_offers_all_its_devices_is_not_asked_about():
    cluster = Cluster([])
    assert unhealthy_devices.read(cluster, {"a": machine(offers=8), "cpu": node("cpu")}) == {}
    assert cluster.asked == []


def test_without_the_right_to_list_pods_nobody_is_named():
    cluster = Cluster([], refused=True)
    assert unhealthy_devices.read(cluster, {"a": machine(), "b": machine("b")}) == {}
    assert len(cluster.asked) == 1


def test_many_are_counted():
    told = unhealthy_devices.told_by([pod("p%02d" % number, {"Ascend910-3": "Unhealthy"}) for number in range(20)])
    assert len(told) == 17 and told[-1] == "and 4 more"


@pytest.mark.parametrize("value", [None, 7, "text", [7], [{"resources": 7}], [{"name": CHIPS, "resources": [None, "x"]}], {"a": 1}])
def test_whatever_a_kubelet_says(value):
    item = pod("b", {})
    item["status"]["containerStatuses"][0]["allocatedResourcesStatus"] = value
    assert unhealthy_devices.told_by([item]) == []


def test_a_name_is_short_and_one_line():
    (told,) = unhealthy_devices.told_by([pod("b", {templates("canary")[0] + "x" * 1000: "Unhealthy"})])
    assert "\n" not in told and len(told) < 200
