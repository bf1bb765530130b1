# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import drift

from support.fleet.metrics import row
from support.fleet.reports import HALTED

DO = "npuops.ascend.status shows what to do about each."


def test_a_fleet_in_order():
    """A host without chips is, and what is not in the inventory does not count."""
    assert drift.lines([row("a"), row("b", "no chip"), row("c", "unknown", host=None)], None, None, None) == []
    assert drift.lines([], None, None, None) == []


def test_each_node_is_named_with_its_reason():
    rows = [row("a"), row("b", "wedged", reason="npu-smi hangs"), row("c", "no plugin", host="web-3")]
    assert drift.lines(rows, None, None, None) == [
        "2 of 3 hosts are not healthy. " + DO,
        "b: wedged: npu-smi hangs",
        "web-3: no plugin",
    ]
    assert drift.lines(rows[:2], None, None, None)[0] == "1 of 2 hosts is not healthy. " + DO


@pytest.mark.parametrize(
    ("halted", "summary"),
    [
        (HALTED, "Rollouts are halted. "),
        (maintenance_halt.paused(None, "ann", "a storm", "2026-11-23T10:00:00Z"), "Rollouts are paused. "),
    ],
)
def test_a_halt(halted, summary):
    assert drift.lines([row("a")], None, halted, None) == [summary + DO, maintenance_halt.text(halted)]


def test_all_at_once():
    told = drift.lines([row("b", "wedged")], "2 of 3 nodes wedged.", None, "Whether rollouts are halted is unknown: no permission")
    assert told == [
        "1 of 1 hosts is not healthy; whether rollouts are halted is unknown; there is a storm. " + DO,
        "b: wedged",
        "Whether rollouts are halted is unknown: no permission",
        "STORM: 2 of 3 nodes wedged.",
    ]
