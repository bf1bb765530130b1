# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a maintenance do with what comes of it, for one node after the other."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace

from support.fleet.reports import planned
from support.scripted import Scripted


def play(scripted, serial, verdicts=None, names="abc"):
    """The play of the rollout that takes the nodes through their maintenance."""
    hosts = {name: {"node": name, "chips": 8, "to": {}, "verdict": (verdicts or {}).get(name, "ready")} for name in names}
    path = scripted.root / "ansible_collections" / "npuops" / "ascend" / "roles" / "npu_upgrade" / "tasks" / "main.yml"
    return {
        "hosts": "npu_nodes",
        "gather_facts": False,
        "serial": 1 if serial else "100%",
        "strategy": "linear" if serial else "host_pinned",
        "vars": {"__npu_plan": {"hosts": hosts, "in_flight": []}, "__npu_run": "r1", "__npu_reason": "upgrade"},
        "tasks": [{"ansible.builtin.import_tasks": str(path)}],
    }


NO_SLOT = {"failed": True, "outcome": "failed", "no_slot": True, "msg": "There is no slot: z was left by a run that died."}


@pytest.mark.parametrize("serial", [True, False])
def test_slots_that_a_dead_run_has_are_found_out_once(tmp_path, serial):
    scripted = Scripted(tmp_path, {"npu_maintenance": {"*": [NO_SLOT]}})
    done = scripted.run([play(scripted, serial)], dict.fromkeys("abc", {}), "--forks=1")
    assert done.returncode == 0, done.stdout
    assert [host for host, _arguments in scripted.calls("npu_maintenance")] == ["a"]


def test_what_is_in_maintenance_already_needs_no_slot(tmp_path):
    answers = {"a": [NO_SLOT], "*": [{"outcome": "done"}]}
    scripted = Scripted(tmp_path, {"npu_maintenance": answers})
    scripted.run([play(scripted, True, {"b": "in-flight"})], dict.fromkeys("abc", {}))
    assert [host for host, _arguments in scripted.calls("npu_maintenance")] == ["a", "b"]


UNDER_WAY = {"outcome": "under-way", "intended": False}
# What a plan and a recovery say of one node that is due.
PLAN = {
    "components": {"order": None},
    "hosts": {"a": dict(planned("a"), node="a", chips=8, to={}, other_kernels=[])},
    "order": ["a"],
    "pace": pace(1),
    "due_versions": {},
    **dict.fromkeys(("deferred", "due_nodes", "settled_nodes", "park", "look_at", "in_flight", "table"), []),
    **dict.fromkeys(("storm", "refusal", "problem", "halted", "estimate_seconds", "cluster_reasons"), None),
    "counts": {},
    "green": True,
    "summary": "",
}
STEPS = ["hook", "reboot", "confirm", "done"]
# The calls that come before the tasks of the user's.
BEFORE_HOOK = {"npu_upgrade_hook_before": 1, "npu_upgrade_with_os": 2, "npu_upgrade_hook_after": 3}


def test_a_node_without_hooks_takes_one_call(tmp_path):
    scripted = Scripted(tmp_path, {"npu_maintenance": {"*": [{"outcome": "done"}]}})
    done = scripted.run([play(scripted, True)], {"a": {}})
    assert [arguments["until"] for _host, arguments in scripted.calls("npu_maintenance")] == ["hook"], done.stdout
    # What is skipped are tasks of the user's, of which there are none, and what follows a failure.
    assert done.returncode == 0 and "ok=2 " in done.stdout and "skipped=2 " in done.stdout, done.stdout


def test_a_node_with_hooks_takes_a_call_for_each_part(tmp_path):
    scripted = Scripted(tmp_path, {"npu_maintenance": {"*": [UNDER_WAY] * 3 + [{"outcome": "done"}]}})
    done = scripted.run([play(scripted, True)], {"a": {}})
    assert [arguments["until"] for _host, arguments in scripted.calls("npu_maintenance")] == STEPS, done.stdout
    assert done.returncode == 0, done.stdout


def test_the_steps_after_the_last_one_are_skipped(tmp_path):
    """What ended it is told by the step that ended it, and reaches the retry at the end of the run."""
    answers = {str(number): [UNDER_WAY] * number + [{"outcome": "deferred", "reason": "budget %d" % number}] for number in range(3)}
    scripted = Scripted(tmp_path, {"npu_maintenance": {**answers, "b": [{"outcome": "done"}]}})
    retry = {
        "hosts": "{{ groups['__npu_deferred'] | default([]) }}",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.debug": {"msg": "<<{{ inventory_hostname }}: {{ __npu_step.reason }}>>"}}],
    }
    done = scripted.run([play(scripted, True, names="012b"), retry], dict.fromkeys("012b", {}))
    calls = [(host, arguments["until"]) for host, arguments in scripted.calls("npu_maintenance")]
    calls_of = [(str(number), until) for number in range(3) for until in STEPS[: number + 1]]
    assert calls == [*calls_of, ("b", "hook")], done.stdout
    assert sorted(re.findall("<<(.*)>>", done.stdout)) == ["%d: budget %d" % (number, number) for number in range(3)]


