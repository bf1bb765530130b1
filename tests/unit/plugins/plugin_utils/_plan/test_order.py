# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report

from support.fleet.hosts import KERNEL, NEW, NEW_RELEASE, OLD_RELEASE, host, unreachable
from support.fleet.planning import (
    TRIED,
    ended,
    make,
    nodes_of,
    record,
    under_way,
)
from support.kube.eviction_stub import budget, pod
from support.kube.stub import node


def test_order():
    nodes = nodes_of("a", "b", "c", "p", "q", "registry", "wedged")
    nodes["b"]["metadata"]["annotations"] = ended("deferred")
    nodes["wedged"]["metadata"]["annotations"] = {"npuops.ascend/wedged": "{}"}
    hosts = [host(name) for name in ("wedged", "registry", "b", "a", "c")] + [host(name, device="d500") for name in ("p", "q")]
    plan = make(hosts, nodes=nodes, pods=[pod("web", node="a")], registry_nodes={"registry": "the registry's pod"})
    # c has nothing to evict, so it is the first of the 910B.
    assert [entry.name for entry in plan.ordered] == ["c", "p", "wedged", "a", "q", "b", "registry"]
    assert [entry.name for entry in plan.ordered if entry.canary] == ["c", "p"]


RACK = "example.com/rack"


def racks(**rack_of):
    nodes = nodes_of(*rack_of)
    for name, rack in rack_of.items():
        nodes[name]["metadata"]["labels"] = {RACK: rack} if rack else {}
    return nodes


def test_domains_take_turns():
    nodes = racks(a="1", b="1", c="1", d="2", e="2", f=None)
    hosts = [host(name) for name in "abcdef"]
    plan = make(hosts, nodes=nodes, domain={"label": RACK, "max_parallel": 1}, max_parallel=0)
    # a is the first of its kind.
    assert [entry.name for entry in plan.ordered] == ["a", "f", "b", "d", "c", "e"]
    assert plan.cluster_notes[:2] == [
        "at most 1 node with the same value of the label example.com/rack at once",
        "without the label example.com/rack, and so without this limit: f",
    ]
    assert make(hosts, nodes=nodes, max_parallel=0).ordered[1].name == "b"


def test_domains_that_go_together_come_one_after_the_other():
    nodes = racks(a="1", b="2", c="1", d="2", e="3", f=None)
    domain = {"label": RACK, "max_parallel": 1, "together": True}
    plan = make([host(name) for name in "abcdef"], nodes=nodes, domain=domain, max_parallel=0)
    assert [entry.name for entry in plan.ordered] == ["a", "c", "b", "d", "e", "f"]
    assert plan.cluster_notes[:2] == [
        "the nodes with the same value of the label example.com/rack go together",
        "without the label example.com/rack, and so without this limit: f",
    ]


@pytest.mark.parametrize(("most", "max_parallel", "minutes"), [(1, 0, 30), (1, 3, 30), (2, 0, 20), (1, 1, 50), (3, 0, 10)])
def test_domains_in_the_estimate(most, max_parallel, minutes):
    nodes = racks(a="1", b="1", c="1", d="2", e="2")
    for one in nodes.values():
        one["metadata"]["annotations"] = ended(minutes=10)
    domain = {"label": RACK, "max_parallel": most}
    plan = make([host(name) for name in "abcde"], nodes=nodes, domain=domain, max_parallel=max_parallel)
    assert plan.estimate == minutes * 60


def test_a_label_that_no_node_has_is_refused():
    """A misspelt one would limit nothing."""
    plan = make([host("a"), host("b")], nodes=racks(a="1", b="2"), domain={"label": "example.com/rak", "max_parallel": 1})
    (reason,) = plan.cluster_reasons
    assert not plan.green and reason.startswith(
        "npu_upgrade_domain.label is example.com/rak, and no node that is due has this label"
    )


def test_a_node_in_maintenance_goes_first_whatever_it_looks_like():
    nodes = nodes_of("a", "b")
    nodes["b"] = node("b", boot_id="x", ready=False, annotations={"npuops.ascend/maintenance": json.dumps(record())})
    plan = make([host("a"), unreachable("b")], nodes=nodes)
    assert [entry.name for entry in plan.ordered] == ["b", "a"]
    entry = plan.entries[1]
    assert (entry.verdict, entry.record["step"], plan.green) == ("in-flight", "drain-required", True)
    assert plan.due_nodes == ["a"]
    assert "step drain-required of run r1, last heartbeat 2026-11-21T12:00:00Z" in entry.notes


def test_workloads_on_virtual_npus_are_parked_as_well():
    vnpus = [{"chip": 0, "id": 100, "template": "vir04"}]
    plan = make([host("p", device="d500", vnpus=vnpus), host("q", device="d500", loaded=NEW_RELEASE)], workloads="park")
    assert plan.park == ["huawei.com/Ascend310P", "huawei.com/Ascend310P-4c"]


