# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rollout as text, rendered from its JSON (_report.rollout_report)."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import columns as data_columns
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report, told_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.rollout_report import Report, ReportedNode

_PARTS = tuple(name for name, _steps in rollout_report.PARTS) + ("TOTAL",)
_COLUMNS = ("NODE", "FROM", "TO", "OUTCOME") + _PARTS
_TEXTS = len(_COLUMNS) - len(_PARTS)  # the columns that are not durations
_MOST_NAMES = 8


def table(report: Report) -> list[str]:
    """Aligned lines: heading, a line per node; then why, where something is to be told; then how to approve."""
    nodes = report["nodes"]
    cells = [_COLUMNS] + [_cells(node) for node in nodes]
    # A column without any value is not shown.
    columns = [number for number in range(len(_COLUMNS)) if number < _TEXTS or any(row[number] != "-" for row in cells[1:])]
    shown = [[row[number] for number in columns] for row in cells]
    lines = data_columns.aligned(shown, right=range(_TEXTS, len(columns)))
    told = rollout_report.alike(node for node in nodes if rollout_report.needs_telling(node))
    if told:
        lines.append("")
        lines += ["%s: %s" % (_names(group), group[0]["reason"]) for group in told]
    components = told_components.line(report["components"])
    return lines + (["", components] if components else []) + _awaiting(report)


def _cells(node: ReportedNode) -> tuple[str, ...]:
    took = tuple("%d s" % node["seconds"][part] if part in node["seconds"] else "-" for part in _PARTS)
    return (rollout_report.shown_name(node), node["from"] or "-", node["to"] or "-", node["outcome"]) + took


def _names(nodes: list[ReportedNode]) -> str:
    names = ", ".join(node["host"] for node in nodes[:_MOST_NAMES])
    return "%s and %d more" % (names, len(nodes) - _MOST_NAMES) if len(nodes) > _MOST_NAMES else names


def _awaiting(report: Report) -> list[str]:
    """How to approve, for those that wait for it; [] when none does."""
    if not report["approve"]:
        return []
    return ["", "%s To approve, then run again:" % rollout_report.approvals_missing(report), "  " + report["approve"]]


def problem(report: Report) -> str | None:
    """Why the run did not do all it was asked to, and what to do; None when it did."""
    problems = (_problem_of_nodes(report), told_components.problem(report["components"]), report["workloads"]["problem"])
    return "\n".join(text for text in problems if text) or None


def _problem_of_nodes(report: Report) -> str | None:
    """With the one command to go on."""
    bad, halted = rollout_report.unfinished(report["nodes"]), report["halted"]
    if not bad:
        return None
    lines = ["%d of %d nodes did not succeed:" % (len(bad), len(report["nodes"]))]
    for group in rollout_report.alike(bad):
        why = group[0]["reason"]
        lines.append("  %s: %s%s" % (_names(group), group[0]["outcome"], ", " + why.rstrip(".") if why else ""))
    if halted:
        why = halted["why"].rstrip(".")
        known = any((node["reason"] or "").rstrip(".") == why for node in bad)
        lines.append("%s since %s%s" % (maintenance_halt.subject(halted), halted["when"], "." if known else ": %s." % why))
    lines.append("%s %s" % (rollout_report.how_to_go_on(report), report["go_on"]))
    return "\n".join(lines)
