# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as aligned lines for people."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import columns as data_columns
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_plan import RolloutPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import BLOCKED, DUE, UP_TO_DATE

_COLUMNS = ("#", "NODE", "CHIPS", "FROM", "TO", "EVICTIONS", "VERDICT")


def table(plan: RolloutPlan) -> list[str]:
    """The plan as aligned lines: heading, one line per host, reasons and notes beneath, the summary last."""
    entries = plan.ordered + [entry for entry in plan.entries if entry.order is None]
    rows = [_COLUMNS] + [_row(entry) for entry in entries]
    lines = data_columns.aligned(rows)
    why = plan_lines.shared((entry.name, entry.why) for entry in entries if entry.why)
    notes = plan_lines.shared((entry.name, entry.notes) for entry in entries if entry.notes)
    cluster = [
        "cluster: %s" % text for text in plan.cluster_reasons if not plan.halted or text != maintenance_halt.text(plan.halted)
    ]
    if plan.halted:
        cluster.append(_halted(plan, plan.halted, why))
    notes = ["cluster: %s" % text for text in plan.cluster_notes] + notes
    for title, block in (
        ("Blockers:", cluster + why),
        ("Components:", plan.components.lines(bool(plan.of(*DUE)))),
        ("Notes:", notes),
    ):
        if block:
            lines += ["", title] + ["  " + text for text in block]
    return lines + ["", plan.summary]


def _halted(plan: RolloutPlan, halted: dict[str, Any], told: list[str]) -> str:
    """``told``: the other lines. The reason mostly is that a node failed, and stands there."""
    text, why = "%s since %s by %s" % (maintenance_halt.word(halted), halted["when"], halted["who"]), one_line(halted["why"])
    text += "." if any(why in line for line in told) else ": %s." % why
    return "%s %s" % (text, maintenance_halt.ways_out(halted)) if plan.held else text


def _row(entry: PlannedNode) -> tuple[str, ...]:
    name = entry.node_name if entry.node_name == entry.name else "%s (%s)" % (entry.node_name, entry.name)
    count = entry.facts.get("chip_count")
    chips = "%d x %s" % (count, entry.checked.family.get("name")) if count else "-"
    leaving = entry.evictions["npu"] + entry.evictions["other"]
    return (
        str(entry.order or "-"),
        name,
        chips,
        entry.loaded_version or "-",
        _wanted(entry) or "-",
        "%d (%d NPU)" % (leaving, entry.evictions["npu"]) if leaving else "-",
        entry.verdict + _remark(entry),
    )


def _remark(entry: PlannedNode) -> str:
    """What a verdict alone would hide."""
    if entry.verdict == UP_TO_DATE and entry.wedged:
        return ", wedged"
    return ", first of its kind" if entry.canary else ", later" if entry.later else ""


def _wanted(entry: PlannedNode) -> str | None:
    """The version it is to get, as far as that is known."""
    if entry.target:
        return entry.target["version"]
    return entry.checked.config["driver_version"] if entry.verdict == BLOCKED and entry.checked.wants_driver else None
