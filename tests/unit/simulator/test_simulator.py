# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator: the same schedule always takes the same course, what it found stays mended, and it finds what it must."""

from __future__ import annotations

import dataclasses
import json

import pytest

from simulator import defects
from simulator.invariants import Violation
from simulator.schedule import CALL_FAULTS, INCIDENTS, REFUSALS, WINDOWS, Fault, Incident, Run, Schedule, Workload, make
from simulator.shrink import shortest
from simulator.simulation import simulate


def test_a_quiet_upgrade():
    result = simulate(Schedule(nodes=2, runs=(Run("upgrade-1", "upgrade"),), workloads=(Workload("job", spare=1),)), tell=True)
    story = "\n".join(result.story)
    assert result.violation is None
    for name in ("node-a", "node-b"):
        assert f"{name} boots with 25.5.0-k-bbbbbbbbbbbb on trial" in story
        assert f"upgrade-1 tells of {name}: done." in story
    assert "evict job-1" in story


@pytest.mark.parametrize("seed", range(40))
def test_the_same_seed_takes_the_same_course(seed):
    first, second = simulate(make(seed), tell=True), simulate(make(seed), tell=True)
    assert first.story == second.story and first.calls == second.calls > 0


@pytest.mark.parametrize("seed", range(40))
def test_a_schedule_in_a_file_is_the_same(seed):
    schedule = make(seed)
    assert Schedule.from_json(schedule.to_json()) == schedule


def test_what_happens_is_seen():
    """Every kind of fault and incident that a schedule can have does something."""
    calm = Schedule(runs=(Run("upgrade-1", "upgrade"),), workloads=(Workload("job"),))
    quiet = simulate(calm, tell=True).story
    cases = [
        dataclasses.replace(calm, faults=(Fault("upgrade-1", 12, kind, 5.0),))
        for kind in ("kill-before", "slow-after", "lost-after", "unauthorized", "forbidden")
    ]
    cases += [
        dataclasses.replace(calm, incidents=(Incident(3.0, kind, "node-a", 30.0),))
        for kind in ("cordon", "power", "delete-node", "kernel")
    ]
    cases += [
        dataclasses.replace(calm, runs=(dataclasses.replace(calm.runs[0], **changes),))
        for changes in ({"newer": True}, {"jobs": True}, {"window": "06:00-22:00"}, {"skew": 3600.0, "auto": False})
    ]
    cases += [dataclasses.replace(calm, bad=("node-a",), chatty=True)]
    for case in cases:
        assert simulate(case, tell=True).story != quiet, case


def test_a_node_that_is_deleted_and_restored_in_its_maintenance_is_given_back():
    """The cordon in the backup is the collection's, so the next run may take it away."""
    schedule = Schedule(
        runs=(Run("upgrade-1", "upgrade"), Run("heal-2", "heal", 100.0)),
        faults=(Fault("upgrade-1", 40, "kill-before"),),
        incidents=(Incident(45.0, "delete-node", "node-a"), Incident(50.0, "restore", "node-a", 20.0)),
    )
    result = simulate(schedule, tell=True)
    story = "\n".join(result.story)
    assert result.violation is None
    assert "node-a is restored to what it was 20 s ago" in story and "the maintenance that the run upgrade-1 left" in story


def test_a_wedge_while_ports_are_waited_for_is_no_false_blame():
    """What the host said before the way back counts, not what it says after it."""
    schedule = Schedule(
        runs=(Run("upgrade-1", "upgrade", network="strict"), Run("heal-2", "heal", 300.0)),
        incidents=(Incident(38.5, "wedge", "node-a"),),
    )
    result = simulate(schedule, tell=True)
    story = "\n".join(result.story)
    assert "rolls back: its network ports are worse" in story and "node-a boots with 25.2.0" in story
    assert result.violation is None


def test_nothing_is_the_same_everywhere():
    """What is the same in every schedule is never tested with another value."""
    drawn = [make(seed) for seed in range(400)]
    runs = [run for schedule in drawn for run in schedule.runs]
    assert {run.newer for run in runs} == {run.jobs for run in runs} == {True, False}
    assert {run.window for run in runs} == {"", *WINDOWS}
    assert {run.network for run in runs} == {"off", "warn", "strict"} and any(schedule.lost_ports for schedule in drawn)
    assert {run.watches for run in runs} == {"", "granted", "silent"}
    assert {run.max_failures for run in runs} == {0, 1, 2} and len({run.storm_percent for run in runs}) > 1
    kinds = {entry.kind for schedule in drawn for entry in (*schedule.faults, *schedule.incidents)}
    assert {*CALL_FAULTS, *REFUSALS, *INCIDENTS} <= kinds
    for field in ("host_skew", "chatty", "zone", "tells_kernel", "bad_newer", "firmware"):
        assert len({getattr(schedule, field) for schedule in drawn}) > 1, field


def test_a_schedule_is_made_short(monkeypatch):
    """Of much that happens, only what it takes is left."""
    import simulator.shrink

    def broken_by_cordon_and_kill(schedule, tell=False):
        kinds = {entry.kind for entry in (*schedule.faults, *schedule.incidents)}
        found = Violation("test", "it") if {"cordon", "kill-after"} <= kinds else None
        return type("Result", (), {"violation": found})

    monkeypatch.setattr(simulator.shrink, "simulate", broken_by_cordon_and_kill)
    long = dataclasses.replace(
        make(8),
        nodes=3,
        runs=(Run("upgrade-1", "upgrade", 3.0, skew=5.0), Run("heal-2", "heal")),
        faults=(Fault("upgrade-1", 3, "kill-after"), Fault("heal-2", 4, "late", 5.0)),
        incidents=(Incident(1.0, "approve", "node-a"), Incident(2.0, "cordon", "node-a")),
    )
    short = shortest(long, "test")
    assert short.length == 3 and len(short.runs) == 1 and short.nodes == 1
    assert [entry.kind for entry in (*short.faults, *short.incidents)] == ["kill-after", "cordon"]


@pytest.mark.parametrize("defect", defects.DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_defect_is_found(defect, tmp_path):
    """By the schedule that a search of at most 100,000 has come to; without the defect it violates nothing."""
    file = defects.FOUND / f"{defect.name}.json"
    assert simulate(Schedule.from_json(file.read_text(encoding="utf-8"))).violation is None
    assert defects.finds(defects.planted(defect, tmp_path), file), f"{json.loads(file.read_text())} no longer finds {defect.why}"


def test_there_are_enough_defects():
    assert len(defects.DEFECTS) >= 15
    assert {file.stem for file in defects.FOUND.glob("*.json")} == {defect.name for defect in defects.DEFECTS}
