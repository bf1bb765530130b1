# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the HTML page says, as plain values: templates/report.html.j2 writes them down and decides nothing."""

from __future__ import annotations

from typing import Any, Iterator

from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking as workload_parking
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import axis as report_axis
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report, told_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import timeline as report_timeline

_KINDS = {
    maintenance_record.UPGRADE_REASON: "Driver upgrade",
    maintenance_record.ROLLBACK_REASON: "Driver rollback",
    maintenance_record.RECOVERY_REASON: "Node recovery",
}
# What asks for action comes first.
_STATUSES = (rollout_report.FAILED, rollout_report.WAITING, rollout_report.PASSED, rollout_report.SKIPPED)
_SYMBOLS = {rollout_report.PASSED: "✓", rollout_report.FAILED: "✕", rollout_report.WAITING: "○", rollout_report.SKIPPED: "–"}


def content(report: dict[str, Any]) -> dict[str, Any]:
    """The variables of the template."""
    taken = [node for node in report["nodes"] if node["timeline"]]
    taken.sort(key=lambda node: node["timeline"][0]["began"])
    kind, way = _KINDS.get(report["reason"], report["reason"]), _way(report)
    status, state = _state(report)
    return {
        "title": "%s: %s" % (" ".join((kind, way)).strip(), state.lower()),
        "kind": kind,
        "way": way,
        "status": status,
        "state": state,
        "facts": _facts(report),
        "banners": list(_banners(report)),
        "counts": _counts(report["nodes"]),
        "timeline": report_timeline.drawn(taken) if taken else None,
        "not_taken": _not_taken([node for node in report["nodes"] if not node["timeline"]]),
        "workloads": _workloads(report["workloads"]),
        "approvals": _approvals(taken),
        "symbols": _SYMBOLS,
        "written": _when(report["written"]),
    }


def _when(text: str | None) -> str:
    """A time of the JSON for people, whatever it is."""
    seconds = maintenance_record.seconds_of(text)
    return str(text) if seconds is None else "%s %s UTC" % (report_axis.date(seconds), report_axis.clock(seconds))


# --- above the timeline ---


def _way(report: dict[str, Any]) -> str:
    """25.5.0 → 25.5.1; empty when nothing was due."""
    ends = [", ".join(report[key]) for key in ("from", "to")]
    return " → ".join(end or "?" for end in ends) if any(ends) else ""


def _state(report: dict[str, Any]) -> tuple[str, str]:
    """(status, the run in a word or two)."""
    nodes = report["nodes"]
    if report["halted"]:
        return rollout_report.FAILED, "Halted"
    problems = told_components.problem(report["components"]) or report["workloads"]["problem"]
    if rollout_report.unfinished(nodes) or problems:
        return rollout_report.FAILED, "Unfinished"
    if rollout_report.awaiting(nodes):
        return rollout_report.WAITING, "Waits for approval"
    if not any(node["timeline"] for node in nodes):
        return rollout_report.SKIPPED, "Nothing was due"
    return rollout_report.PASSED, "Done"


def _facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("Run", report["run"])]
    if report["started"]:
        facts += [
            ("Began", _when(report["started"])),
            ("Until", _when(report["ended"])),
            ("Took", report_axis.words(report["seconds"])),
        ]
    facts.append(("Nodes", str(len(report["nodes"]))))
    components = told_components.line(report["components"])
    if components:
        facts.append(("Components", components.removeprefix("Components: ")))
    return facts


def _banners(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What an administrator has to do."""
    halted, bad = report["halted"], rollout_report.unfinished(report["nodes"])
    if halted:
        yield _banner(
            rollout_report.FAILED,
            "%s: no run starts another node." % maintenance_halt.subject(halted),
            text=halted.get("why"),
            who="By %s, %s." % (halted.get("who"), _when(halted.get("when"))),
            command=_go_on(report),
        )
    elif bad:
        nodes = len(report["nodes"])
        title = "%d of %d node%s did not succeed." % (len(bad), nodes, "" if nodes == 1 else "s")
        yield _banner(rollout_report.FAILED, title, command=_go_on(report))
    components = told_components.problem(report["components"])
    if components:
        yield _banner(rollout_report.FAILED, components)
    if report["workloads"]["problem"]:
        title, *lines = report["workloads"]["problem"].splitlines()
        yield _banner(rollout_report.FAILED, title, lines=[line.strip() for line in lines])
    if report["approve"]:
        title = rollout_report.approvals_missing(report)
        yield _banner(rollout_report.WAITING, title, command=("To approve, then run again:", report["approve"]))


def _banner(
    status: str,
    title: str,
    text: str | None = None,
    who: str | None = None,
    lines: list[str] | None = None,
    command: tuple[str, str] | None = None,
) -> dict[str, Any]:
    return {"status": status, "title": title, "text": text, "who": who, "lines": lines, "command": command}


def _go_on(report: dict[str, Any]) -> tuple[str, str]:
    return rollout_report.how_to_go_on(report), report["go_on"]


def _counts(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many nodes have each outcome."""
    counts = []
    for status in _STATUSES:
        outcomes = [node["outcome"] for node in nodes if node["status"] == status]
        counts += [{"status": status, "outcome": each, "number": outcomes.count(each)} for each in dict.fromkeys(outcomes)]
    return counts


# --- below it ---


def _not_taken(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Nodes without a bar, those with something in common together."""
    nodes = sorted(nodes, key=lambda node: _STATUSES.index(node["status"]))
    return [
        {
            "status": group[0]["status"],
            "outcome": group[0]["outcome"],
            "nodes": _names(group),
            "reason": group[0]["reason"] if rollout_report.needs_telling(group[0]) else "",
            "bad": group[0]["status"] == rollout_report.FAILED,
        }
        for group in rollout_report.alike(nodes)
    ]


def _workloads(workloads: dict[str, Any]) -> list[dict[str, Any]]:
    """What was parked, what it was, and what became of it."""
    left = {entry["object"]: entry["reason"] for entry in workloads["left"]}
    known = {entry["object"]: workload_parking.shown(entry["was"]) for entry in workloads["parked"] + workloads["restored"]}
    restored = {entry["object"] for entry in workloads["restored"]}
    return [
        {
            "name": name,
            "before": known.get(name, ""),
            "status": rollout_report.PASSED if name in restored else rollout_report.WAITING,
            "now": "restored" if name in restored else left.get(name, "still parked"),
        }
        for name in [*known, *(name for name in left if name not in known)]
    ]


def _approvals(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who let which nodes be rebooted."""
    given: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for node in nodes:
        approval = node["approval"]
        if approval:
            key = tuple(approval.get(name) for name in ("by", "manager", "time", "job"))
            given.setdefault(key, []).append(node)
    return [
        {
            "who": (by or "unnamed") + (", with %s" % manager if manager else "") + (", AWX job %s" % job if job else ""),
            "when": _when(when) if when else "",
            "nodes": _names(group),
        }
        for (by, manager, when, job), group in given.items()
    ]


def _names(nodes: list[dict[str, Any]]) -> list[str]:
    return [rollout_report.shown_name(node) for node in nodes]
