# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an upgrade of a large fleet costs the controller and the API server, and how much longer it takes than drains and reboots.

The playbooks, Ansible and the API server are real. The hosts answer at once over a connection of the benchmark and take a given
time to reboot; pods take a given time to end. So the controller's share of the time and of the CPU shows, without ssh. Some nodes
have a pod that a budget protects, and on some the new driver does not work: those are rolled back.

A node takes its drain and its reboot, so this many at once are done at a rate that nothing can exceed; the first node of its kind
goes alone. What a run costs that finds nothing due is paid once, however many nodes follow, and is not counted per node. A goal
missed is exit status 1.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import sys
import tempfile

from fleet_run import playbook, publish, run, write_inventory  # isort: skip  (makes the checkout importable)
from rollout_cluster import Cluster, peak
from rollout_hosts import Host, Hosts

from support.fleet.hosts import NEW, release
from support.host.registry_server import Registry

GOALS = {"ratio": 1.10, "cpu": 2.0, "requests": 125.0, "peak": 200.0, "memory": 60.0}

UNITS = {
    "ratio": "of drains and reboots",
    "cpu": "s of CPU per node",
    "requests": "requests per node",
    "peak": "requests/s at the peak",
    "memory": "MB per node in maintenance",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--parallel", type=int, default=50, help="nodes in maintenance at once; default: %(default)s")
    parser.add_argument(
        "--drain",
        type=float,
        default=30,
        help="seconds that pods take to end, first those with chips, then the others; default: %(default)s",
    )
    parser.add_argument("--reboot", type=float, default=240, help="seconds that a host takes to boot; default: %(default)s")
    parser.add_argument("--broken", type=int, default=2, help="hosts on which the new driver does not work; default: %(default)s")
    parser.add_argument("--stuck", type=int, default=2, help="nodes with a pod that may not be evicted; default: %(default)s")
    parser.add_argument("--keep", type=pathlib.Path, help="for the output of the playbooks and the audit log; default: nowhere")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        return measure(arguments, arguments.keep or pathlib.Path(place), pathlib.Path(place))


def measure(arguments: argparse.Namespace, directory: pathlib.Path, place: pathlib.Path) -> int:
    names = [f"n{number:04d}" for number in range(arguments.nodes)]
    # Not the first one, which is confirmed before any other one begins.
    stuck, broken = set(names[1 : 1 + arguments.stuck]), set(names[-arguments.broken :] if arguments.broken else ())
    directory.mkdir(parents=True, exist_ok=True)
    with Registry() as registry, Cluster(place, arguments.drain, directory / "audit.log") as cluster:
        digest = publish(registry)
        hosts = {name: Host(name, arguments.reboot, lambda host: cluster.told(host.name, host.boot_id, host.up)) for name in names}
        for name in broken:
            hosts[name].broken = {release(NEW, digest)}
        cluster.fill(names, stuck)
        write_inventory(directory, cluster, registry, names)
        os.environ["NPU_BENCH_HOSTS"] = str(place / "hosts")
        with Hosts(place / "hosts", hosts):
            return upgrade(arguments, directory, cluster, hosts)


def upgrade(arguments: argparse.Namespace, directory: pathlib.Path, cluster: Cluster, hosts: dict[str, Host]) -> int:
    settings = {
        "npu_driver_version": NEW,
        "npu_upgrade_auto": True,
        "npu_upgrade_max_parallel": arguments.parallel,
        "npu_upgrade_max_failures": arguments.broken + 1,
        "npu_upgrade_on_blocked": "defer",
    }
    nothing = run(directory, "plan", playbook("plan", **settings), arguments.parallel + 5)
    before = len(cluster.asked())
    wall, cpu, memory = run(directory, "upgrade", playbook("upgrade", **settings), arguments.parallel + 5)
    asked = cluster.asked()[before:]
    done = sum(host.boots > 0 for host in hosts.values())
    wanted = arguments.nodes - arguments.stuck
    if done != wanted:
        print((directory / "upgrade.txt").read_text()[-5000:])
        sys.exit(f"{done} of {wanted} hosts were rebooted")
    # Pods with chips leave first.
    each = 2 * arguments.drain + arguments.reboot + 5
    rounds = 1 + max(0, -(-(wanted - 1) // arguments.parallel))
    # Those on which the driver does not work boot twice, and are among the last.
    least = rounds * each + (arguments.reboot + 5 if arguments.broken else 0)
    found = {
        "ratio": (wall - nothing[0]) / least,
        "cpu": (cpu - nothing[1]) / wanted,
        "requests": len(asked) / wanted,
        "peak": peak(asked),
        "memory": memory / arguments.parallel,
    }
    print(f"{arguments.nodes} nodes, {arguments.parallel} at once, drain {arguments.drain:.0f} s, reboot {arguments.reboot:.0f} s")
    print(f"plan: {nothing[0]:.1f} s, {nothing[1]:.1f} s of CPU, {nothing[2]:.0f} MB")
    rate = wanted / wall * 3600
    print(f"upgrade: {wall:.0f} s, of which drains and reboots {least:.0f} s; {rate:.0f} nodes an hour; {memory:.0f} MB")
    for name, value in found.items():
        print(f"  {value:8.2f} {UNITS[name]}, the goal is {GOALS[name]}")
    for what, count in collections.Counter(what for _when, what in asked).most_common(8):
        print(f"    {count / wanted:6.1f} {what}")
    return int(any(value > GOALS[name] for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())
