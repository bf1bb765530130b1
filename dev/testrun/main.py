# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""First the checks that need no lab; if all of them passed, the tests on labs, and the unit tests beside them; at the end, the labs
that this run started go."""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path

import count

from . import plan
from .labs import Labs
from .runner import Interrupted, Queue, Runner

# More than the cores of a small machine: who waits for a time-out or a reboot leaves the cores to others.
WORKERS = 3
LAB_TAIL = 80  # what molecule has said is longer than what a test runner says last


def main(checkout: Path, env: dict[str, str], runner: Runner | None = None) -> int:
    runner = runner or Runner(checkout, tail=int(env.get("STEP_TAIL") or 40))
    labs = Labs(checkout, {**env, "NPU_CRASH": plan.CRASHES}, runner)
    with runner.signals():
        try:
            status = run(checkout, env, runner, labs)
        except Interrupted:
            status = 130
        except plan.PlanError as error:
            print(error, file=sys.stderr)
            status = 1
        finally:
            runner.end()
            gone = labs.down()
    return status if gone else status or 1


def run(checkout: Path, env: dict[str, str], runner: Runner, labs: Labs) -> int:
    """Two halves. Each is a queue, so that its workers end at about the same time; all of it runs, so that one run shows all."""
    results = checkout / ".cache" / "results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    if not runner.alone("venv", ["dev/venv"], env):
        return 1  # nothing else can run
    newest, oldest = plan.lab_tests(checkout, results)

    runner.say("Checks:")
    before, beside = plan.checks(checkout, env)
    checks = Queue(before)
    for _ in range(WORKERS):
        runner.work(checks, lambda last: env)
    if not runner.workers_done():
        runner.say("The checks above failed; the labs were not used.")
        return 1

    runner.say(f"On the labs, and beside them {plan.BESIDE}:")
    runner.tail = LAB_TAIL
    runner.work(Queue(beside), lambda last: env)
    if labs.oldest is None:
        newest += [check for check in oldest if check.name not in plan.AGAIN]
    queue, queue_of_oldest = Queue(newest), Queue(oldest)
    for number in labs.numbers:
        # One after the other: the first one builds what all of them need.
        if not labs.up(number):
            return 1
        runner.work(queue_of_oldest if number == labs.oldest else queue, functools.partial(labs.env, number))
    if not runner.workers_done():
        return 1
    return count.main([str(file) for file in sorted(results.glob("*.xml"))])
