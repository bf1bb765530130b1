# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace

from support.fleet.hosts import NEW_RELEASE, host, unreachable
from support.fleet.planning import (
    backward,
    ended,
    make,
    nodes_of,
    record,
)
from support.kube.eviction_stub import budget, pod


def test_a_mistyped_variable_stops_everything_also_where_nothing_is_due():
    plan = make([host(loaded=NEW_RELEASE, variables=["npu_upgrade_max_paralel"])])
    assert not plan.green
    assert plan.cluster_reasons == ["unknown variable npu_upgrade_max_paralel: did you mean npu_upgrade_max_parallel? (a)"]


def test_hosts_without_a_chip_do_not_count():
    plan = make([host("a"), host("cpu", chip_count=0, family=None)])
    assert plan.summary.startswith("1 of 1 node is due;")


def test_a_host_that_has_lost_all_its_chips_counts():
    lost = {"count": 8, "gone": [], "boot": None}
    plan = make([host("a"), host("b", chip_count=0, family=None, chips_before=lost)])
    assert plan.green and plan.summary.startswith("1 of 2 nodes is due;")


def test_npu_nodes_that_this_run_does_not_see_are_named():
    nodes = nodes_of("a", "b", labels={"openfuyao.com/npu.present": ""})
    assert make([host("a")], nodes=nodes).cluster_notes == ["not among the hosts of this run: b"]


@pytest.mark.parametrize("hosts", ["abcdefgh", "c"])
def test_a_percentage_is_one_of_all_nodes_of_the_cluster(hosts):
    """Not of the hosts of the run: the slots are those of the cluster, so a run with --limit has to come to the same number."""
    nodes = nodes_of(*"abcdefgh", labels={"openfuyao.com/npu.present": ""})
    nodes["g"] = nodes_of("g", annotations=ended(minutes=10), labels={"openfuyao.com/npu.present": ""})["g"]
    plan = make([host(name) for name in hosts], nodes=nodes, max_parallel="40%")
    assert plan.result()["max_parallel"] == 3
    assert plan.result()["pace"] == pace(3)
    assert "due, at most 3 at once (40% of 8 NPU nodes of the cluster); " in plan.summary
    assert plan.estimate == (1800 if len(hosts) > 1 else None)


def test_a_percentage_is_compared_with_the_slots_of_other_runs_as_a_number():
    nodes = nodes_of("a", "b", labels={"openfuyao.com/npu.present": ""})
    held = {"max": 1, "halted": None, "holders": {"b": {"run": "r1", "since": "2026-11-21T10:00:00Z"}}}
    assert make([host("a"), host("b")], nodes=nodes, slots=held, max_parallel="50%").cluster_notes == ["in maintenance now: b"]
    notes = make([host("a"), host("b")], nodes=nodes, slots=held, max_parallel="100%").cluster_notes
    assert notes[1:] == ["another run works with npu_upgrade_max_parallel=1"]


NIGHTS = [{"from": "22:00", "to": "06:00", "timezone": "Asia/Shanghai"}]  # a plan of the tests is of 20:30 there
EVENINGS = [{"from": "20:00", "to": "21:00", "timezone": "Asia/Shanghai"}]


def test_a_closed_window_is_told_and_nothing_is_parked_for_it():
    plan = make([host()], workloads="park", window=NIGHTS)
    assert plan.green and plan.closed and plan.park == []
    assert plan.result()["window"] == {"open": False, "opens": "2026-11-21T14:00:00Z", "closes": "2026-11-21T22:00:00Z"}
    assert plan.summary.startswith("1 of 1 node is due, none begins before the maintenance window opens; ")
    (note,) = plan.cluster_notes
    assert note.startswith("the maintenance window is closed: it opens at Sat 2026-11-21 22:00 Asia/Shanghai and closes at ")
    assert "  cluster: %s" % note in plan_table.table(plan)


@pytest.mark.parametrize(("minutes", "longer"), [(30, False), (31, True)])
def test_an_open_window_is_told(minutes, longer):
    nodes = nodes_of("a", annotations=ended(minutes=minutes))
    plan = make([host()], nodes=nodes, workloads="park", window=EVENINGS)
    assert not plan.closed and plan.park == ["huawei.com/Ascend910"] and "window" not in plan.summary
    (note,) = plan.cluster_notes
    assert note.startswith("the maintenance window is open until Sat 2026-11-21 21:00 Asia/Shanghai, and opens again at Sun ")
    assert note.endswith("are deferred") is longer


def test_without_a_window_nothing_is_told():
    plan = make([host()])
    assert plan.result()["window"] is None and plan.cluster_notes == [] and not plan.closed


HALT = {"who": "run r1", "why": "npu-b failed.", "when": "2026-11-21T10:00:00Z", "reason": "upgrade"}


def test_a_halt_names_all_ways_out():
    plan = make([host()], slots={"max": 1, "halted": HALT, "holders": {}})
    assert not plan.green and plan.park == []
    assert "ansible-playbook npuops.ascend.upgrade -e npu_upgrade_clear_halt=true" in plan.problem
    assert "To go back instead: ansible-playbook npuops.ascend.rollback" in plan.problem
    assert make([host()], slots={"max": 1, "halted": HALT, "holders": {}}, clear_halt=True).green


@pytest.mark.parametrize(("reason", "held"), [("upgrade", False), ("rollback", True)])
def test_going_back_is_no_way_that_a_halted_upgrade_bars(reason, held):
    plan = make([backward()], reason="rollback", slots={"max": 1, "halted": dict(HALT, reason=reason), "holders": {}})
    assert plan.held is held and bool(plan.cluster_reasons) is held
    assert "rollback -e npu_upgrade_clear_halt=true" in plan.problem if held else plan.green


def test_a_halted_run_finishes_what_is_in_maintenance():
    nodes = nodes_of("a", "b")
    nodes["a"]["metadata"]["annotations"] = {"npuops.ascend/maintenance": json.dumps(record())}
    stuck = {"max": 1, "halted": dict(HALT, node="a"), "holders": {"a": {"run": "r1", "since": "2026-11-21T10:00:00Z"}}}
    plan = make([host("a"), host("b")], nodes=nodes, slots=stuck, workloads="park")
    assert plan.green and plan.held and plan.result()["in_flight"] == ["a"] and plan.result()["order"] == ["a", "b"]
    assert any("only continues nodes already in maintenance" in note for note in plan.cluster_notes)
    assert any(
        "finish a first: ansible-playbook npuops.ascend.upgrade. To continue without it" in line for line in plan_table.table(plan)
    )


def test_the_result_is_plain_data():
    plan = make([host("a"), unreachable("b")], pods=[pod("web-1")], budgets=[budget()])
    text = json.dumps(plan.result())
    assert json.loads(text)["counts"]["blocked"] == 1
    assert "registry_password" not in text
