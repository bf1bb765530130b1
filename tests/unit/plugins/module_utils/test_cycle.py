# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state machine of one node's maintenance: every transition, and every place where it can be cut short."""

from __future__ import annotations

import dataclasses
import itertools
import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils import _maintenance
from ansible_collections.npuops.ascend.plugins.module_utils._cycle import Cycle, Order, Policy
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from fake_fleet import CHIPS, EVENTS, NEW, NODES, OLD, RESOURCE, Fate, FakeCluster, Killed, Pods, World

STATE = "npu.openfuyao.com/driver-upgrade-state"
APPROVE = "npu.openfuyao.com/approve-reboot"
REBOOT_REQUIRED = "npu.openfuyao.com/reboot-required"
RECORD = "npuops.ascend/maintenance"
LAST = "npuops.ascend/last-maintenance"
COMPONENTS = "npuops.ascend/components"
TARGET = {"version": "25.5.0", "release": NEW, "digest": "sha256:" + "b" * 64}


class Bench:
    """One node and the controllers that work on it."""

    def __init__(self, pods=None, smoke=None, **node):
        self.world = World()
        self.host = self.world.add("npu-a", **node)
        self.pods = pods or Pods(self.world)
        self.pods._world = self.world
        self.smoke = smoke
        self.said = []

    def run(self, run="run-1", until="done", order=None, **policy):
        wanted = Order("npu-a", run, target=TARGET, resource=RESOURCE, chips=CHIPS)
        wanted = dataclasses.replace(wanted, **(order or {}))
        return Cycle(
            FakeCluster(self.world),
            self.host,
            self.pods,
            wanted,
            Policy(**dict({"auto": True}, **policy)),
            self.world.clock,
            lambda step, _seconds, sentence: self.said.append((step, sentence)),
            self.smoke,
        ).run(until)

    @property
    def node(self):
        return self.world.node("npu-a")

    @property
    def labels(self):
        return self.node["metadata"]["labels"]

    @property
    def annotations(self):
        return self.node["metadata"]["annotations"]

    @property
    def last(self):
        return json.loads(self.annotations[LAST])

    @property
    def record(self):
        return json.loads(self.annotations[RECORD])

    @property
    def cordoned(self):
        return bool(self.node["spec"].get("unschedulable"))

    def wait(self, seconds):
        self.world.clock.sleep(seconds)

    def assert_upgraded(self, cordoned=False, boots=1):
        assert self.host.boots == boots
        assert self.host.tries == {NEW: 1}
        assert (self.host.driver, self.host.good, self.host.previous, self.host.next) == (NEW, NEW, OLD, None)
        assert STATE not in self.labels and REBOOT_REQUIRED not in self.labels
        assert self.labels[COMPONENTS] == "enabled"
        assert self.labels["npuops.ascend/driver-version"] == "25.5.0"
        self.assert_nothing_left(cordoned)
        assert self.last["outcome"] == "success"

    def assert_nothing_left(self, cordoned=False):
        assert RECORD not in self.annotations and APPROVE not in self.annotations
        assert self.cordoned is cordoned
        assert self.world.slots()["holders"] == {}
        assert self.host.next is None


def test_upgrade():
    bench = Bench()
    outcome = bench.run()
    assert outcome["outcome"] == "done" and outcome["reason"] is None and outcome["blockers"] == []
    bench.assert_upgraded()
    steps = [step for step, _group in itertools.groupby(step for step, _sentence in bench.said)]
    assert steps[0] == "cordon-required" and steps[-1] == "uncordon-required"
    assert bench.run(run="run-2")["outcome"] == "up-to-date"
    bench.assert_upgraded()


def _finish(bench, **policy):
    """Run again, as a person would, until the node is through."""
    for number in range(2, 6):
        outcome = bench.run(run="run-%d" % number, **policy)
        if outcome["outcome"] != "busy":
            return outcome
    raise AssertionError("always busy")


@pytest.mark.parametrize("cordoned", [False, True])
@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pause", [0, 5, 300])
def test_killed_at_every_call(cordoned, auto, when, pause):
    """``pause``: seconds until the next run starts, which is before or after the dead run's heartbeat is too old."""
    for at in itertools.count(1):
        bench = Bench(cordoned=cordoned, annotations=None if auto else {APPROVE: "true"})
        bench.world.fate = Fate(at, "kill", when)
        try:
            bench.run(auto=auto)
        except Killed:
            pass
        if not bench.world.fate.met:
            break
        bench.world.fate = Fate()
        bench.wait(pause)
        outcome = _finish(bench, auto=auto)
        assert outcome["outcome"] in ("done", "up-to-date"), (at, outcome)
        bench.assert_upgraded(cordoned=cordoned)
    assert at > 12


@pytest.mark.parametrize("when", ["before", "after"])
def test_api_away_at_every_call(when):
    for at in itertools.count(1):
        bench = Bench(annotations={APPROVE: "true"})
        bench.world.fate = Fate(at, "dark", when)
        outcome = bench.run(auto=False)
        if not bench.world.fate.met:
            break
        assert outcome["outcome"] == "done", (at, outcome)
        bench.assert_upgraded()
    assert at > 12


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_call_of_a_failing_upgrade(when):
    """The way back is as safe as the way forth."""
    for at in itertools.count(1):
        bench = Bench()
        bench.host.broken = {NEW}
        bench.world.fate = Fate(at, "kill", when)
        try:
            bench.run()
        except Killed:
            pass
        if not bench.world.fate.met:
            break
        bench.world.fate = Fate()
        bench.wait(5)
        outcome = _finish(bench)
        assert outcome["outcome"] == "failed", (at, outcome)
        assert bench.host.boots == 2 and bench.host.tries == {NEW: 1}
        assert bench.host.driver == bench.host.good == OLD
        assert bench.labels[STATE] == "upgrade-failed" and bench.labels[COMPONENTS] == "enabled"
        assert bench.world.slots()["halted"]
        assert "insmod failed" in bench.last["failure"] and bench.last["outcome"] == "rolled-back"
        bench.assert_nothing_left()
    assert at > 15
