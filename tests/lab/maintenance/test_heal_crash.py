# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller dies at call k of a recovery, for every k: the next run finishes, and the node has rebooted once.

As test_crash.py, with a wedged node instead of a new driver. The table of what was done is in .cache/results/heal-crash.json.
"""

from __future__ import annotations

import functools
import os
import time

import pytest

from support.crash import every_crash
from support.crash.every_crash import FATES
from support.crash.gate import Fate, Gate
from support.lab.healing import ANYWAY, heal, healing, wait_well, wedge
from support.lab.rollout import NPU_NODES, TAKEOVER, proof, watch
from support.lab.workloads import Team

DARK = 30
NODES = os.environ.get("NPU_CRASH_NODES", ",".join(NPU_NODES)).split(",")
pytestmark = pytest.mark.usefixtures("quick_agents")


@pytest.fixture
def pods(idle):
    """One pod on each node that has to leave it. It has nowhere else to go, and comes back afterwards."""
    with Team(idle, "crash-test") as team:
        for node in NODES:
            team.deploy(f"on-{node}", node=node, budget={"maxUnavailable": 1})
        yield team


def crash(lab, team: Team, node: str, fate: Fate, at: int | str) -> dict:
    """One recovery with a crash, and the run after it. What was wrong is in `problems`."""
    foreign = (len(at) if isinstance(at, str) else at + FATES.index(fate)) % 2 == 0
    lab.kubectl("uncordon", node)
    team.wait_available(f"on-{node}", 1)
    if foreign:
        lab.kubectl("cordon", node)
    wedge(lab, node)
    gate = Gate(at, fate, dark=DARK, node=node)
    common = {**ANYWAY, "npu_heal_max_parallel": 0, "npu_upgrade_max_parallel": len(NODES)}
    begun = time.monotonic()
    with watch(lab) as observer:
        problems = []
        with healing(lab, f"--limit={node}", gate=gate, **common) as first:
            status = first.wait()
        if gate.dead or (fate in (Fate.DARK_BEFORE, Fate.DARK_AFTER) and status != 0):
            with healing(lab, f"--limit={node}", **common, **TAKEOVER) as second:
                if second.wait() != 0:
                    problems.append(f"the second run fails: {second.text[-3000:]}")
        elif status != 0:
            problems.append(f"exit status {status} without a crash: {first.text[-3000:]}")
        wait_well(lab, node)
        problems += proof(lab, observer, {node: 1}, max_parallel=0, only=node)
    return {
        "node": node,
        "fate": fate.value,
        **gate.record(),
        "foreign_cordon": foreign,
        "seconds": round(time.monotonic() - begun, 1),
        "problems": problems,
    }


def reference(lab, node: str) -> list[str]:
    """The calls of a recovery that nothing disturbs."""
    gate = Gate(node=node)
    wedge(lab, node)
    with watch(lab) as observer:
        text = heal(lab, f"--limit={node}", gate=gate, **ANYWAY, npu_upgrade_max_parallel=len(NODES))
        wait_well(lab, node)
        assert proof(lab, observer, {node: 1}, only=node) == [], text[-3000:]
    return [call.what for call in gate.calls]


@pytest.mark.parametrize("fate", FATES, ids=lambda fate: fate.value)
def test_a_crash_where_the_slots_are_made(idle, pods, fate):
    """Which happens once in the life of a cluster: by one of the nodes, so that this cannot be one crash among many."""
    result = crash(idle, pods, NODES[0], fate, 1)
    assert result["problems"] == []
    assert result["call"].startswith("POST") and "/leases" in result["call"]


def test_every_crash_of_a_recovery_is_survived(idle, pods):
    calls = []
    if every_crash.needs_calls():
        calls = [call for call in reference(idle, NODES[0]) if not call.startswith("POST coordination.k8s.io")]
        assert len(calls) > 5, calls  # or the proxies see nothing
    every_crash.try_all(functools.partial(crash, idle, pods), calls, NODES, "heal-crash.json")
