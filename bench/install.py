# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a second run of install costs, beside `ansible -m ping` on the same hosts.

Both run with the same settings over connections that are already open, in turns, so that whatever else the machine does
meets both, and the goal is for the ratio of each turn. CPU is that of the controller's processes: ansible-playbook and all it
started. A goal missed is exit status 1.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
GOAL = 6.0  # times the cost of ping
HOSTS = "npu_nodes"


def run(command: list[str]) -> tuple[float, float, str]:
    """Return wall seconds, CPU seconds of the process with all its descendants, and what it printed. Exit if it fails."""
    environ = dict(os.environ, ANSIBLE_CONFIG=str(CHECKOUT / "ansible.cfg"), ANSIBLE_NOCOLOR="1")
    with tempfile.TemporaryFile("w+") as output:
        begun = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environ, cwd=CHECKOUT
        )
        # Unlike RUSAGE_CHILDREN, wait4 tells of this child and its descendants alone.
        _pid, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {process.returncode}\n{text}")
    return wall, usage.ru_utime + usage.ru_stime, text


def changed(recap: str) -> int:
    """Return how many tasks changed something, by the recap of a playbook run."""
    found = [int(number) for number in re.findall(r"^\S+ +: ok=.* changed=(\d+) ", recap, re.MULTILINE)]
    if not found:
        sys.exit(f"no recap in the output of install:\n{recap}")
    return sum(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    state = pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab")
    parser.add_argument("--inventory", default=str(state / "inventory.yml"), help="default: the lab's, %(default)s")
    parser.add_argument("--runs", type=int, default=5, help="of each; default: %(default)s")
    arguments = parser.parse_args()
    ping = ["ansible", "-i", arguments.inventory, HOSTS, "-m", "ansible.builtin.ping"]
    install = ["ansible-playbook", "-i", arguments.inventory, "npuops.ascend.install"]

    # Opens the connections, and gives a host Python that has none. If it changes something, this was a first run, and the next one
    # is the second.
    first = run(install)
    hosts = len(re.findall(r"^\S+ \| SUCCESS", run(ping)[2], re.MULTILINE))
    if not hosts:
        sys.exit(f"no host of the group {HOSTS} answers")
    if changed(first[2]):
        print(f"first run of install: {first[0]:.1f} s wall, {first[1]:.1f} s CPU, {changed(first[2])} changes")

    results: dict[str, list[tuple[float, float]]] = {"ping": [], "install": []}
    for number in range(arguments.runs):
        results["ping"].append(run(ping)[:2])
        wall, cpu, text = run(install)
        if changed(text):
            sys.exit(f"this is no second run, it changed something:\n{text}")
        results["install"].append((wall, cpu))
        print(f"run {number + 1} of {arguments.runs}: ping {results['ping'][-1][0]:.2f} s, install {wall:.2f} s", flush=True)

    print(f"\n{hosts} hosts, medians of {arguments.runs} runs, changed=0 in each run of install")
    print(f"{'':<10}{'wall':>9}{'per host':>10}{'CPU':>9}{'per host':>10}")
    median = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in results.items()}
    for name, (wall, cpu) in median.items():
        print(f"{name:<10}{wall:>7.2f} s{wall / hosts:>8.2f} s{cpu:>7.2f} s{cpu / hosts:>8.2f} s")
    turns = [[install / ping for ping, install in zip(*turn)] for turn in zip(results["ping"], results["install"])]
    ratios = [statistics.median(column) for column in zip(*turns)]
    print(f"install / ping: {ratios[0]:.1f} of the wall time, {ratios[1]:.1f} of the CPU time; the goal is {GOAL:.0f}")
    return int(max(ratios) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
