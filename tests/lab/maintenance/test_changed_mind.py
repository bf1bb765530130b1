# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run dies, and then the user wants something else, or gives up as the documentation says."""

from __future__ import annotations

import json
import re

import pytest

from support.lab.observer import LAST, RECORD, STATE
from support.lab.rollout import OTHER, TAKEOVER, at_step, proof, run, slots, target, upgrade, version_of, watch
from support.lab.workloads import Team
from support.paths import CHECKOUT

ONE = "--limit=npu-a"


@pytest.fixture
def team(idle):
    with Team(idle, "maintenance-test") as one:
        yield one


@pytest.fixture
def waits(tmp_path):
    """Variables with which a run stays where the driver is validated and not confirmed yet."""
    tasks = [
        {
            "name": "Wait for nobody",
            "ansible.builtin.wait_for": {"path": str(tmp_path / "never"), "timeout": 600},
            "delegate_to": "localhost",
        }
    ]
    (tmp_path / "after.yml").write_text(json.dumps(tasks), encoding="utf-8")
    return {"npu_upgrade_hook_after": str(tmp_path / "after.yml"), "npu_upgrade_heartbeat_limit": 700}


def dies_on_trial(idle, observer, version, waits):
    with run(idle, ONE, npu_driver_version=version, **waits) as one:
        observer.wait(
            lambda sight: sight.name == "npu-a" and bool(sight.record) and "validated" in sight.record["times"], 240, "validated"
        )
        one.controller.kill()


def last(idle) -> dict:
    return json.loads(idle.node("npu-a")["metadata"]["annotations"][LAST])


def test_a_rollback_gives_a_node_back_whose_upgrade_died_in_its_drain(idle, team):
    version = target(idle, "npu-a")
    before = version_of(idle, "npu-a")
    team.deploy("slow", node="npu-a", ends_in=20)
    with watch(idle) as observer:
        with run(idle, ONE, npu_driver_version=version) as one:
            at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
            one.controller.kill()
        text = upgrade(idle, ONE, playbook="rollback", **TAKEOVER)
    assert "withdrawn" in text and last(idle)["outcome"] == "withdrawn", text[-3000:]
    assert version_of(idle, "npu-a") == before
    assert proof(idle, observer, {"npu-a": 0}) == []


def test_a_rollback_takes_a_trial_back(idle, waits):
    version = target(idle, "npu-a")
    before = version_of(idle, "npu-a")
    with watch(idle) as observer:
        dies_on_trial(idle, observer, version, waits)
        upgrade(idle, ONE, playbook="rollback", **TAKEOVER)
    assert (last(idle)["reason"], last(idle)["outcome"]) == ("rollback", "success")
    assert proof(idle, observer, {"npu-a": 2}, before) == []
    assert not slots(idle)["halted"]


def test_given_up_as_the_documentation_says(idle, waits):
    """The driver is on trial; the next upgrade validates and confirms it."""
    version = target(idle, "npu-a")
    row = next(
        line
        for line in (CHECKOUT / "docs/upgrade.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| abandon a node")
    )
    with watch(idle) as observer:
        dies_on_trial(idle, observer, version, waits)
        for command in re.findall("`kubectl ((?:annotate|label|uncordon)[^`]*)`", row):
            idle.kubectl(*command.split())
        node = idle.node("npu-a")
        assert RECORD not in node["metadata"]["annotations"] and STATE not in node["metadata"]["labels"]
        text = upgrade(idle, ONE, npu_driver_version=version, **TAKEOVER)
    assert "on-trial" in text
    # No command of kubectl takes the conditions away; the next run does.
    found = proof(idle, observer, {"npu-a": 1}, version)
    assert [problem for problem in found if not problem.endswith("and nothing on it says why")] == []
    conditions = {one["type"] for one in idle.node("npu-a")["status"]["conditions"]}
    assert conditions.isdisjoint({"MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "Drained"})
    assert OTHER[version] != version_of(idle, "npu-a")
