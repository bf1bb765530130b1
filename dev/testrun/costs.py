# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has cost, in CPU seconds: each part beside its budget, and the tests that cost most."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

from .plan import Part

TOLERANCE = 1.2  # times its budget, which a part may cost
MOST = 10  # tests that are shown


def machine() -> float:
    """Return the CPU seconds that this machine has spent since it started: with those of labs, which are no children of ours."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n", maxsplit=1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, _steal = ticks
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def over(parts: Iterable[Part], costs: dict[str, float], slowness: float) -> list[str]:
    """Return a line for each part that cost more than it may."""
    return [
        f"OVER BUDGET: {part.name} cost {costs[part.name]:.0f} CPU s, and its budget on this machine is "
        f"{part.budget * slowness:.0f}: find what brought it, or raise it in dev/testrun/plan.py"
        for part in parts
        if costs.get(part.name, 0.0) > part.budget * slowness * TOLERANCE
    ]


def table(parts: Iterable[Part], costs: dict[str, float], slowness: float, spent: float, results: Iterable[Path]) -> list[str]:
    """Return what people see at the end.

    :param slowness: CPU seconds that this machine needs for one of the reference
    :param spent: CPU seconds of the whole machine during the run
    :param results: JUnit files, in which tests/support/cpu_of_tests.py has put the CPU seconds of each test
    """
    lines = [f"CPU seconds of each part, with its children; a budget's second takes {slowness:.2f} s on this machine:"]
    lines += [f"  {costs[part.name]:7.0f} of {part.budget * slowness:5.0f}  {part.name}" for part in parts if part.name in costs]
    lines += [f"  {sum(costs.values()):7.0f}           all; {spent:.0f} with the labs and everything else on this machine"]
    lines += ["The most expensive tests, in CPU seconds:"]
    lines += [f"  {seconds:7.1f}  {name}" for seconds, name in _tests(results)[:MOST]]
    return lines


def _tests(results: Iterable[Path]) -> list[tuple[float, str]]:
    found = []
    for path in results:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            seconds = [float(entry.get("value", 0)) for entry in case.iter("property") if entry.get("name") == "cpu"]
            found.append((sum(seconds), f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"))
    return sorted(found, reverse=True)
