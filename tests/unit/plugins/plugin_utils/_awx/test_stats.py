# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is handed on stays small, and says what a workflow goes by."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_stats import npu_stats
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import verdict as maintenance_verdict
from ansible_collections.npuops.ascend.plugins.test.npu_rollout_failed import npu_rollout_failed

from support.fleet import reports


def plan_of(count):
    hosts = {
        "n%d" % number: {"verdict": maintenance_verdict.BLOCKED if number % 2 else maintenance_verdict.READY}
        for number in range(count)
    }
    return {
        "green": False,
        "summary": "So it is.",
        "counts": {"ready": count // 2, "skipped": 0},
        "estimate_seconds": 60,
        "halted": None,
        "hosts": hosts,
        "order": [name for name in hosts if hosts[name]["verdict"] == maintenance_verdict.READY],
    }


def test_plan():
    assert npu_stats(plan_of(4), "plan") == {
        "green": False,
        "summary": "So it is.",
        "counts": {"ready": 2},
        "estimate_seconds": 60,
        "halted": False,
        "due": ["n0", "n2"],
        "stuck": ["n1", "n3"],
    }


def test_a_thousand_nodes_are_a_few_lines():
    assert len(json.dumps(npu_stats(plan_of(1000), "plan"))) < 2000
    many = reports.success(1000)
    assert len(json.dumps(npu_stats(many, "rollout"))) < 2000 and npu_stats(many, "rollout")["counts"] == {"upgraded": 1000}


def test_rollout():
    found = npu_stats(reports.halted(), "rollout")
    assert found["halted"] is True and found["unfinished"] and "npu_upgrade_clear_halt=true" in found["go_on"]
    waiting = npu_stats(reports.awaiting(), "rollout")
    assert waiting["awaiting"] and waiting["approve"].startswith("kubectl annotate node ") and waiting["unfinished"] == []


def test_nobody_was_unwell():
    assert npu_stats(None, "recovery") == {"reason": "recovery", "counts": {}, "unfinished": [], "awaiting": []}


def test_fleet():
    rows = [
        {"host": "a", "node": "a", "state": "ready"},
        {"host": "b", "node": "b", "state": "invalid"},
        {"host": None, "node": "foreign", "state": "not in the inventory"},
    ]
    assert npu_stats({"fleet": rows, "storm": None}, "status") == {
        "healthy": False,
        "counts": {"ready": 1, "invalid": 1, "not in the inventory": 1},
        "storm": None,
        "not_well": ["b"],
    }


def test_a_kind_that_nobody_knows():
    with pytest.raises(AnsibleFilterError, match="knows install, plan, .*not weather"):
        npu_stats({}, "weather")


@pytest.mark.parametrize(
    ("rollout", "failed"),
    [
        (npu_stats(reports.halted(), "rollout"), True),
        (npu_stats(reports.success(3), "rollout"), False),
        (npu_stats(reports.awaiting(), "rollout"), False),
        ({}, False),
        ("", False),
        (None, False),
    ],
)
def test_only_nodes_that_failed_are_a_reason_to_ask_for_a_rollback(rollout, failed):
    assert npu_rollout_failed(rollout) is failed
