# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the nodes of a roll-out: from what the cluster says, and what this run was told.

Runs on the controller. Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _cycle_work, _maintenance, _plan

# What the cycle calls its outcomes, as people read them; those of the plan read as they are.
SUCCESS, RETURNED, ROLLED_BACK, LEFT, NOT_BEGUN = "upgraded", "returned", "rolled back", "left half-way", "not begun"

# Parts of a maintenance for people, each with the steps it consists of.
PARTS = (
    ("EVICT", (_maintenance.CORDON, _maintenance.JOBS, _maintenance.PODS, _maintenance.DRAIN)),
    ("REBOOT", (_maintenance.REBOOT,)),
    ("VALIDATE", (_maintenance.VALIDATION, _maintenance.UNCORDON)),
    ("BACK", (_maintenance.ROLLBACK,)),
)
_COLUMNS = ("NODE", "FROM", "TO", "OUTCOME") + tuple(name for name, _steps in PARTS) + ("TOTAL",)

# Outcomes with which nothing is left to do.
_FINE = (SUCCESS, RETURNED, _plan.UP_TO_DATE, _plan.SKIPPED, _cycle_work.AWAITING, "skipped")


# Outcomes that need no reason here: of those that wait, ``awaiting`` tells.
_TELL_THEMSELVES = (_plan.UP_TO_DATE, _plan.SKIPPED, _cycle_work.AWAITING)


class Row:
    """One node. ``ended``: seconds since 1970, or None; ``seconds``: {part: seconds}."""

    def __init__(self, host, planned, node, run):
        """``host``: {name, outcome, reason} of npu_outcomes; ``planned``: its entry in the plan; ``node``: Node or None."""
        self.name, self.planned = host["name"], planned
        self.node_name = planned.get("node") or self.name
        self.node = node
        record, self.last = self._records(node, run)
        self.record = record or {}
        before, after = self.record.get("from") or planned.get("from") or {}, self.record.get("to") or planned.get("to") or {}
        self.before, self.after = before.get("version"), after.get("version")
        self.outcome, self.reason = self._judge(host, node)
        self.seconds = seconds_of_parts(self.record) if self.record else {}

    @staticmethod
    def _records(node, run):
        """(the record this run has or had on the node, whether it has ended)."""
        if node is None:
            return None, False
        values = _cluster.annotations(node)
        if _maintenance.ANNOTATION_RECORD in values:
            found = _maintenance.decode(node)
            return (found, False) if found["run"] == run else (None, False)
        last = _maintenance.last(node)
        return (last, True) if last.get("run") == run else (None, False)

    def _judge(self, host, node):
        """(outcome, why)."""
        if host["outcome"] is None:
            reasons = self.planned.get("reasons") or self.planned.get("notes") or []
            return self.planned.get("verdict") or "unknown", "; ".join(reasons) or None
        outcome, reason = host["outcome"], host["reason"]
        if outcome == _cycle_work.DONE:
            return RETURNED if self.record.get("reason") == _maintenance.ROLLBACK_REASON else SUCCESS, None
        if outcome == _cycle_work.FAILED and self.last and self.record.get("outcome") == "rolled-back":
            return ROLLED_BACK, reason
        if outcome == _cycle_work.UNDER_WAY:
            return LEFT, reason
        if outcome == _cycle_work.HALTED and (self.last or not self.record):
            return NOT_BEGUN, None  # why the roll-out is halted is told once
        return outcome, reason

    @property
    def fine(self):
        return self.outcome in _FINE

    def result(self):
        return {
            "host": self.name,
            "node": self.node_name,
            "from": self.before,
            "to": self.after,
            "outcome": self.outcome,
            "reason": self.reason,
            "seconds": self.seconds,
            "started": self.record.get("started"),
            "ended": self.record.get("ended"),
            "times": self.record.get("times") or {},
            "approval": self.record.get("approval"),
            "state": _maintenance.state(self.node) if self.node else None,
        }


