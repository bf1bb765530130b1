# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the nodes of a rollout, as JSON: from what the cluster says, and what this run was told.

Everything people and machines get to see is rendered from that JSON alone: _report.report_table, _report.junit, _report.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import outcome as maintenance_outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import verdict as maintenance_verdict
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import told_components

# What the cycle calls its outcomes, as people read them; those of the plan read as they are.
SUCCESS, RETURNED, ROLLED_BACK, LEFT, NOT_BEGUN = "upgraded", "returned", "rolled back", "left half-way", "not begun"
RECOVERED = "recovered"
GIVEN_BACK = "given back"  # cordoned already when the rollout was halted, and not rebooted
LATER = "later"  # not tried, as the run was for the first node of each pool only
_DONE: dict[str | None, str] = {maintenance_record.ROLLBACK_REASON: RETURNED, maintenance_record.RECOVERY_REASON: RECOVERED}

# What an outcome comes to. With the first two nothing is left to do now.
PASSED, SKIPPED, WAITING, FAILED = "passed", "skipped", "not-begun", "failed"
_STATUS = {
    SUCCESS: PASSED,
    RETURNED: PASSED,
    RECOVERED: PASSED,
    maintenance_outcome.ANSWERS: PASSED,
    maintenance_outcome.WITHDRAWN: PASSED,
    maintenance_outcome.TOO_SOON: SKIPPED,
    maintenance_verdict.IN_UPGRADE: SKIPPED,
    maintenance_verdict.UP_TO_DATE: PASSED,
    maintenance_verdict.SKIPPED: SKIPPED,
    maintenance_outcome.AWAITING: SKIPPED,
    LATER: SKIPPED,
    NOT_BEGUN: WAITING,
    GIVEN_BACK: WAITING,
}

# Parts of a maintenance for people, each with the steps it consists of.
PARTS = (
    ("EVICT", (maintenance_record.CORDON, maintenance_record.JOBS, maintenance_record.PODS, maintenance_record.DRAIN)),
    ("REBOOT", (maintenance_record.REBOOT,)),
    ("VALIDATE", (maintenance_record.VALIDATION, maintenance_record.UNCORDON)),
    ("BACK", (maintenance_record.ROLLBACK,)),
)
_PART_OF = {step: part for part, steps in PARTS for step in steps}

