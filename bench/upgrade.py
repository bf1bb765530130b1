# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rolling upgrade costs beyond its drains and reboots, beside the plain way (bench/plain_upgrade.yml), on the lab.

Drains and reboots vary fivefold between the three nodes: pods that take their time to end, hosts that take theirs to boot.
How long each took is read off the cluster and the hosts, not off the playbook: a drain from the cordon to the reboot's
intent, a reboot from there until the node is Ready in its new boot and its driver has loaded.

With as many slots as nodes, the longest node is what the whole takes; the ratio is against that then. What a run costs that finds
nothing due is not part of the ratio: three nodes would share what a thousand share elsewhere.

CPU is the controller's. What a run costs that finds nothing due (facts of all hosts, the plan, the report) is paid once,
however many nodes follow; per node counts what comes on top of it. What lies beyond drain and reboot shows in the run
without either: its hosts boot in seconds, and nothing has to leave.

The goals are seconds of a machine on which `ansible -m ping` of these nodes takes as long as REFERENCE says. It is measured beside
each run, and a machine that is slower or busier gets as much more time for what is not drain or reboot. A goal missed is exit
status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT / "tests"))

from install import run  # noqa: E402

from support.lab.lab import Lab  # noqa: E402
from support.lab.observer import Observer  # noqa: E402
from support.lab.rollout import NPU_NODES, OTHER, ROOT, reset, version_of, watch  # noqa: E402
from support.lab.workloads import Team  # noqa: E402

GOAL_WALL, GOAL_CPU, GOAL_RATIO = 4.0, 1.5, 1.10  # seconds per node, seconds per node, of the drains and reboots
# Seconds of a run that finds nothing due: about 0.8 for Ansible's start, 1.4 for the hosts, 0.8 to compare the components with
# their definitions, and 0.7 for the plan and the report.
GOAL_NOTHING = 4.0
REFERENCE = (0.9, 0.6)  # seconds and CPU seconds of a ping
SHARES = (1, 3, 5)  # how the nodes' times relate


def spans(lab: Lab, observer: Observer, node: str) -> tuple[float, float]:
    """Seconds of drain and of reboot of a node."""
    cordon = intent = back = None
    first = None
    for sight in observer.timeline:
        if sight.kind != "node" or sight.name != node:
            continue
        first = first or sight.boot_id
        ready = any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in sight.object["status"].get("conditions", ())
        )
        if sight.cordoned and cordon is None:
            cordon = sight.when
        if sight.record and sight.record.get("boot_id") and intent is None:
            intent = sight.when
        if sight.boot_id != first and ready and back is None:
            back = sight.when
    if None in (cordon, intent, back):
        sys.exit(f"{node} was not seen to drain and reboot: {cordon} {intent} {back}")
    # The hosts of the lab have the clock of this machine.
    loaded = float(lab.ssh(node, "stat --format=%.Y /run/npuops/driver-ready").stdout)
    return intent - cordon, max(back, loaded) - intent


def prepare(lab: Lab, team: Team, mean: float) -> None:
    """Each node gets a pod that takes half of its time to end, and takes the other half to boot. With 0, neither."""
    reset(lab)
    if not mean:
        return
    for node, share in zip(NPU_NODES, SHARES, strict=True):
        seconds = round(mean * share / (sum(SHARES) / len(SHARES)) / 2)
        team.deploy(f"on-{node}", node=node, ends_in=seconds)
        lab.fault(node, "slow-boot", str(seconds))


def upgrade(lab: Lab, version: str, parallel: int) -> tuple[float, float, dict[str, tuple[float, float]]]:
    """Wall and CPU seconds of the run, and each node's drain and reboot."""
    with watch(lab) as observer:
        wall, cpu, _text = run(
            [
                "ansible-playbook",
                "-i",
                str(lab.inventory),
                "npuops.ascend.upgrade",
                "--limit=" + ",".join(NPU_NODES),
                "-e",
                json.dumps({"npu_driver_version": version, "npu_upgrade_auto": True, "npu_upgrade_max_parallel": parallel}),
            ]
        )
    return wall, cpu, {node: spans(lab, observer, node) for node in NPU_NODES}


def slowness(lab: Lab) -> tuple[float, float]:
    """How many times as long as REFERENCE a ping takes now, in wall and CPU time; at least 1."""
    ping = run(["ansible", "-i", str(lab.inventory), ",".join(NPU_NODES), "-m", "ansible.builtin.ping"])
    return max(1.0, ping[0] / REFERENCE[0]), max(1.0, ping[1] / REFERENCE[1])


def nothing_due(lab: Lab) -> tuple[float, float, float]:
    """Wall and CPU seconds of a run that finds all nodes as they should be, and how slow the machine was meanwhile. In turns."""
    command = [
        "ansible-playbook",
        "-i",
        str(lab.inventory),
        "npuops.ascend.upgrade",
        "--limit=" + ",".join(NPU_NODES),
        "-e",
        json.dumps({"npu_driver_version": version_of(lab, NPU_NODES[0]), "npu_upgrade_auto": True}),
    ]
    run(command)  # SSH connections are there then
    turns = [(*run(command)[:2], slowness(lab)[0]) for _number in range(3)]
    wall, cpu, slow = (statistics.median(column) for column in zip(*turns))
    return wall, cpu, slow