def seconds_of_parts(record):
    """{part: seconds, "TOTAL": seconds} of a record; parts that have not begun are left out."""
    begun = {step: _maintenance.seconds_of(text) for step, text in (record.get("times") or {}).items()}
    steps = [name for _part, names in PARTS for name in names]
    # Two steps may begin in one second.
    marks = [(when, step) for step, when in begun.items() if when is not None and step in steps]
    marks.sort(key=lambda mark: (mark[0], steps.index(mark[1])))
    # What ended is dated; of what has not, the heartbeat is the last that is known.
    end = _maintenance.seconds_of(record.get("ended")) or _maintenance.seconds_of(record.get("heartbeat"))
    if not marks or end is None:
        return {}
    marks.append((max(end, marks[-1][0]), None))
    taken = {}
    for (when, step), (following, _next) in zip(marks, marks[1:]):
        taken[step] = taken.get(step, 0) + following - when
    found = {}
    for part, names in PARTS:
        if any(name in taken for name in names):
            found[part] = sum(taken.get(name, 0) for name in names)
    found["TOTAL"] = marks[-1][0] - marks[0][0]
    return found


def rows(hosts, plan, nodes, run):
    """A Row per host, in the order of the plan, then in that of ``hosts``. ``nodes``: Node objects by name."""
    planned, order = plan.get("hosts") or {}, {name: number for number, name in enumerate(plan.get("order") or [])}
    made = []
    for host in hosts:
        entry = planned.get(host["name"]) or {}
        made.append(Row(host, entry, nodes.get(entry.get("node") or host["name"]), run))
    return sorted(made, key=lambda row: order.get(row.name, len(order)))


def table(all_rows):
    """Aligned lines: heading, a line per node, then why, where something is to be told."""
    cells = [_COLUMNS] + [_cells(row) for row in all_rows]
    # A column nobody has anything in is not shown.
    columns = [number for number in range(len(_COLUMNS)) if number < 4 or any(row[number] != "-" for row in cells[1:])]
    widths = {number: max(len(row[number]) for row in cells) for number in columns}
    lines = []
    for row in cells:
        texts = (row[n].rjust(widths[n]) if n >= 4 else row[n].ljust(widths[n]) for n in columns)
        lines.append("  ".join(texts).rstrip())
    told = _shared(row for row in all_rows if row.reason and row.outcome not in _TELL_THEMSELVES)
    if told:
        lines.append("")
        lines += ["%s: %s" % (names, reason) for names, _outcome, reason in told]
    return lines


def _shared(some_rows):
    """(names, outcome, reason); what several nodes have in common is told once."""
    grouped = {}
    for row in some_rows:
        grouped.setdefault((row.outcome, row.reason), []).append(row.name)
    return [
        (", ".join(names[:8]) + (" and %d more" % (len(names) - 8) if len(names) > 8 else ""), outcome, reason)
        for (outcome, reason), names in grouped.items()
    ]


def _cells(row):
    name = row.node_name if row.node_name == row.name else "%s (%s)" % (row.node_name, row.name)
    took = tuple("%d s" % row.seconds[part] if part in row.seconds else "-" for part in _COLUMNS[4:])
    return (name, row.before or "-", row.after or "-", row.outcome) + took


def problem(all_rows, halted, reason, partly=False):
    """Why the run did not do all it was asked to, and the one command to go on; None when it did.

    ``halted``: {who, why, when} of the Lease; ``reason``: upgrade or rollback; ``partly``: whether some hosts were left out.
    """
    bad = [row for row in all_rows if not row.fine]
    if not bad:
        return None
    lines = ["%d of %d nodes did not get there:" % (len(bad), len(all_rows))]
    for names, outcome, why in _shared(bad):
        lines.append("  %s: %s%s" % (names, outcome, ", " + why.rstrip(".") if why else ""))
    if halted:
        why = halted["why"].rstrip(".")
        known = any((row.reason or "").rstrip(".") == why for row in bad)
        lines.append("The roll-out is halted since %s%s" % (halted["when"], "." if known else ": %s." % why))
    options = []
    if halted:
        options.append("-e npu_upgrade_clear_halt=true")
    if any(row.node and _maintenance.state(row.node) == _maintenance.FAILED for row in bad):
        options.append("-e npu_upgrade_retry=true")
    command = " ".join(["ansible-playbook npuops.ascend." + reason] + options)
    lines.append("%s %s" % ("When that is repaired, go on with:" if options else "To go on:", command))
    return "\n".join(lines)


def awaiting(all_rows):
    """How to approve, for those that wait for it; [] when none does."""
    names = [row.node_name for row in all_rows if row.outcome == _cycle_work.AWAITING]
    if not names:
        return []
    count = "1 node waits" if len(names) == 1 else "%d nodes wait" % len(names)
    return [
        "",
        "%s for approval. To approve, then run again:" % count,
        "  kubectl annotate node %s %s=true --overwrite" % (" ".join(names), _maintenance.ANNOTATION_APPROVE),
    ]