def test_a_retried_node_begins_again(tmp_path):
    """What the first try left in the variables of the play ends nothing."""
    scripted = Scripted(tmp_path, {"npu_maintenance": {"a": [{"outcome": "deferred"}, UNDER_WAY, {"outcome": "done"}]}})
    done = scripted.run([play(scripted, True), play(scripted, True)], {"a": {}})
    calls = [arguments["until"] for _host, arguments in scripted.calls("npu_maintenance")]
    assert calls == ["hook", "hook", "reboot"], done.stdout


# As ssh to a host that is down.
UNREACHABLE_SSH = """#!/bin/sh
echo 'ssh: connect to host a port 22: Connection refused' >&2
exit 255
"""


def test_a_host_that_is_lost_in_a_hook(tmp_path):
    """The hook has failed: the node is let go with that reason, and the run goes on with the next one and to its report."""
    hooks = tmp_path / "hook.yml"
    tasks = [
        {"name": "Ask the host", "ansible.builtin.raw": "true", "when": "inventory_hostname != 'well'"},
        {"name": "Come here", "ansible.builtin.debug": {"msg": "<<{{ inventory_hostname }} went on>>"}},
    ]
    hooks.write_text(json.dumps(tasks), encoding="utf-8")
    ssh = tmp_path / "ssh"
    ssh.write_text(UNREACHABLE_SSH, encoding="utf-8")
    ssh.chmod(0o755)
    scripted = Scripted(
        tmp_path,
        {
            "npu_maintenance": {
                **{hook: [UNDER_WAY] * before + [{"outcome": "failed", "failed": True}] for hook, before in BEFORE_HOOK.items()},
                "well": [UNDER_WAY] * 3 + [{"outcome": "done"}],
            }
        },
    )
    # A host for each hook, which is called like it; the last one has all of them.
    ssh_settings = {"npu_upgrade_hook_timeout": 2, "ansible_ssh_executable": str(ssh)}
    variables = {hook: {hook: str(hooks), **ssh_settings} for hook in BEFORE_HOOK}
    variables["well"] = {**dict.fromkeys(BEFORE_HOOK, str(hooks)), **ssh_settings}
    report = {
        "hosts": "npu_nodes",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.debug": {"msg": "<<report>>"}, "run_once": True}],
    }
    done = scripted.run([play(scripted, True, names=variables), report], variables)
    text = done.stdout
    calls = [(host, arguments["until"], arguments["failure"]) for host, arguments in scripted.calls("npu_maintenance")]
    failed = [call for call in calls if call[2]]
    # The step after the hook is the one that is told, and what it makes of it is the end of that node.
    assert [call[0] for call in failed] == list(BEFORE_HOOK), calls
    for hook, _until, failure in failed:
        assert failure.startswith("%s failed: " % hook), failure
        assert re.search(r"\b2\b", failure), "it is not the limit of the variable: " + failure
    steps = [hook for hook, before in BEFORE_HOOK.items() for _step in range(before + 1)]
    assert [call[0] for call in calls] == steps + ["well"] * 4, text
    assert re.findall("<<(.*) went on>>", text) == ["well"] * 3
    assert "<<report>>" in text and done.returncode == 0


@pytest.mark.parametrize(("reason", "intended", "runs"), [("upgrade", False, 1), ("upgrade", True, 0), ("rollback", False, 0)])
def test_the_os_is_updated_before_the_reboot_of_an_upgrade_only(tmp_path, reason, intended, runs):
    """Not again by a run that continues: its host may already run the new OS."""
    tasks = tmp_path / "os.yml"
    tasks.write_text(json.dumps([{"ansible.builtin.debug": {"msg": "<<update>>"}}]), encoding="utf-8")
    drained = {"outcome": "under-way", "intended": intended}
    answers = [UNDER_WAY, drained, {"outcome": "under-way", "intended": True}, {"outcome": "done"}]
    scripted = Scripted(tmp_path, {"npu_maintenance": {"*": answers}})
    rollout = play(scripted, True)
    rollout["vars"]["__npu_reason"] = reason
    done = scripted.run([rollout], {"a": {"npu_upgrade_with_os": str(tasks)}})
    assert done.returncode == 0 and done.stdout.count("<<update>>") == runs, done.stdout
    assert [arguments["until"] for _host, arguments in scripted.calls("npu_maintenance")] == STEPS


