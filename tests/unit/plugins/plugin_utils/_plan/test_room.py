# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import room as rollout_room
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.fleet.hosts import host
from support.fleet.planning import (
    RESOURCE,
    make,
    nodes_of,
    snapshot_of,
)
from support.kube.eviction_stub import pod


def test_where_evicted_pods_could_go():
    pods = [pod("big", npus=8), pod("small", npus=2), pod("there", node="b", npus=6)]
    a, b = make([host("a"), host("b")], pods=pods).entries
    assert [text for text in a.notes if "no other node" in text] == [
        "1 of its 2 pods that request NPUs fit on no other node now and will wait: train/big"
    ]
    assert any("train/there" in text for text in b.notes)


def test_room_is_not_on_cordoned_wedged_or_dead_nodes():
    for unfit in ({"unschedulable": True}, {"ready": False}, {"annotations": {"npuops.ascend/wedged": "{}"}}):
        nodes = dict(nodes_of("a"), **nodes_of("b", **unfit))
        room = rollout_room.Room(snapshot_of(nodes))
        assert room.homeless("a", [pod_view.Pod(pod("x", npus=1))]), unfit


def test_capacity():
    nodes = dict(nodes_of("a", "b"), **nodes_of("c", unschedulable=True))
    plan = make([host("a"), host("b"), host("c")], nodes=nodes, pods=[pod("x", npus=3), pod("y", node="c", npus=8)])
    assert plan.result()["capacity"] == {RESOURCE: {"allocatable": 16, "requested": 3, "free": 13}}


def test_room_is_used_up():
    nodes = nodes_of("a", "b")
    room = rollout_room.Room(snapshot_of(nodes, [pod("there", node="b", npus=4)]))
    pods = [pod_view.Pod(pod("x%d" % number, npus=2)) for number in range(3)]
    assert [item.name for item in room.homeless("a", pods)] == ["x2"]
    assert room.homeless("a", pods[:2]) == []
