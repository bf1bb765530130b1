# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table

from support.fleet.hosts import NEW_RELEASE, host
from support.fleet.planning import (
    ended,
    make,
    nodes_of,
)
from support.kube.eviction_stub import budget, pod


def test_table():
    nodes = nodes_of("a", "b", "c", annotations=ended(minutes=12))
    plan = make(
        [host("a"), host("b"), host("c", loaded=NEW_RELEASE)], nodes=nodes, pods=[pod("web-1", node="b")], budgets=[budget()]
    )
    assert plan_table.table(plan) == [
        "#  NODE  CHIPS     FROM    TO      EVICTIONS  VERDICT",
        # c has shown that the driver works on such hosts.
        "1  a     8 x 910B  25.5.0  25.5.2  -          ready",
        "-  b     8 x 910B  25.5.0  25.5.2  1 (0 NPU)  blocked",
        "-  c     8 x 910B  25.5.2  25.5.2  -          up-to-date",
        "",
        "Blockers:",
        "  b: the pod train/web-1 (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget train/web allows no disruption now:"
        " 2 healthy, 2 needed",
        "",
        "1 of 3 nodes is due, 1 blocked; about 12 min.",
    ]


def test_what_several_hosts_have_in_common_is_told_once():
    hosts = [host("n%02d" % number) for number in range(20)]
    nodes = nodes_of(*[entry["name"] for entry in hosts])
    lines = plan_table.table(make(hosts, nodes=nodes, lookups={"support": lambda *_args: ([], ["containerd is old"])}))
    assert "  n00, n01, n02, n03, n04, n05, n06, n07 and 12 more: containerd is old" in lines
    assert sum("containerd is old" in line for line in lines) == 1


def test_nothing_but_trouble():
    plan = make([host("a", boot_id="x")])
    assert plan.summary == "Nothing can be done on 1 node now, 1 blocked."
    assert "25.5.2" in plan_table.table(plan)[1]


def test_halt_and_holders_are_told():
    slots = {
        "max": 2,
        "halted": {"who": "run r1", "why": "npu-b failed.", "when": "2026-11-21T10:00:00Z"},
        "holders": {"b": {"run": "r1", "since": "2026-11-21T10:00:00Z"}},
    }
    plan = make([host()], slots=slots)
    lines = plan_table.table(plan)
    told = [line for line in lines if "halted since" in line]
    assert len(told) == 1 and told[0].startswith("  halted since 2026-11-21T10:00:00Z by run r1: npu-b failed. After fixing this")
    assert "  cluster: in maintenance now: b" in lines


def test_why_it_is_halted_stands_there_once():
    why = "The upgrade of a to 25.5.2 failed: npu-smi lists 7 chips. It is back on the old driver."
    nodes = nodes_of("a", "b", labels={"npu.openfuyao.com/driver-upgrade-state": "upgrade-failed"})
    for name in nodes:
        told = why if name == "a" else "Its disk is full."
        nodes[name]["metadata"]["annotations"] = ended("rolled-back", failure=told)
    slots = {"max": 1, "halted": {"who": "run r1", "why": why, "when": "2026-11-21T10:00:00Z"}, "holders": {}}
    lines = plan_table.table(make([host("a"), host("b")], nodes=nodes, slots=slots))
    assert sum(line.startswith("  halted since 2026-11-21T10:00:00Z by run r1. After") for line in lines) == 1
    assert sum("npu-smi lists 7 chips" in line for line in lines) == 1


def test_a_driver_that_does_not_answer_is_not_merely_up_to_date():
    nodes = nodes_of("a", "b", annotations={"npuops.ascend/wedged": "{}"})
    nodes["b"]["metadata"]["annotations"] = {}
    invalid = {"valid": False, "msg": "7 of 8 chips answer.", "checks": []}
    plan = make([host("a", loaded=NEW_RELEASE), host("b", loaded=NEW_RELEASE, validation=invalid)], nodes=nodes)
    lines = plan_table.table(plan)
    assert [line.split("  ")[-1] for line in lines[1:3]] == ["up-to-date, wedged", "up-to-date"]
    assert "  a: its driver no longer responds (npuops.ascend/wedged): npuops.ascend.heal" in lines
    assert "  b: its driver fails validation: 7 of 8 chips answer" in lines
    assert plan.settled_nodes == ["a", "b"]
