# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads parked for a rollout, and restored to exactly what they were, whatever comes between."""

from __future__ import annotations

import pytest
from rollout import OTHER, proof, upgrade, version_of, watch
from workloads import A2, Team

NODE = "npu-a"
MARK = "npuops.ascend/parked"


@pytest.fixture
def team(idle):
    with Team(idle, "parking-test") as one:
        yield one


def test_a_budget_is_in_nobodys_way(idle, team):
    team.deploy("web", 2, node=NODE, chips={A2: 1}, ends_in=3, budget={"minAvailable": 2})
    version = OTHER[version_of(idle, NODE)]
    text = upgrade(idle, f"--limit={NODE}", expect=1, npu_driver_version=version)
    assert "allows no disruption now" in text
    with watch(idle) as observer:
        text = upgrade(idle, f"--limit={NODE}", npu_driver_version=version, npu_upgrade_workloads="park")
    assert "1 workload will be parked" in text, text
    assert proof(idle, observer, {NODE: 1}, version) == []
    found = idle.get("deployment", "web", "-n", team.name)
    assert found["spec"]["replicas"] == 2
    assert MARK not in found["metadata"].get("labels", {}) and MARK not in found["metadata"]["annotations"]
    team.wait_available("web", 2)
