# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pytest
from ansible_collections.npuops.ascend.plugins.action.npu_driver_condition import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import conditions_removal

from support.kube.stub import node

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/npu-operator/pods"
TYPE, CHIPS, NETWORK = ("npuops.ascend/" + name for name in ("DriverReady", "ChipsHealthy", "NetworkReady"))


class Clock:
    """Counts instead of sleeping; ``then`` is called at the first sleep."""

    def __init__(self, then=lambda: None):
        self.seconds, self._then = 0.0, then

    def monotonic(self):
        return self.seconds

    def sleep(self, seconds):
        self.seconds += seconds
        self._then()


def with_condition(name):
    made = node(name)
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}, {"type": TYPE, "status": "True"}]
    return made


def agent(name, on, owner="npu-node-agent"):
    owners = [{"kind": "DaemonSet", "name": owner, "controller": True}]
    return {"metadata": {"name": name, "namespace": "npu-operator", "ownerReferences": owners}, "spec": {"nodeName": on}}


def conditions(api, name):
    return [one["type"] for one in api.objects[NODES][name]["status"]["conditions"]]


def test_all_nodes_lose_it_and_nothing_else(api, cluster):
    api.put(NODES, with_condition("a"), with_condition("b"), node("c"))
    api.put(PODS, agent("other", "a", "npu-exporter"))
    done = conditions_removal.remove_all(cluster, "npu-operator", 10)
    assert done == ["remove the condition %s from node %s" % (TYPE, name) for name in "ab"]
    assert conditions(api, "a") == conditions(api, "b") == ["Ready"]
    assert conditions_removal.remove_all(cluster, "npu-operator", 10) == []


def test_all_conditions_of_a_node_are_removed_at_once(api, cluster):
    made = with_condition("a")
    made["status"]["conditions"] += [{"type": kind, "status": "Unknown"} for kind in (CHIPS, NETWORK)]
    api.put(NODES, made, chips := node("b"))
    chips["status"]["conditions"] = [{"type": CHIPS, "status": "True"}, {"type": "npuops.ascend/Other", "status": "True"}]
    assert conditions_removal.remove_all(cluster, "npu-operator", 10) == [
        "remove the conditions %s, %s and %s from node a" % (TYPE, CHIPS, NETWORK),
        "remove the condition %s from node b" % CHIPS,
    ]
    assert (conditions(api, "a"), conditions(api, "b")) == (["Ready"], ["npuops.ascend/Other"])


def test_each_node_waits_for_its_agent(api, cluster):
    api.put(NODES, with_condition("a"), with_condition("b"))
    api.put(PODS, agent("slow", "a"))

    def ends():
        assert (conditions(api, "a"), conditions(api, "b")) == (["Ready", TYPE], ["Ready"])
        del api.objects[PODS]["slow"]

    conditions_removal.remove_all(cluster, "npu-operator", 10, clock=Clock(ends))
    assert conditions(api, "a") == ["Ready"]


def test_an_agent_that_does_not_end_is_named_and_keeps_no_other_node(api, cluster):
    api.put(NODES, with_condition("a"), with_condition("b"))
    api.put(PODS, agent("slow", "a"))
    with pytest.raises(NpuError, match="node a: the pod slow did not end within 5 s"):
        conditions_removal.remove_all(cluster, "npu-operator", 5, clock=Clock())
    assert (conditions(api, "a"), conditions(api, "b")) == (["Ready", TYPE], ["Ready"])


def test_a_node_that_is_down_is_not_waited_for(api, cluster):
    """Its agent's pod stays there as one that ends."""
    dead = with_condition("a")
    dead["status"]["conditions"][0]["status"] = "Unknown"
    api.put(NODES, dead, with_condition("b"))
    api.put(PODS, agent("stays", "a"))
    clock = Clock()
    assert len(conditions_removal.remove_all(cluster, "npu-operator", 5, clock=clock)) == 2
    assert (conditions(api, "a"), conditions(api, "b"), clock.seconds) == (["Ready"], ["Ready"], 0)


def test_a_node_that_goes_down_meanwhile_is_no_failure(api, cluster):
    def goes_down():
        api.objects[NODES]["a"]["status"]["conditions"][0]["status"] = "Unknown"

    api.put(NODES, with_condition("a"))
    api.put(PODS, agent("stays", "a"))
    conditions_removal.remove_all(cluster, "npu-operator", 5, clock=Clock(goes_down))
    assert conditions(api, "a") == ["Ready"]


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_module(api, check_mode):
    api.put(NODES, with_condition("a"))
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=True)
    params = {"host": api.address, "api_key": "token", "state": "absent", "namespace": "npu-operator", "timeout": 5}
    result = action.act(params)
    assert result["changed"] and result["diff"]["before"] == {"to_remove": result["done"]}
    assert (TYPE in conditions(api, "a")) is check_mode
