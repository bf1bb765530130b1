# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the role of the node agent removes the taints that agents have kept before."""

from __future__ import annotations

import re

import pytest

from support.scripted import Scripted

UNCHANGED = {"changed": False, "changes": [], "rollouts": []}
ANSWERS = {
    "npu_objects": {"*": [UNCHANGED]},
    "npu_device_taints": {"*": [{"changed": True, "done": ["x"]}]},
    "npu_driver_condition": {"*": [{"changed": False, "done": []}]},
}
KEPT = {"npu_node_agent_image": "registry.example.com/agent:1", "npu_node_agent_device_taints": True}


@pytest.mark.parametrize(
    "variables, removed, changed",
    [
        ({}, False, 0),
        ({"npu_node_agent_device_taints": "false"}, True, 1),
        ({"npu_node_agent_admission_policy": False}, True, 1),
        ({"npu_node_agent_enabled": False}, True, 1),
        ({"__npu_component_removed": True}, True, 1),
        # A plan only compares.
        ({"npu_node_agent_device_taints": "false", "__npu_components_compared": True}, False, 0),
    ],
)
def test_the_role_removes_what_no_agent_keeps(tmp_path, variables, removed, changed):
    scripted = Scripted(tmp_path, ANSWERS)
    play = {"hosts": "npu_nodes", "gather_facts": False, "roles": ["npuops.ascend.npu_node_agent"]}
    done = scripted.run([play], {"a": {**KEPT, **variables}, "b": KEPT})
    assert done.returncode == 0, done.stdout
    calls = scripted.calls("npu_device_taints")
    assert calls == [("a", {"state": "absent"})] * removed, done.stdout
    assert re.search(r"^a +: ok=\d+ +changed=(\d+) ", done.stdout, re.MULTILINE)[1] == str(changed), done.stdout
    # Only after the objects: without the permission, agents that still run make no new ones.
    assert 0 < done.stdout.find("Deploy or remove the node agent") < done.stdout.find("Remove the taints")
