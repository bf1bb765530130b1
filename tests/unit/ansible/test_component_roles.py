# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles of the components side by side: what one of them gets is none of the others' business, and uninstall removes all."""

from __future__ import annotations

import pytest
import yaml

from support.scripted import Scripted

# In the order of install, with what is in no other component's definitions.
PARTS = {
    "volcano": "volcano-scheduler",
    "clusterd": "clusterd",
    "noded": "noded",
    "ascend_operator": "ascend-operator-manager",
    "device_plugin": "ascend-device-plugin-daemonset",
    "exporter": "npu-exporter",
    "node_agent": "npu-node-agent",
}
WORKLOADS = ("DaemonSet", "Deployment")
VARIABLES = {
    "npu_node_agent_image": "r.example/agent:1",
    "npu_volcano_enabled": True,
    "npu_clusterd_enabled": True,
    "npu_noded_enabled": True,
    "npu_ascend_operator_enabled": True,
    "npu_component_log_levels": {"exporter": -1, "noded": 2},
}
UNCHANGED = {"changed": False, "changes": []}
STACK = {
    part: {"act": True, "crds": [], "leftovers": [{"namespace": "mindx-dl", "name": "of-" + part}]} for part in list(PARTS)[:4]
}
WITHDRAWN = {
    "last": True, "namespace": "npu-operator", "stack": STACK, "admission_policies": True, "service_monitors": True, "left": {},
    "left_in_cluster": [],
}  # fmt: skip


def applied(scripted):
    """(state, objects, the arguments) of each call of npu_objects."""
    for _host, arguments in scripted.calls("npu_objects"):
        objects = [item for item in yaml.safe_load_all(arguments["definitions"]) if item]
        yield arguments["state"], objects, arguments


def workloads(objects):
    return [item["metadata"]["name"] for item in objects if item["kind"] in WORKLOADS]


def command_of(objects, name):
    """What the workload runs, as one text."""
    (found,) = (item for item in objects if item["kind"] in WORKLOADS and item["metadata"]["name"] == name)
    return str(found["spec"]["template"]["spec"]["containers"])


PLAYS = {
    # As role parameters, which Ansible refuses if the role does not document them.
    "roles": {"roles": [{"role": "npuops.ascend.npu_" + part, "npu_image_pull_policy": "Always"} for part in PARTS]},
    "include_role": {
        "tasks": [{
            "name": "Deploy",
            "ansible.builtin.include_role": {"name": "npuops.ascend.npu_{{ item }}"},
            "loop": list(PARTS),
            "vars": {"npu_image_pull_policy": "Always"},
        }],
    },
}  # fmt: skip


@pytest.mark.parametrize(("way", "private"), [("roles", "true"), ("include_role", "false")])
def test_each_gets_what_is_its_own(tmp_path, way, private):
    scripted = Scripted(tmp_path, {"npu_objects": {"*": [UNCHANGED]}})
    play = {"name": "Deploy", "hosts": "npu_nodes", "gather_facts": False, "vars": VARIABLES, **PLAYS[way]}
    done = scripted.run([play], {"a": {"ansible_connection": "local"}}, environ={"ANSIBLE_PRIVATE_ROLE_VARS": private})
    assert done.returncode == 0, done.stdout
    calls = list(applied(scripted))
    assert [state for state, _objects, _arguments in calls] == ["present"] * len(PARTS)
    for (part, name), (_state, objects, arguments) in zip(PARTS.items(), calls):
        assert name in workloads(objects) and not set(workloads(objects)) & (set(PARTS.values()) - {name}), part
        assert "Always" in arguments["definitions"] and "IfNotPresent" not in arguments["definitions"], part
        level = {"exporter": -1, "noded": 2}.get(part, 0)
        assert part in ("volcano", "node_agent") or "-logLevel=%d" % level in command_of(objects, name), part
        assert arguments["rollout"]["timeout"] == 300, part
        if "DaemonSet" in [item["kind"] for item in objects]:
            assert arguments["rollout"]["max_unavailable"] == "1", part


def test_uninstall_removes_all_whatever_the_variables_say(tmp_path):
    """In the reverse order of install; what they share is not looked at."""
    gone = {"changed": True, "changes": []}
    answers = {
        "npu_facts": {"*": [{"changed": False}]},
        "npu_withdraw": {"*": [WITHDRAWN]},
        "npu_objects": {"*": [gone]},
        "npu_driver_condition": {"*": [{"changed": True}]},
    }
    scripted = Scripted(tmp_path, answers)
    enabled = [
        "-e",
        '{"npu_exporter_enabled": true, "npu_tolerations": null, "npu_rollout_timeout": "", "npu_node_agent_enabled": true}',
    ]
    done = scripted.run("npuops.ascend.uninstall", {"a": {"ansible_connection": "local"}}, *enabled)
    assert done.returncode == 0, done.stdout
    _lease, *calls = applied(scripted)
    assert {state for state, _objects, _arguments in calls} == {"absent"}
    order = ["ascend_operator", "noded", "clusterd", "volcano", "device_plugin", "exporter", "node_agent"]
    assert [set(workloads(objects)) & set(PARTS.values()) for _state, objects, _arguments in calls] == [
        {PARTS[part]} for part in order
    ]
    left = {
        part: [item["metadata"]["name"] for item in calls[order.index(part)][1] if item["kind"] == "ConfigMap"] for part in order
    }
    assert all("of-" + part in left[part] for part in ("noded", "clusterd", "volcano")), left
    kinds = {part: {item["kind"] for item in calls[order.index(part)][1]} for part in order}
    assert "CustomResourceDefinition" not in kinds["volcano"], "it names none of them"
    for part in ("noded", "device_plugin", "node_agent"):
        assert "ValidatingAdmissionPolicy" in kinds[part], part
    assert not any("Namespace" in found for found in kinds.values())
    assert len(scripted.calls("npu_driver_condition")) == 1
