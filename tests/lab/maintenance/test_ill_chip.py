# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A chip that was not OK before the upgrade: the node is upgraded, and serves with its other chips."""

from __future__ import annotations

import pytest

from support.lab.observer import STATE
from support.lab.rollout import OTHER, proof, slots, upgrade, version_of, watch
from support.patience import PATIENCE

NODE, RESOURCE, CHIPS = "npu-c", "huawei.com/Ascend310P", 4
ILL = "NPU 2944 chip 0 (0000:c1:00.0): Warning"


@pytest.fixture
def ill(idle):
    """The lab with a node one of whose chips has a fault, for which the device plugin withdraws it."""
    idle.fault(NODE, "alarm", "0", "80E18005", "Warning")
    offers(idle, CHIPS - 1)
    yield idle
    idle.fault(NODE, "clear")
    offers(idle, CHIPS)


def offers(lab, count: int) -> None:
    lab.wait_for(
        lambda: lab.node(NODE)["status"]["allocatable"].get(RESOURCE) == str(count), PATIENCE, f"{NODE} offers {count} chips"
    )


def test_a_chip_that_was_ill_before_takes_no_other_out_of_service(ill):
    version = OTHER[version_of(ill, NODE)]
    plan = " ".join(ill.playbook("plan", f"--limit={NODE}", "-e", f"npu_driver_version={version}").stdout.split())
    assert f"chips that are not OK: {ILL}" in plan and "blocked" not in plan, plan
    with watch(ill) as observer:
        told = upgrade(ill, f"--limit={NODE}", npu_driver_version=version)
    assert proof(ill, observer, {NODE: 1}, version) == []
    assert f"goes on with chips that are not OK: {ILL}" in told, told
    assert STATE not in ill.node(NODE)["metadata"]["labels"] and not slots(ill)["halted"]
    offers(ill, CHIPS - 1)
    status = " ".join(ill.playbook("status").stdout.split())
    assert f"{CHIPS - 1} of {CHIPS} chips are allocatable; {ILL}" in status, status
