# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pytest
from ansible_collections.npuops.ascend.plugins.action.npu_device_taints import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import taints_removal

from support.kube.device_taints import RULES, rule

MAY_NOT = (
    'devicetaintrules.resource.k8s.io is forbidden: User "u" cannot %s resource "devicetaintrules" in API group "resource.k8s.io"'
)


def names(api):
    return sorted(api.objects[RULES])


def test_all_that_agents_keep_go_and_no_others(api, cluster):
    api.put(RULES, rule("a", "npu-0"), rule("a", "npu-1"), rule("b", "npu-0"))
    api.put(RULES, rule("a", "npu-2", effect="NoExecute"), rule("b", "npu-3", labels={}), rule("c", "npu-4"))
    told = "delete the DeviceTaintRules a.npu-0.npuops, a.npu-1.npuops, b.npu-0.npuops and 1 more"
    assert taints_removal.remove(cluster, check_mode=True) == told
    assert len(names(api)) == 6, "check mode"
    assert taints_removal.remove(cluster) == told
    assert names(api) == ["a.npu-2.npuops", "b.npu-3.npuops"]
    assert taints_removal.remove(cluster) is None


def test_those_of_some_nodes(api, cluster):
    api.put(RULES, rule("a", "npu-0"), rule("b", "npu-0"), rule("c", "npu-0"), rule(None, "npu-4"))
    assert taints_removal.remove(cluster, ["b"]) == "delete the DeviceTaintRule b.npu-0.npuops"
    assert names(api) == ["None.npu-4.npuops", "a.npu-0.npuops", "c.npu-0.npuops"]
    assert taints_removal.remove(cluster, []) is None


def test_a_cluster_without_the_api_has_none(cluster):
    assert taints_removal.remove(cluster) is None


def test_who_may_not_see_them_has_made_none(api, cluster):
    api.put(RULES, rule("a", "npu-0"))
    api.faults["GET", RULES] = (403, MAY_NOT % "list")
    assert taints_removal.remove(cluster) is None


def test_one_that_may_not_be_deleted_is_a_failure(api, cluster):
    api.put(RULES, rule("a", "npu-0"))
    api.faults["DELETE", RULES + "/a.npu-0.npuops"] = (403, MAY_NOT % "delete")
    with pytest.raises(NpuError, match="delete"):
        taints_removal.remove(cluster)


def test_one_that_goes_meanwhile(api, cluster):
    api.put(RULES, rule("a", "npu-0"), rule("a", "npu-1"))
    api.faults["DELETE", RULES + "/a.npu-0.npuops"] = (404, "not found")
    assert taints_removal.remove(cluster)
    assert names(api) == ["a.npu-0.npuops"]


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_module(api, check_mode):
    api.put(RULES, rule("a", "npu-0"))
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=True)
    params = {"host": api.address, "api_key": "token", "state": "absent"}
    result = action.act(params)
    assert result["changed"] and result["done"] == [result["msg"]] == result["diff"]["before"]["to_remove"]
    assert bool(names(api)) is check_mode
    api.objects[RULES].clear()
    result = action.act(params)
    assert not result["changed"] and result["done"] == [] and result["diff"]["before"] == {}
