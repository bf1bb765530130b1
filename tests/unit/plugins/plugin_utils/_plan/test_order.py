# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table

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
