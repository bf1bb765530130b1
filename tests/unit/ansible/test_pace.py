# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes a rollout and a recovery maintain at once."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace

from support.fleet.reports import planned
from support.scripted import Scripted

NODES = ("npu-a", "npu-b")
# A name of the plays that do maintenance, and which of the modules plans.
PLAYS = {"upgrade": ("Upgrade or roll back the nodes", "npu_plan"), "heal": ("Recover the nodes", "npu_heal")}


@pytest.mark.parametrize(("max_parallel", "batches"), [(1, 2), (0, 1)])
@pytest.mark.parametrize("playbook", PLAYS)
def test_the_plan_says_how_many_nodes_go_at_once(tmp_path, playbook, max_parallel, batches):
    """One at a time each is a batch of its own; side by side all of them are one, and wait for slots. In the order of the plan."""
    play, planner = PLAYS[playbook]
    plan = {
        "hosts": {name: dict(planned(name), node=name, chips=8, to={}, other_kernels=[]) for name in NODES},
        "order": ["npu-b", "npu-a"],
        "pace": pace(max_parallel),
        "max_parallel": 7,
        "due_versions": {},
        **dict.fromkeys(("deferred", "due_nodes", "settled_nodes", "park", "look_at", "in_flight", "table"), []),
        **dict.fromkeys(("storm", "refusal", "problem", "halted", "estimate_seconds", "cluster_reasons"), None),
        "counts": {},
        "components": {"order": None},
        "green": True,
        "summary": "",
    }
    answers = {
        "npu_facts": {"*": [{"npu": {}}]},
        planner: {"*": [plan]},
        "npu_pending": {"*": [{"changed": False}]},
        "npu_workloads": {"*": [{"changed": False, "restored": [], "left": []}]},
        "npu_maintenance": {"*": [{"outcome": "done"}]},
        "npu_report": {"*": [{"failed": True, "msg": "not asked here"}]},
    }
    scripted = Scripted(tmp_path, answers)
    done = scripted.run("npuops.ascend." + playbook, dict.fromkeys(NODES, {"ansible_connection": "local"}), "--forks=1")
    begun = list(dict.fromkeys(host for host, _arguments in scripted.calls("npu_maintenance")))
    assert begun == plan["order"], done.stdout
    assert done.stdout.count("PLAY [%s]" % play) == batches, done.stdout
    # Of the plan, and not of the variables: a percentage is one of the whole cluster.
    assert {arguments["settings"]["max_parallel"] for _host, arguments in scripted.calls("npu_maintenance")} == {7}
