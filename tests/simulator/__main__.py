# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""python -m simulator: see README.md in this directory."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from simulator import campaign, defects
from simulator.schedule import Schedule, make
from simulator.shrink import shortest
from simulator.simulation import simulate

HERE = Path(__file__).resolve().parent
# What CI runs: always the same ones, and some that were never run before.
FIXED, FRESH = 4000, 500


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator", description="Simulate fleets and what can happen to them.")
    parser.add_argument("--seeds", help="a number of schedules, from seed 0 on, or FIRST-LAST")
    parser.add_argument("--seed", type=int, help="tell the schedule of this seed as a story; the shortest one if it fails")
    parser.add_argument("--schedule", type=Path, help="tell the schedule in this file as a story")
    parser.add_argument("--whole", action="store_true", help="with --seed: do not shorten a schedule that fails")
    parser.add_argument("--shorten", type=Path, metavar="FILE", help="with --seed: write the shortest schedule that fails to FILE")
    parser.add_argument("--hunt", nargs="*", metavar="NAME", help="search schedules that find the planted defects (all, or these)")
    arguments = parser.parse_args()
    if arguments.hunt is not None:
        return hunt(arguments.hunt, seeds_of(arguments.seeds or "100000"))
    if arguments.schedule:
        return story(Schedule.from_json(arguments.schedule.read_text(encoding="utf-8")))
    if arguments.seed is not None:
        return tell(arguments.seed, arguments.whole, arguments.shorten)
    if arguments.seeds:
        return report(campaign.run(seeds_of(arguments.seeds)))
    fresh = int(time.time()) * 1000
    print(f"The fixed seeds 0-{FIXED - 1}, and {FRESH} fresh ones from {fresh} on:", flush=True)
    return report(campaign.run([*range(FIXED), *range(fresh, fresh + FRESH)]))


def seeds_of(text: str) -> range:
    first, dash, last = text.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(text))


def report(tally: campaign.Tally) -> int:
    rate = tally.schedules / tally.seconds
    print(
        f"{tally.schedules} schedules in {tally.seconds:.0f} s ({rate:.0f} a second), {tally.calls} calls"
        f" ({tally.calls / tally.seconds:.0f} a second), {len(tally.states)} states of the fleet"
    )
    names = sorted({name for _seed, name, _text in tally.violations})
    for name in names:
        found = [(seed, text) for seed, other, text in tally.violations if other == name]
        print(f"FAILED {name}: {len(found)} schedules")
        for seed, text in found[:5]:
            print(f"  make simulate SEED={seed}    {text}")
    if not names:
        print("No invariant was violated.")
    return 1 if names else 0


def tell(seed: int, whole: bool, file: Path | None) -> int:
    schedule = make(seed)
    violation = simulate(schedule).violation
    if violation is not None and not whole:
        before = schedule.length
        schedule = shortest(schedule, violation.name)
        print(f"Seed {seed} has {before} events; the shortest schedule that fails in the same way has {schedule.length}:\n")
        if file is not None:
            file.write_text(schedule.to_json() + "\n", encoding="utf-8")
    return story(schedule)


def story(schedule: Schedule) -> int:
    print(schedule.to_json())
    result = simulate(schedule, tell=True)
    print("\n".join(result.story))
    return 1 if result.violation is not None else 0


def hunt(names: list[str], seeds: range) -> int:
    """For each planted defect the first seed that finds it; its shortest schedule goes to found/."""
    missing = 0
    for defect in defects.DEFECTS:
        if names and defect.name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="simulator-") as directory:
            tree = defects.planted(defect, Path(directory))
            told = defects.search(tree, seeds)
        if told is None:
            missing += 1
            print(f"{defect.name:36}  not found in {len(seeds)} schedules", flush=True)
            continue
        file = defects.FOUND / f"{defect.name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(told["schedule"], indent=1) + "\n", encoding="utf-8")
        print(f"{defect.name:36}  seed {told['seed']:6}  {told['length']} events  {told['violation']}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
