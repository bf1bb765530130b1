# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller dies at call k, for every k: the next run finishes, and the node has rebooted once.

A maintenance of one node with one pod that has to leave. All mutating calls count, those to the API and those to the host.
At call k = 1, 2, ... until a run ends without reaching k, the controller is killed before the call reaches its target
(`kill-before`) and right after it did (`kill-after`), or the API is gone for some time without the call (`dark-before`) or
after it (`dark-after`). Every other time the node was cordoned by another client, whose cordon must stay.

What a run of the tests covers is chosen by the environment: tests/support/crash/every_crash.py.
make test crashes at three calls (dev/test). The table of what was done is in .cache/results/crash.json.
"""

from __future__ import annotations

import functools
import os
import time

import pytest

from support.crash import every_crash
from support.crash.every_crash import FATES
from support.crash.gate import Fate, Gate
from support.lab.rollout import NPU_NODES, OTHER, TAKEOVER, proof, run, upgrade, version_of, watch
from support.lab.workloads import Team

DARK = 30
NODES = os.environ.get("NPU_CRASH_NODES", ",".join(NPU_NODES)).split(",")


def crash(lab, team: Team, node: str, fate: Fate, at: int | str) -> dict:
    """One maintenance with a crash, and the run after it. What was wrong is in `problems`."""
    version = OTHER[version_of(lab, node)]
    foreign = (len(at) if isinstance(at, str) else at + FATES.index(fate)) % 2 == 0
    lab.kubectl("uncordon", node)
    team.wait_available(f"on-{node}", 1)
    if foreign:
        lab.kubectl("cordon", node)
    gate = Gate(at, fate, dark=DARK, node=node)
    common = {"npu_driver_version": version, "npu_upgrade_max_parallel": len(NODES)}
    begun = time.monotonic()
    with watch(lab) as observer:
        problems = []
        with run(lab, f"--limit={node}", gate=gate, **common) as first:
            status = first.wait()
        if gate.dead or (fate in (Fate.DARK_BEFORE, Fate.DARK_AFTER) and status != 0):
            with run(lab, f"--limit={node}", **common, **TAKEOVER) as second:
                if second.wait() != 0:
                    problems.append(f"the second run fails: {second.text[-3000:]}")
        elif status != 0:
            problems.append(f"exit status {status} without a crash: {first.text[-3000:]}")
        problems += proof(lab, observer, {node: 1}, version, max_parallel=0, only=node)
    return {
        "node": node,
        "fate": fate.value,
        **gate.record(),
        "foreign_cordon": foreign,
        "seconds": round(time.monotonic() - begun, 1),
        "problems": problems,
    }


@pytest.fixture
def pods(idle):
    """One pod on each node that has to leave it. It has nowhere else to go, and comes back afterwards."""
    with Team(idle, "crash-test") as team:
        for node in NODES:
            team.deploy(f"on-{node}", node=node, budget={"maxUnavailable": 1})
        yield team


def reference(lab, node: str) -> list[str]:
    """The calls of a maintenance that nothing disturbs."""
    gate = Gate(node=node)
    with watch(lab) as observer:
        version = OTHER[version_of(lab, node)]
        text = upgrade(lab, f"--limit={node}", gate=gate, npu_driver_version=version, npu_upgrade_max_parallel=len(NODES))
        assert proof(lab, observer, {node: 1}, version, only=node) == [], text[-3000:]
    return [call.what for call in gate.calls]


@pytest.mark.core
def test_every_crash_is_survived(idle, pods):
    calls = []
    if every_crash.needs_calls():
        # The second one: both releases are staged then, as for every crash.
        reference(idle, NODES[0])
        calls = reference(idle, NODES[0])
        assert len(calls) > 5, calls  # or the proxies see nothing
    every_crash.try_all(functools.partial(crash, idle, pods), calls, NODES, "crash.json")
