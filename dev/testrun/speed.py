# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How slow this machine is beside the reference, so that budgets of CPU seconds hold on both."""

from __future__ import annotations

import os
import subprocess
import sys

REFERENCE = 0.4  # CPU seconds of WORK on the reference, an AMD EPYC with two cores, both busy with it
ROUNDS = 3
# What most parts do: Python that makes objects, texts and dictionaries.
WORK = """
import json
data = {str(number): [number, {"name": "n%d" % number}] for number in range(2000)}
for _ in range(80):
    assert json.loads(json.dumps(data, indent=1)) == data
"""


def slowness() -> float:
    """Return how many CPU seconds this machine needs for one of the reference, all cores busy. The worst of some rounds counts."""
    return max(_round() for _ in range(ROUNDS)) / REFERENCE


def _round() -> float:
    processes = [subprocess.Popen([sys.executable, "-S", "-c", WORK]) for _ in range(len(os.sched_getaffinity(0)))]
    seconds = []
    for process in processes:
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds.append(usage.ru_utime + usage.ru_stime)
    return sum(seconds) / len(seconds)
