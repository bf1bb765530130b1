# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status and plan of a fleet of thousands take, beside `ansible -m ping` of the same hosts: time, CPU and memory.

Playbooks, Ansible, API server, Nodes and pods are real; the hosts answer at once, so that no ssh is counted, for us or for ping.
A goal missed is exit status 1.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import tempfile

from fleet_run import playbook, publish, run, write_inventory  # isort: skip  (makes the checkout importable)
from rollout_cluster import Cluster
from rollout_hosts import Host, Hosts

from support.fleet.hosts import NEW
from support.host.registry_server import Registry

# Seconds and megabytes of one command for that many nodes, with 30 pods each.
GOALS = {1000: (15.0, 250.0), 5000: (60.0, 600.0)}
PODS = 30
FORKS = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--keep", type=pathlib.Path, help="for the output of the commands and the audit log; default: nowhere")
    arguments = parser.parse_args()
    names = [f"n{number:04d}" for number in range(arguments.nodes)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        place = pathlib.Path(directory)
        kept = arguments.keep or place
        kept.mkdir(parents=True, exist_ok=True)
        with Registry() as registry, Cluster(place, 0, kept / "audit.log") as cluster:
            publish(registry)
            cluster.fill_at_once(names, PODS)
            write_inventory(kept, cluster, registry, names)
            os.environ["NPU_BENCH_HOSTS"] = str(place / "hosts")
            with Hosts(place / "hosts", {name: Host(name, 0, lambda _host: None) for name in names}):
                return measure(kept, cluster, arguments.nodes)


def measure(directory: pathlib.Path, cluster: Cluster, nodes: int) -> int:
    commands = {
        "ping": ["ansible", "npu_nodes", "-m", "ansible.builtin.ping"],
        "status": playbook("status", npu_status_file=str(directory / "fleet.json")),
        "plan": playbook("plan", npu_driver_version=NEW),
    }
    missed = False
    for name, command in commands.items():
        before = len(cluster.asked())
        wall, cpu, memory = run(directory, name, command, FORKS)
        asked = len(cluster.asked()) - before
        print(f"{nodes} nodes, {name}: {wall:.1f} s, {cpu:.1f} s of CPU, {memory:.0f} MB, {asked} requests", flush=True)
        if name != "ping" and nodes in GOALS:
            seconds, megabytes = GOALS[nodes]
            missed = missed or wall > seconds or memory > megabytes
            print(f"  the goal is {seconds:.0f} s, {megabytes:.0f} MB")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