def test_canaries_only():
    """The first of each pool, and in a pool where the driver has shown that it works none; the others are due, but later."""
    hosts = [host("a"), host("b"), host("p", device="d500"), host("q", device="d500", loaded=NEW_RELEASE)]
    plan = make(hosts, canary=True, workloads="park")
    assert [entry.name for entry in plan.ordered] == plan.result()["order"] == ["a"]
    assert {entry.name: (entry.verdict, entry.later) for entry in plan.entries} == {
        "a": ("ready", False),
        "b": ("ready", True),
        "p": ("ready", True),
        "q": ("up-to-date", False),
    }
    assert plan.due_nodes == ["a", "b", "p"] and plan.green
    assert plan.park == [plan.entries[0].checked.family["resource"]]
    assert "3 of 4 nodes are due, 2 of them later: this run takes only the first of each pool" in plan.summary
    assert plan_table.table(plan)[1].endswith("ready, first of its kind") and plan_table.table(plan)[2].endswith("ready, later")
    assert make(hosts, workloads="park").result()["order"] == ["a", "b", "p"]


def test_a_killed_run_for_canaries_is_gone_on_with_by_the_same_node():
    """The node that it left half-way is the first of its pool, whether its record or only its driver on trial says so."""
    nodes = nodes_of("a", "b", "c")
    nodes["b"]["metadata"]["annotations"] = {
        "npuops.ascend/maintenance": json.dumps(record(to={"version": NEW, "release": NEW_RELEASE}))
    }
    plan = make([host("a"), host("b"), host("c")], nodes=nodes, canary=True)
    assert plan.result()["order"] == ["b"] and [entry.later for entry in plan.entries] == [True, False, True]
    staged = {NEW_RELEASE: {"version": NEW, "kernel": KERNEL}}
    trial = host("b", loaded=NEW_RELEASE, upgrade={"trial": NEW_RELEASE, "previous": None, "staged": staged, "holders": []})
    trial["facts"]["driver"]["good"] = OLD_RELEASE
    assert make([host("a"), trial], canary=True).result()["order"] == ["b"]


def test_canaries_only_go_on_with_what_is_in_maintenance_and_leave_what_is_blocked():
    nodes = nodes_of("a", "b")
    plan = make([host("a"), host("b")], nodes=nodes, pods=[pod("web-1", node="a")], budgets=[budget()], canary=True)
    assert plan.result()["order"] == ["b"] and plan.result()["deferred"] == []
    assert "-e npu_upgrade_on_blocked=defer" in plan.problem


def test_canaries_only_leave_what_is_blocked_or_failed_before_for_later():
    """Neither is tried, so neither fails the run; a run of the fleet tries the one and reports the other."""
    nodes = nodes_of("a", "b", "c")
    nodes["b"]["metadata"]["labels"] = {"npu.openfuyao.com/driver-upgrade-state": "upgrade-failed"}
    options = {"nodes": nodes, "pods": [pod("web-1", node="a")], "budgets": [budget()]}
    hosts = [host("a"), host("b"), host("c")]
    plan = make(hosts, canary=True, **options)
    assert {entry.name: (entry.verdict, entry.later, entry.canary) for entry in plan.entries} == {
        "a": ("blocked", True, False),
        "b": ("failed", True, False),
        "c": ("ready", False, True),
    }
    assert plan.result()["order"] == ["c"]
    assert "later" not in plan.summary, "no node that is due waits"
    untried = [{"name": name, "outcome": None, "reason": None} for name in ("a", "b")]
    told = rollout_report.rows(untried, plan.result(), nodes, "this-run", 0)
    assert [row.result()["status"] for row in told] == ["skipped", "skipped"]
    assert not [entry.name for entry in make(hosts, **options).entries if entry.later]


def test_a_pool_is_proved_by_a_node_that_has_the_driver():
    plan = make([host("a"), host("b", loaded=NEW_RELEASE), host("c")])
    assert [entry.result()["proved"] for entry in plan.entries] == [True, False, True]
    nodes = nodes_of("a", "b")
    nodes["a"]["metadata"]["annotations"] = {"npuops.ascend/maintenance": json.dumps(record())}
    plan = make([host("a"), host("b")], nodes=nodes)
    assert [entry.result()["proved"] for entry in plan.entries] == [False, False], "one that is on its way proves nothing"
    assert plan.entries[0].pool == plan.entries[1].pool


def test_a_host_that_does_not_answer_is_of_the_kind_that_its_node_says():
    """It is the first of its kind, and the others wait for it."""
    nodes = under_way("upgrade", "new", **TRIED)
    nodes["a"]["metadata"]["labels"] = {"npuops.ascend/chip": "910B"}
    nodes.update(nodes_of("b"))
    plan = make([unreachable(), host("b")], nodes=nodes)
    assert plan.entries[0].verdict == "in-flight" and plan.entries[0].pool == plan.entries[1].pool


def least(count, **settings):
    nodes = nodes_of("a", "b", "c", labels={"openfuyao.com/npu.present": ""})
    resource = "huawei.com/Ascend910"
    return make([host(name) for name in "abc"], nodes=nodes, min_available={resource: count}, max_parallel=0, **settings)


def test_chips_that_are_to_remain_allocatable_in_the_plan():
    plan = least(8)
    assert plan.green and "at least 8 huawei.com/Ascend910 remain allocatable (npu_upgrade_min_available)" in plan.cluster_notes
    impossible = least(17)
    assert (
        not impossible.green and "npu_upgrade_min_available asks for 17 huawei.com/Ascend910, and all nodes" in impossible.problem
    )