# Escape sequences of terminals, and what neither XML nor HTML can hold, not even escaped; pods and hosts may say anything.
_UNPRINTABLE = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]|[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Outcomes that need no reason here: of those that wait, the command to approve tells.
_TELL_THEMSELVES = (maintenance_verdict.UP_TO_DATE, maintenance_verdict.SKIPPED, maintenance_outcome.AWAITING)


# Seconds. What ended longer ago is not told of a node that is up to date.
_RECENT = 24 * 3600


# What ``document`` makes, and one of its nodes: JSON, whose fields the module npu_report documents.
Report = dict[str, Any]
ReportedNode = dict[str, Any]


class Row:
    """One node."""

    def __init__(self, host: Mapping[str, Any], planned: dict[str, Any], node: Object | None, run: str, now: float) -> None:
        """``host``: {name, outcome, reason} of npu_outcomes; ``planned``: its entry in the plan; ``node``: Node or None;
        ``now``: seconds since 1970."""
        self.name, self.planned = host["name"], planned
        self.check_mode = host["outcome"] == maintenance_outcome.CHECK_MODE
        self.node_name = planned.get("node") or self.name
        self.node = node
        self.unreadable = None  # why it is unknown what became of the node
        try:
            record, self.last = self._records(node, run)
        except NpuError as exc:
            record, self.last, self.unreadable = None, False, one_line(exc.message)
        self.record = record or {}
        before, after = self.record.get("from") or planned.get("from") or {}, self.record.get("to") or planned.get("to") or {}
        self.before, self.after = before.get("version"), after.get("version")
        self.outcome, self.reason = self._judge(host, node)
        self.earlier = self._earlier(node, run, now) if self.outcome == maintenance_verdict.UP_TO_DATE and node else None
        if self.earlier:
            self.reason = "upgraded from %(from)s by the earlier run %(run)s" % self.earlier

    @staticmethod
    def _records(node: Object | None, run: str) -> tuple[Record | None, bool]:
        """(the record this run has or had on the node, whether it has ended)."""
        if node is None:
            return None, False
        values = kube_client.annotations(node)
        if maintenance_record.ANNOTATION_RECORD in values:
            found = maintenance_record.decode(node)
            return (found, False) if found and found["run"] == run else (None, False)
        maintenance_record.check(node)
        last = maintenance_record.last(node)
        return (last, True) if last.get("run") == run else (None, False)

    def _earlier(self, node: Object, run: str, now: float) -> dict[str, str] | None:
        """{run, from, ended} of another run that brought the driver of late: this one may be its second half. Or None."""
        last = maintenance_record.last(node)
        ended = maintenance_record.seconds_of(last.get("ended"))
        if ended is None or now - ended > _RECENT or last.get("run") == run or last.get("outcome") != "success":
            return None
        before, after = ((last.get(key) or {}).get("version") for key in ("from", "to"))
        if not before or after != self.after:
            return None
        return {"run": last["run"], "from": before, "ended": last["ended"]}

    def _judge(self, host: Mapping[str, Any], node: Object | None) -> tuple[str, str | None]:
        """(outcome, why)."""
        if host["outcome"] is None or self.check_mode:
            if self.planned.get("later"):
                due = self.planned.get("verdict") in maintenance_verdict.DUE
                return LATER, None if due else "; ".join(self.planned.get("reasons") or []) or None
            reasons = self.planned.get("reasons") or self.planned.get("notes") or []
            return self.planned.get("verdict") or "unknown", "; ".join(reasons) or None
        outcome, reason = host["outcome"], host["reason"]
        if self.unreadable:
            return maintenance_outcome.FAILED, ". ".join(text.rstrip(".") for text in (reason, self.unreadable) if text)
        if outcome == maintenance_outcome.DONE:
            return _DONE.get(self.record.get("reason"), SUCCESS), None
        if outcome == maintenance_outcome.FAILED and self.last and self.record.get("outcome") == "rolled-back":
            return ROLLED_BACK, reason
        if outcome == maintenance_outcome.UNDER_WAY:
            return LEFT, reason
        if outcome == maintenance_outcome.HALTED and (self.last or not self.record):
            # Why the rollout is halted is told once.
            if self.record.get("unschedulable") is None:
                return NOT_BEGUN, None
            return GIVEN_BACK, "it was being drained when the rollout was halted; it was not rebooted and keeps its driver"
        return outcome, reason

    def result(self) -> ReportedNode:
        steps = timeline(self.record)
        return {
            "host": self.name,
            "node": self.node_name,
            "from": self.before,
            "to": self.after,
            "firmware": self.planned.get("firmware"),
            "outcome": self.outcome,
            "status": SKIPPED if self.check_mode else _STATUS.get(self.outcome, FAILED),
            "reason": self.reason,
            "seconds": seconds_of_parts(steps),
            "started": self.record.get("started"),
            "ended": self.record.get("ended"),
            "times": self.record.get("times") or {},
            "timeline": steps,
            "approval": self.record.get("approval"),
            "approval_for": self.after or (approval.recovery_of(self.node) if self.node else None),
            "job": self.record.get("job"),
            "earlier": self.earlier,
            "state": maintenance_record.state(self.node) if self.node else None,
        }


def timeline(record: Record) -> list[dict[str, Any]]:
    """The steps a record has gone through, in their order: [{step, part, began, ended}]; each ends where the next begins."""
    begun = {step: maintenance_record.seconds_of(text) for step, text in (record.get("times") or {}).items()}
    order = list(_PART_OF)
    # Two steps may begin in one second.
    marks = [(when, order.index(step)) for step, when in begun.items() if when is not None and step in _PART_OF]
    # What ended is dated; of what has not, the heartbeat is the last that is known.
    end = maintenance_record.seconds_of(record.get("ended")) or maintenance_record.seconds_of(record.get("heartbeat"))
    if not marks or end is None:
        return []
    marks.sort()
    limits = [when for when, _number in marks[1:]] + [max(end, marks[-1][0])]
    return [
        {
            "step": order[number],
            "part": _PART_OF[order[number]],
            "began": maintenance_record.rfc3339(when),
            "ended": maintenance_record.rfc3339(limit),
        }
        for (when, number), limit in zip(marks, limits)
    ]


def seconds_between(began: str, ended: str) -> int:
    return (maintenance_record.seconds_of(ended) or 0) - (maintenance_record.seconds_of(began) or 0)


def seconds_of_parts(steps: list[dict[str, Any]]) -> dict[str, int]:
    """{part: seconds, "TOTAL": seconds} of a timeline, {} of none; parts that have not begun are left out."""
    taken: dict[str, int] = {}
    for step in steps:
        for part in (step["part"], "TOTAL"):
            taken[part] = taken.get(part, 0) + seconds_between(step["began"], step["ended"])
    return {part: taken[part] for part in [name for name, _steps in PARTS] + ["TOTAL"] if part in taken}


def rows(
    hosts: Iterable[Mapping[str, Any]], plan: Mapping[str, Any], nodes: Mapping[str, Object], run: str, now: float
) -> list[Row]:
    """A Row per host, in the order of the plan, then in that of ``hosts``. ``nodes``: Node objects by name; ``now``: seconds
    since 1970."""
    planned, order = plan.get("hosts") or {}, {name: number for number, name in enumerate(plan.get("order") or [])}
    made = []
    for host in hosts:
        entry = planned.get(host["name"]) or {}
        made.append(Row(host, entry, nodes.get(entry.get("node") or host["name"]), run, now))
    return sorted(made, key=lambda row: order.get(row.name, len(order)))


def document(
    all_rows: Iterable[Row],
    run: str,
    reason: str,
    halted: maintenance_halt.Halt | None,
    now: float,
    workloads: dict[str, Any] | None = None,
    components: Mapping[str, Any] | None = None,
) -> Report:
    """The report: a dict of what JSON knows, as the module npu_report documents it.

    ``reason``: upgrade, rollback or recovery; ``halted``: {who, why, when} of the Lease, or None; ``now``: seconds since 1970;
    ``workloads``: {parked, restored, left, problem} of npu_workloads; ``components``: see _report.told_components.
    """
    workloads = workloads or {}
    nodes = [row.result() for row in all_rows]
    steps = [step for node in nodes for step in node["timeline"]]
    started = min((step["began"] for step in steps), default=None)
    ended = max((step["ended"] for step in steps), default=None)
    return {
        "run": run,
        "reason": reason,
        "from": _distinct(nodes, "from"),
        "to": _distinct(nodes, "to"),
        "written": maintenance_record.rfc3339(now),
        "started": started,
        "ended": ended,
        "seconds": seconds_between(started, ended) if started and ended else 0,
        # An upgrade that failed is no reason to call the rollback halted that mended it.
        "halted": halted if maintenance_halt.binds(halted, reason) else None,
        "go_on": _go_on(nodes, reason, halted),
        "approve": _approve(nodes),
        "nodes": nodes,
        "workloads": {
            "parked": workloads.get("parked") or [],
            "restored": workloads.get("restored") or [],
            "left": workloads.get("left") or [],
            "problem": workloads.get("problem") or None,
        },
        "components": told_components.document(components),
    }


def _distinct(nodes: list[ReportedNode], key: str) -> list[str]:
    """The versions of the nodes that were due, each once."""
    due = [node for node in nodes if node["outcome"] not in (maintenance_verdict.UP_TO_DATE, maintenance_verdict.SKIPPED)]
    return sorted({node[key] for node in due if node[key]})


def unfinished(nodes: list[ReportedNode]) -> list[ReportedNode]:
    """Those that did not succeed."""
    return [node for node in nodes if node["status"] in (WAITING, FAILED)]


# By the reason of a run; others are called like it.
_PLAYBOOKS = {maintenance_record.RECOVERY_REASON: "heal"}


def _go_on(nodes: list[ReportedNode], reason: str, halted: maintenance_halt.Halt | None) -> str | None:
    """The command with which to go on, None when no halt is in effect and no node is left."""
    bad, variables = unfinished(nodes), {}
    if maintenance_halt.is_pause(halted) and maintenance_halt.binds(halted, reason):
        return this_run.in_order([this_run.again("resume"), this_run.again(_PLAYBOOKS.get(reason, reason))])
    held = maintenance_halt.binds(halted, reason)
    # What stands in the middle of its maintenance is finished in spite of the halt, and ends it.
    if halted and held and not halted.get("node"):
        variables["npu_upgrade_clear_halt"] = True
    if reason != maintenance_record.RECOVERY_REASON and any(node["state"] == maintenance_record.FAILED for node in bad):
        variables["npu_upgrade_retry"] = True
    return this_run.again(_PLAYBOOKS.get(reason, reason), variables) if bad or held else None


def _approve(nodes: list[ReportedNode]) -> str | None:
    """The command that approves the reboots that wait for it, None when none does. Of several purposes, one after the other."""
    names: dict[str | None, list[str]] = {}
    for node in awaiting(nodes):
        names.setdefault(node["approval_for"], []).append(node["node"])
    return " && ".join(approval.command(names[purpose], purpose) for purpose in names) or None


# --- what the renderers have in common ---


def needs_telling(node: ReportedNode) -> bool:
    """Whether the reason of a node of the JSON is worth reading."""
    return bool(node["reason"]) and (node["outcome"] not in _TELL_THEMSELVES or bool(node["earlier"]))


def awaiting(nodes: list[ReportedNode]) -> list[ReportedNode]:
    """Those that wait for approval."""
    return [node for node in nodes if node["outcome"] == maintenance_outcome.AWAITING]


def approvals_missing(report: Report) -> str:
    """How many of the nodes wait for approval."""
    number = len(awaiting(report["nodes"]))
    return "%s for approval." % ("1 node waits" if number == 1 else "%d nodes wait" % number)


def alike(nodes: Iterable[ReportedNode]) -> list[list[ReportedNode]]:
    """[[node, ...], ...]: what several nodes have in common is told once."""
    grouped: dict[tuple[str, str | None], list[ReportedNode]] = {}
    for node in nodes:
        grouped.setdefault((node["outcome"], node["reason"]), []).append(node)
    return list(grouped.values())


def shown_name(node: ReportedNode) -> str:
    """The name of the node, and that of its host where it is another one."""
    return node["node"] if node["node"] == node["host"] else "%s (%s)" % (node["node"], node["host"])


def how_to_go_on(report: Report) -> str:
    """The text before the command ``go_on``. An option in it says that the cause was fixed."""
    seen_to = any(name in report["go_on"] for name in ("npu_upgrade_clear_halt", "npu_upgrade_retry"))
    return "After fixing this, continue with:" if seen_to else "To continue:"


def printable(text: object) -> str:
    """``text`` without what XML and HTML cannot hold."""
    return _UNPRINTABLE.sub("", str(text))