def plain(lab: Lab, version: str) -> tuple[float, float]:
    """Wall and CPU seconds of the plain way."""
    releases = {
        node: next(name for name in lab.ssh(node, f"ls {ROOT}/releases").stdout.split() if name.startswith(version + "-"))
        for node in NPU_NODES
    }
    return run(
        [
            "ansible-playbook",
            "-i",
            str(lab.inventory),
            str(CHECKOUT / "bench" / "plain_upgrade.yml"),
            "--limit=" + ",".join(NPU_NODES),
            "-e",
            json.dumps({"plain_releases": releases}),
        ]
    )[:2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mean", type=float, default=60, help="seconds of a node's drain and reboot; default: %(default)s")
    parser.add_argument("--parallel", type=int, nargs="*", default=[1, 3], help="default: 1 3")
    arguments = parser.parse_args()
    lab = Lab(pathlib.Path(os.environ.get("NPU_LAB_STATE") or CHECKOUT / ".lab"))
    missed = False
    try:
        with Team(lab, "bench") as team:
            reset(lab)
            # Both releases on all hosts: neither way downloads anything in what is measured.
            version = version_of(lab, NPU_NODES[0])
            for wanted in (OTHER[version], version):
                run(
                    [
                        "ansible-playbook",
                        "-i",
                        str(lab.inventory),
                        "npuops.ascend.upgrade",
                        "--limit=" + ",".join(NPU_NODES),
                        "-e",
                        json.dumps({"npu_driver_version": wanted, "npu_upgrade_auto": True, "npu_upgrade_max_parallel": 0}),
                    ]
                )
            print(f"{len(NPU_NODES)} nodes, drains and reboots of about {arguments.mean:.0f} s that vary fivefold\n")
            once = nothing_due(lab)
            goal = GOAL_NOTHING * once[2]
            print(f"a run that finds nothing due: {once[0]:.1f} s (goal {goal:.1f} s), {once[1]:.1f} s of CPU\n")
            missed |= once[0] > goal
            print(f"{'':<24}{'wall':>9}{'drains+reboots':>16}{'ratio':>8}{'over, per node':>16}{'CPU':>9}{'CPU per node':>14}")
            for mean, parallel in [(0, 1)] + [(arguments.mean, count) for count in arguments.parallel]:
                prepare(lab, team, mean)
                version = OTHER[version_of(lab, NPU_NODES[0])]
                slow = slowness(lab)
                wall, cpu, nodes = upgrade(lab, version, parallel)
                slow = tuple(max(both) for both in zip(slow, slowness(lab)))
                each = [drain + reboot for drain, reboot in nodes.values()]
                least = max(sum(each) / parallel, max(each))
                over, per_node = wall - once[0] - least, (cpu - once[1]) / len(NPU_NODES)
                over /= len(NPU_NODES) if parallel == 1 else 1
                what = f"upgrade, parallel {parallel}" if mean else "no drain, quick boots"
                ratio = (wall - once[0]) / least
                told = f"{what:<24}{wall:>7.1f} s{least:>14.1f} s{ratio:>8.2f}{over:>14.1f} s{cpu:>7.1f} s{per_node:>12.1f} s"
                print(told, flush=True)
                for node, (drain, reboot) in nodes.items():
                    print(f"    {node}: drain {drain:.1f} s, reboot {reboot:.1f} s")
                # A ratio to next to nothing says nothing; and CPU in waits is not beyond them.
                most = 1 + (GOAL_RATIO - 1) * slow[0]
                missed |= ratio > most if mean else per_node > GOAL_CPU * slow[1]
                missed |= parallel == 1 and over > GOAL_WALL * slow[0]
                goals = f"{GOAL_WALL * slow[0]:.1f} s over, {GOAL_CPU * slow[1]:.1f} s of CPU per node"
                print(f"    goals here: {f'ratio {most:.2f}, ' if mean else ''}{goals}")
            prepare(lab, team, arguments.mean)
            version = OTHER[version_of(lab, NPU_NODES[0])]
            wall, cpu = plain(lab, version)
            print(f"{'the plain way':<24}{wall:>7.1f} s{'':>14}  {'':>8}{'':>14}  {cpu:>7.1f} s{cpu / len(NPU_NODES):>12.1f} s")
    finally:
        reset(lab)
    print(
        f"goals where a ping takes {REFERENCE[0]} s and {REFERENCE[1]} s of CPU: ratio {GOAL_RATIO:.2f}, {GOAL_WALL:.0f} s over"
        f" and {GOAL_CPU} s of CPU per node, {GOAL_NOTHING} s for a run that finds nothing due"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
