# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a schedule that breaks an invariant as short as it gets, while it still breaks the same one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from simulator.schedule import Run, Schedule
from simulator.simulation import simulate

_MOST_TRIES = 600


def shortest(schedule: Schedule, name: str) -> Schedule:
    """The shortest Schedule that still violates the invariant ``name``: no single simplification of it does any more."""
    tries = 0
    changed = True
    while changed and tries < _MOST_TRIES:
        changed = False
        for candidate in _simpler(schedule):
            tries += 1
            violation = simulate(candidate).violation
            if violation is not None and violation.name == name:
                schedule, changed = candidate, True
                break
            if tries >= _MOST_TRIES:
                break
    return schedule


def _simpler(schedule: Schedule) -> Iterator[Schedule]:
    """What is left when one thing is left out, the largest first; then with one thing more usual."""
    replace = dataclasses.replace
    for field in ("runs", "incidents", "faults", "workloads", "wedged", "bad", "incurable", "lost_ports"):
        entries = getattr(schedule, field)
        for number in range(len(entries)):
            fewer = entries[:number] + entries[number + 1 :]
            if field == "runs" and not fewer:
                continue
            yield replace(schedule, **{field: fewer})
    if schedule.nodes > 1:
        names = schedule.names[:-1]
        if all(entry.node in names for entry in schedule.incidents):
            kept = {
                field: tuple(name for name in getattr(schedule, field) if name in names)
                for field in ("bad", "wedged", "incurable", "lost_ports")
            }
            yield replace(schedule, nodes=schedule.nodes - 1, **kept)
    usual = Schedule()
    for field in ("eager", "firmware", "flash_fails", "bad_newer", "tells_kernel", "host_skew", "chatty", "zone"):
        if getattr(schedule, field) != getattr(usual, field):
            yield replace(schedule, **{field: getattr(usual, field)})
    for number, run in enumerate(schedule.runs):
        for plainer in _plainer(run):
            yield replace(schedule, runs=(*schedule.runs[:number], plainer, *schedule.runs[number + 1 :]))
    for number, workload in enumerate(schedule.workloads):
        for changes in ({"replicas": 1}, {"spare": None}, {"grace": 1.0}, {"tolerates": False}, {"chips": 1}):
            plain = replace(workload, **changes)
            if plain != workload:
                yield replace(schedule, workloads=(*schedule.workloads[:number], plain, *schedule.workloads[number + 1 :]))


def _plainer(run: Run) -> Iterator[Run]:
    usual = Run(run.name, run.kind)
    fields = ("skew", "steps", "park", "retry", "clear_halt", "hook_fails", "limit", "slots", "auto", "start")
    for field in (
        *fields,
        "newer",
        "max_failures",
        "storm_percent",
        "jobs",
        "window",
        "soak",
        "domain",
        "least",
        "alert_at",
        "alert_for",
    ):
        if getattr(run, field) != getattr(usual, field):
            yield dataclasses.replace(run, **{field: getattr(usual, field)})
