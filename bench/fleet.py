# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status and plan of many hosts cost the controller, beside `ansible -m ping` on the same hosts.

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

GOAL = 0.3  # times the CPU time of ping
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    state = pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab")
    parser.add_argument("--inventory", default=str(state / "inventory.yml"), help="default: the lab's, %(default)s")
    parser.add_argument("--hosts", type=int, default=120, help="how many names; default: %(default)s")
    parser.add_argument("--runs", type=int, default=3, help="of each; default: %(default)s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "inventory.json")
        path.write_text(json.dumps(with_many_names(arguments.inventory, arguments.hosts)), encoding="utf-8")
        ping = ["ansible", "-i", str(path), GROUP, "-m", "ansible.builtin.ping"]
        commands = {"ping": ping}
        for playbook in ("status", "plan"):
            more = ["-e", f"npu_status_file={directory}/status.json"] if playbook == "status" else []
            commands[playbook] = ["ansible-playbook", "-i", str(path), f"npuops.ascend.{playbook}", *more]
        # Opens the connections.
        answering = len(re.findall(r"^\S+ \| SUCCESS", run(ping)[2], re.MULTILINE))
        if answering != arguments.hosts:
            sys.exit(f"only {answering} of {arguments.hosts} hosts answer")
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(arguments.runs):
            for name, command in commands.items():
                spent[name].append(run(command)[1])
            told = ", ".join(f"{name} {seconds[-1]:.1f} s" for name, seconds in spent.items())
            print(f"run {number + 1} of {arguments.runs}: {told} of CPU", flush=True)
    ratios = {
        name: statistics.median(one / ping for one, ping in zip(spent[name], spent["ping"], strict=True))
        for name in commands
        if name != "ping"
    }
    for name, ratio in ratios.items():
        print(f"{name} / ping, {arguments.hosts} hosts: {ratio:.2f} of the CPU time; the goal is {GOAL}")
    return int(max(ratios.values()) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