def test_a_task_of_a_hook_may_have_a_limit_of_its_own(tmp_path):
    hooks = tmp_path / "hook.yml"
    waits = {"ansible.builtin.wait_for": {"timeout": 3}, "delegate_to": "localhost", "connection": "local", "timeout": 60}
    hooks.write_text(json.dumps([waits]), encoding="utf-8")
    scripted = Scripted(tmp_path, {"npu_maintenance": {"*": [UNDER_WAY, {"outcome": "done"}]}})
    scripted.run([play(scripted, True)], {"a": {"npu_upgrade_hook_before": str(hooks), "npu_upgrade_hook_timeout": 1}})
    assert [arguments["failure"] for _host, arguments in scripted.calls("npu_maintenance")] == ["", ""]


def test_the_hook_before_is_not_for_a_node_that_reboots_already(tmp_path):
    """If it failed there, the driver on trial would be rolled back."""
    hook = tmp_path / "hook.yml"
    hook.write_text(json.dumps([{"ansible.builtin.debug": {"msg": "<<hook>>"}}]), encoding="utf-8")
    for intended in (False, True):
        (tmp_path / str(intended)).mkdir()
        answers = {"npu_maintenance": {"*": [dict(UNDER_WAY, intended=intended), {"outcome": "done"}]}}
        scripted = Scripted(tmp_path / str(intended), answers)
        done = scripted.run([play(scripted, True)], {"a": {"npu_upgrade_hook_before": str(hook), "ansible_connection": "local"}})
        assert ("<<hook>>" in done.stdout) is not intended, done.stdout
        assert [arguments["failure"] for _host, arguments in scripted.calls("npu_maintenance")] == ["", ""], done.stdout


def test_a_hook_finds_the_files_beside_it(tmp_path):
    """Whatever their names are: those of the role's task files, and of the collection's playbooks."""
    names = ("main", "report", "validate")
    (tmp_path / "hooks").mkdir()
    for name in names:
        tasks = [{"ansible.builtin.debug": {"msg": "<<%s of the user>>" % name}}]
        (tmp_path / "hooks" / (name + ".yml")).write_text(json.dumps(tasks), encoding="utf-8")
    hook = tmp_path / "hooks" / "hook.yml"
    hook.write_text(json.dumps([{"ansible.builtin.include_tasks": name + ".yml"} for name in names]), encoding="utf-8")
    variables = {"npu_upgrade_hook_before": str(hook), "ansible_connection": "local"}
    for playbook, planner, reason in (("upgrade", "npu_plan", "upgrade"), ("heal", "npu_heal", "recovery")):
        (tmp_path / playbook).mkdir()
        answers = {
            "npu_facts": {"*": [{"npu": {}}]},
            planner: {"*": [PLAN]},
            "npu_pending": {"*": [{"changed": False}]},
            "npu_workloads": {"*": [{"changed": False}]},
            "npu_maintenance": {"*": [UNDER_WAY, {"outcome": "done"}]},
            "npu_report": {"*": [{"failed": True, "msg": "not asked here"}]},
        }
        scripted = Scripted(tmp_path / playbook, answers)
        done = scripted.run("npuops.ascend." + playbook, {"a": variables})
        assert [name for name in names if "<<%s of the user>>" % name not in done.stdout] == [], done.stdout
        calls = [
            [arguments[name] for name in ("until", "failure", "reason")] for _host, arguments in scripted.calls("npu_maintenance")
        ]
        assert calls == [["hook", "", reason], ["reboot", "", reason]], done.stdout


@pytest.mark.parametrize("role", ["npu_upgrade", "npu_heal"])
def test_a_role_without_a_plan_says_what_to_run(tmp_path, role):
    scripted = Scripted(tmp_path, {"npu_maintenance": {"*": [UNDER_WAY]}})
    done = scripted.run([{"hosts": "npu_nodes", "gather_facts": False, "roles": ["npuops.ascend." + role]}], {"a": {}})
    text = " ".join(done.stdout.split())
    assert "There is no plan for a, so its maintenance cannot begin." in text and done.returncode == 2, text
    assert "Run the playbook npuops.ascend.upgrade, npuops.ascend.rollback or npuops.ascend.heal instead of the role." in text
    assert scripted.calls("npu_maintenance") == [] and "undefined" not in text
