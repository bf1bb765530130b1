# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a suite: each lab does its parts one after another, the checks that need none share what the labs leave of the processor,
and the labs that this run started go. All of it runs, so that one run shows all."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import count

from . import console, costs, plan, speed
from .labs import Labs
from .plan import Part, Place
from .runner import Interrupted, Queue, Runner

# Of checks without a lab at once: the unit tests use all cores, most others use one.
WORKERS = 2
# They leave the processor to the labs, which have time limits, and still progress: a test that waits for a reboot does not use it.
NICE = ("nice", "-n", "18")
SUITES = {"test": plan.test, "test-all": plan.test_all}


def main(
    checkout: Path,
    arguments: list[str],
    env: dict[str, str],
    runner: Runner | None = None,
    measure: Callable[[], float] = speed.slowness,
) -> int:
    """
    :param arguments: nothing for `make test`, or the name of a suite
    :param measure: what measures how slow this machine is
    """
    runner = runner or Runner(checkout, tail=int(env.get("STEP_TAIL") or 80))
    labs = Labs(checkout, env, runner)
    with runner.signals():
        try:
            status = run(checkout, (arguments or ["test"])[0], env, runner, labs, measure)
        except Interrupted:
            status = 130
        except plan.PlanError as error:
            print(error, file=sys.stderr)
            status = 1
        finally:
            runner.end()
            gone = labs.down()
    return status if gone else status or 1


def run(checkout: Path, suite: str, env: dict[str, str], runner: Runner, labs: Labs, measure: Callable[[], float]) -> int:
    begun, slowness = costs.machine(), measure()
    results = checkout / ".cache" / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    if not runner.alone("venv", ["dev/venv"], env):
        return 1  # nothing else can run
    parts = plan.only(plan.shard(SUITES[suite](checkout, results), env.get("NPU_SHARD", "")), env.get("NPU_PARTS", ""))

    def of(place: Place) -> list[Part]:
        return [part for part in parts if part.place is place]

    checks = Queue(replace(part, command=(*NICE, *part.command)) for part in of(Place.NO_LAB))
    for _ in range(WORKERS):
        runner.work(checks, functools.partial(labs.env, Place.NO_LAB))

    def on_lab(place: Place) -> bool:
        """Start the lab and a worker with its parts; False if it does not start."""
        if of(place) and not labs.up(place):
            runner.say(f"  not run, without a lab: {', '.join(part.name for part in of(place))}")
            return False
        runner.work(Queue(of(place)), functools.partial(labs.env, place))
        return True

    # One lab after the other: the first one builds what all of them need.
    started = [on_lab(place) for place in (Place.NEWEST, Place.ROLLOUTS, Place.OLDEST)]
    runner.work(Queue(of(Place.OWN)), functools.partial(labs.env, Place.OWN))
    well = runner.workers_done()
    started.append(on_lab(Place.ALONE))
    well = runner.workers_done() and well and all(started)

    files = sorted(results.glob("*.xml"))
    # What else happens on the machine may have changed meanwhile. A machine that is faster than the reference has the same budgets.
    slowness = max(1.0, slowness, measure())
    too_much = costs.over(parts, runner.costs, slowness)
    runner.say("\n".join([*costs.table(parts, runner.costs, slowness, costs.machine() - begun, files), *too_much]))
    counted = count.main([str(file) for file in files]) if files else 0
    for line in console.again(runner.failed):
        runner.say(line)
    return 0 if well and not too_much and not counted else 1
