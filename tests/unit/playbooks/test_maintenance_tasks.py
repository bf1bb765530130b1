# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a maintenance do with what comes of it, for one node after the other."""

from __future__ import annotations

import pytest
from scripted import Scripted


def play(scripted, serial, verdicts=None):
    """The play of the roll-out that takes the nodes through their maintenance."""
    hosts = {
        name: {"node": name, "chips": 8, "to": {}, "verdict": (verdicts or {}).get(name, "ready")} for name in ("a", "b", "c")
    }
    path = scripted.root / "ansible_collections" / "npuops" / "ascend" / "playbooks" / "tasks" / "maintenance.yml"
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
