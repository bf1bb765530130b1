# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes go at once, which of them together, when a rollout begins with one, and how people stop it in between."""

from __future__ import annotations

import datetime

import pytest

from support.lab.rollout import NPU_NODES, proof, run, slots, target, untouched, upgrade, watch
from support.lab.workloads import Team
from support.patience import PATIENCE

ALL = "--limit=" + ",".join(NPU_NODES)
RACK = "lab.example.com/rack"
RACKS = {"npu-a": "1", "npu-b": "1", "npu-c": "2"}


@pytest.fixture(name="team")
def _team(idle):
    """A pod on each node, which takes a while to leave it, so that those that may go at once are seen to."""
    with Team(idle, "pace-test") as one:
        for node in NPU_NODES:
            one.deploy(f"on-{node}", node=node, ends_in=5)
        yield one


@pytest.fixture(name="racks")
def _racks(idle):
    for node, rack in RACKS.items():
        idle.kubectl("label", "node", node, f"{RACK}={rack}", "--overwrite")
    yield
    for node in RACKS:
        idle.kubectl("label", "node", node, f"{RACK}-")


def at_once(lab, **settings: object) -> list[set[str]]:
    """Upgrade all nodes with no other limit than the ``settings``: the nodes with a slot, in each state of the Lease."""
    version = target(lab, *NPU_NODES)
    with watch(lab) as observer:
        upgrade(lab, ALL, npu_driver_version=version, npu_upgrade_max_parallel=0, **settings)
    assert proof(lab, observer, dict.fromkeys(NPU_NODES, 1), version, max_parallel=0) == []
    return [set(sight.slots["holders"]) for sight in observer.timeline if sight.kind == "lease" and not sight.gone]


def is_rebooted(sight) -> bool:
    return sight.kind == "node" and not sight.gone and bool(sight.record) and sight.record["boot_id"] is not None


def test_the_nodes_of_a_domain_go_together(idle, team, racks):
    seen = at_once(idle, npu_upgrade_domain={"label": RACK, "together": True})
    assert {"npu-a", "npu-b"} in seen
    assert not [names for names in seen if len({RACKS[name] for name in names}) > 1]


def test_enough_chips_remain_allocatable(idle, team):
    """Of the two nodes with the same chips never both, whatever is allowed at once; the third one has others."""
    seen = at_once(idle, npu_upgrade_min_available={"huawei.com/Ascend910": 8})
    assert not [names for names in seen if {"npu-a", "npu-b"} <= names]
    assert [names for names in seen if "npu-c" in names and len(names) > 1]


def test_nothing_begins_outside_of_the_window_or_in_a_pause(idle):
    """What has begun is finished; then a person lets the rollouts run again."""
    version = target(idle, *NPU_NODES)
    hour = datetime.datetime.now(datetime.timezone.utc).hour
    closed = [{"from": f"{(hour + 2) % 24:02d}:00", "to": f"{(hour + 3) % 24:02d}:00", "timezone": "UTC"}]
    with watch(idle) as observer:
        text = upgrade(idle, ALL, expect=None, npu_driver_version=version, npu_upgrade_window=closed)
        observer.catch_up()
        assert "window" in text and untouched(observer, *NPU_NODES) == []
        with run(idle, ALL, npu_driver_version=version) as one:
            first = observer.wait(is_rebooted, PATIENCE, "a reboot is certain").name
            told = upgrade(idle, playbook="pause", npu_pause_reason="incident 4711")
            assert "incident 4711" in told
            assert one.wait() != 0 and "incident 4711" in one.text
        observer.catch_up()
        assert untouched(observer, *set(NPU_NODES) - {first}) == []
        assert slots(idle)["holders"] == {} and slots(idle)["halted"]
        upgrade(idle, playbook="resume")
        upgrade(idle, ALL, npu_driver_version=version)
    assert proof(idle, observer, dict.fromkeys(NPU_NODES, 1), version) == []
