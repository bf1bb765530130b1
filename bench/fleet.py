# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each additional host costs the controller in status and plan, beside `ansible -m ping` on the same hosts.

The hosts are those of the lab with chips, each under many names, over SSH connections that are already open. What the hosts
themselves spend is not part of it. A goal missed is exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

import yaml
from install import CHECKOUT, run

# Times the CPU time of ping, per additional host. A plan also compares the components, for which it goes through all hosts again.
GOALS = {"status": 0.3, "plan": 0.4}
FEW = 3  # hosts, of which a run costs what any run costs
GROUP = "npu_nodes"


def with_many_names(inventory: str, number: int) -> dict:
    """Return the inventory with ``number`` names for its hosts that have chips."""
    with open(inventory, encoding="utf-8") as file:
        found = yaml.safe_load(file)
    hosts = {name: variables for name, variables in found[GROUP]["hosts"].items() if name.startswith("npu-")}
    if not hosts:
        sys.exit(f"{inventory} has no host whose name begins with npu-")
    names = sorted(hosts)
    found[GROUP]["hosts"] = {
        f"{name}-{index:03d}": dict(hosts[name], npu_node_name=name)
        for index, name in ((index, names[index % len(names)]) for index in range(number))
    }
    return found


def commands(inventory: str, number: int, directory: str) -> dict[str, list[str]]:
    """Return what is measured, for that many hosts."""
    path = pathlib.Path(directory, f"inventory-{number}.json")
    path.write_text(json.dumps(with_many_names(inventory, number)), encoding="utf-8")
    playbook = ["ansible-playbook", "-i", str(path)]
    return {
        "ping": ["ansible", "-i", str(path), GROUP, "-m", "ansible.builtin.ping"],
        "status": [*playbook, "npuops.ascend.status", "-e", f"npu_status_file={directory}/status.json"],
        "plan": [*playbook, "npuops.ascend.plan"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    state = pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab")
    parser.add_argument("--inventory", default=str(state / "inventory.yml"), help="default: the lab's, %(default)s")
    parser.add_argument("--hosts", type=int, default=60, help="how many names; default: %(default)s")
    parser.add_argument("--runs", type=int, default=2, help="of each; default: %(default)s")
    arguments = parser.parse_args()
    if arguments.hosts <= FEW:
        parser.error(f"--hosts must be more than {FEW}")
    with tempfile.TemporaryDirectory() as directory:
        few, many = (commands(arguments.inventory, number, directory) for number in (FEW, arguments.hosts))
        # Opens the connections.
        answering = len(re.findall(r"^\S+ \| SUCCESS", run(many["ping"])[2], re.MULTILINE))
        if answering != arguments.hosts:
            sys.exit(f"only {answering} of {arguments.hosts} hosts answer")
        ratios: dict[str, list[float]] = {name: [] for name in GOALS}
        for number in range(arguments.runs):
            more = {name: run(many[name])[1] - run(few[name])[1] for name in many}
            for name, found in ratios.items():
                found.append(more[name] / more["ping"])
            told = ", ".join(f"{name} {1000 * seconds / (arguments.hosts - FEW):.0f} ms" for name, seconds in more.items())
            print(f"run {number + 1} of {arguments.runs}: {told} of CPU per additional host", flush=True)
    medians = {name: statistics.median(found) for name, found in ratios.items()}
    for name, ratio in medians.items():
        print(f"{name} / ping: {ratio:.2f} of the CPU time per additional host; the goal is {GOALS[name]}")
    return int(any(ratio > GOALS[name] for name, ratio in medians.items()))


if __name__ == "__main__":
    sys.exit(main())
