# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many schedules on all cores, and what they came to."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import gc
import os
import time
from collections.abc import Iterable, Sequence

from simulator.schedule import make
from simulator.simulation import simulate

_CHUNK = 250
# Schedules.
_COLLECT = 50


@dataclasses.dataclass
class Tally:
    """``violations``: (seed, the invariant's name, what was wrong); ``states``: combinations of what the nodes' labels said;
    ``seconds``: of wall time."""

    schedules: int = 0
    calls: int = 0
    states: set[tuple[str, ...]] = dataclasses.field(default_factory=set)
    violations: list[tuple[int, str, str]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        self.schedules += other.schedules
        self.calls += other.calls
        self.states |= other.states
        self.violations += other.violations


def run(seeds: Sequence[int], jobs: int | None = None) -> Tally:
    """The Tally of the schedules of ``seeds``. ``jobs``: processes, by default one for each core."""
    started, tally = time.monotonic(), Tally()
    jobs = jobs or len(os.sched_getaffinity(0))
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(_some, chunks):
            tally.add(part)
    tally.violations.sort()
    tally.seconds = time.monotonic() - started
    return tally


def _some(seeds: Iterable[int]) -> Tally:
    tally = Tally()
    # What a schedule leaves in cycles is little, and looking for it all the time costs a tenth of the time.
    gc.disable()
    gc.freeze()
    for number, seed in enumerate(seeds):
        if number % _COLLECT == 0:
            gc.collect()
        result = simulate(make(seed))
        tally.schedules += 1
        tally.calls += result.calls
        tally.states |= result.states
        if result.violation is not None:
            tally.violations.append((seed, result.violation.name, str(result.violation)))
    return tally
