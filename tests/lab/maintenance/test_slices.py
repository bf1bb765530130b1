# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout in two slices, as two job slices of AWX run it on two controllers: both controllers die, and one run finishes it."""

from __future__ import annotations

import pytest

from support.crash.gate import Fate, Gate
from support.lab.rollout import TAKEOVER, proof, run, target, upgrade, watch
from support.lab.workloads import Team

# Of different kinds, so that neither waits for the other one to prove the driver.
SLICES = ("npu-a", "npu-c")
COMMON = {"npu_upgrade_max_parallel": len(SLICES)}
# At which call each of the two controllers dies: before it reaches its target, or after it has.
MOMENTS = {
    "begin and reboot": ((Fate.KILL_AFTER, "slots:NODE"), (Fate.KILL_AFTER, "npu_trial_boot rebooted")),
    "cordon and end": ((Fate.KILL_BEFORE, "maintenance:cordon-required"), (Fate.KILL_AFTER, "last-maintenance")),
    "drain and confirmation": ((Fate.KILL_AFTER, "eviction"), (Fate.KILL_BEFORE, "npu_trial_boot confirmed")),
}


@pytest.fixture(name="team")
def _team(idle):
    with Team(idle, "slices-test") as one:
        for node in SLICES:
            one.deploy(f"on-{node}", node=node)
        yield one


@pytest.mark.parametrize("moments", MOMENTS.values(), ids=MOMENTS)
def test_both_controllers_die(idle, team, moments):
    version = target(idle, *SLICES)
    gates = [Gate(at, fate, node=node) for node, (fate, at) in zip(SLICES, moments)]
    with watch(idle) as observer:
        with run(idle, f"--limit={SLICES[0]}", gate=gates[0], npu_driver_version=version, **COMMON) as first:
            with run(idle, f"--limit={SLICES[1]}", gate=gates[1], npu_driver_version=version, **COMMON) as second:
                for one in (first, second):
                    one.wait()
                    assert one.controller.killed, f"no call was like {one.gate.at}: {one.gate.record()}\n{one.text[-4000:]}"
        text = upgrade(idle, "--limit=" + ",".join(SLICES), npu_driver_version=version, **COMMON, **TAKEOVER)
        assert proof(idle, observer, dict.fromkeys(SLICES, 1), version, max_parallel=len(SLICES)) == [], text[-4000:]
