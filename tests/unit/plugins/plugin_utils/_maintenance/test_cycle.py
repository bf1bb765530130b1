# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every place where one node's maintenance can be cut short: killed before or after every mutating call, or cut off."""

from __future__ import annotations

import itertools

import pytest

from support.fleet.fake_fleet import NEW, OLD, Fate, Killed
from support.fleet.maintenance_bench import APPROVE, COMPONENTS, STATE, Bench


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
