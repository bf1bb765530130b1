# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollouts as the report sees them: what tasks said, the plan, and Nodes with their records."""

from __future__ import annotations

import json
import random

from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import rfc3339
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report

TIMES = {
    "cordon-required": "2026-11-21T10:00:00Z",
    "wait-for-jobs-required": "2026-11-21T10:00:01Z",
    "pod-deletion-required": "2026-11-21T10:00:02Z",
    "components-paused": "2026-11-21T10:00:04Z",
    "drain-required": "2026-11-21T10:00:05Z",
    "reboot-required": "2026-11-21T10:00:12Z",
    "reboot": "2026-11-21T10:00:13Z",
    "validation-required": "2026-11-21T10:01:12Z",
    "validated": "2026-11-21T10:01:20Z",
    "uncordon-required": "2026-11-21T10:01:21Z",
}


def record(**fields):
    made = {
        "run": "r1",
        "generation": 1,
        "from": {"version": "25.5.0", "release": "old"},
        "to": {"version": "25.5.1", "release": "new"},
        "started": TIMES["cordon-required"],
        "ended": "2026-11-21T10:01:22Z",
        "heartbeat": "2026-11-21T10:01:22Z",
        "times": TIMES,
        "outcome": "success",
    }
    return dict(made, **fields)


def node(name, last=None, current=None, state=None):
    values = {}
    if last:
        values["npuops.ascend/last-maintenance"] = json.dumps(last)
    if current:
        values["npuops.ascend/maintenance"] = json.dumps(current)
    labels = {"npu.openfuyao.com/driver-upgrade-state": state} if state else {}
    return {"metadata": {"name": name, "annotations": values, "labels": labels}}


def planned(name, verdict="ready", reasons=(), **fields):
    return dict(
        {
            "node": name,
            "verdict": verdict,
            "reasons": list(reasons),
            "notes": [],
            "from": {"version": "25.5.0"},
            "to": {"version": "25.5.1"},
        },
        **fields,
    )


def rows(*cases, run="r1", order=None):
    """``cases``: (name, outcome, reason, planned, node)."""
    plan = {"hosts": {name: entry for name, _o, _r, entry, _n in cases}, "order": order or [case[0] for case in cases]}
    hosts = [{"name": name, "outcome": outcome, "reason": reason} for name, outcome, reason, _p, _n in cases]
    nodes = {entry["node"]: found for _name, _o, _r, entry, found in cases if found}
    return rollout_report.rows(hosts, plan, nodes, run, END)


DONE = ("npu-a", "done", None, planned("npu-a"), node("npu-a", last=record()))

BEGIN, END = 1795255200, 1795290000  # 2026-11-21T10:00:00Z, and long after it
WHY = "The upgrade of npu-b to 25.5.1 failed: a chip is missing. It is back on 25.5.0 and in service."
HALTED = {"who": "the run r1", "why": WHY, "when": "2026-11-21T10:20:00Z"}
APPROVAL = {"time": "2026-11-21T09:40:11Z", "manager": "kubectl-annotate", "by": "chen.wei", "job": "12"}


def document(made, halted=None, reason="upgrade", now=END, workloads=None):
    return rollout_report.document(made, "r1", reason, halted, now, workloads)


def taken(begin, seconds, ended=True, **fields):
    """A record: ``seconds`` is [(step, how long)], beginning ``begin`` seconds into the run."""
    times, when = {}, BEGIN + begin
    for step, length in seconds:
        times[step] = rfc3339(when)
        when += length
    made = record(started=rfc3339(BEGIN + begin), heartbeat=rfc3339(when), times=times, **fields)
    made["ended"] = rfc3339(when) if ended else None
    return made


WAY = ("cordon-required", "drain-required", "reboot-required", "validation-required", "uncordon-required")


def upgraded(name, begin, lengths=(2, 58, 240, 50, 10), **fields):
    """The case of a node that got there."""
    return name, "done", None, planned(name), node(name, last=taken(begin, list(zip(WAY, lengths)), **fields))


def success(count):
    """All nodes got there, one after the other, in an order that is not that of their names."""
    chance, begin, cases = random.Random(count), 0, []
    for number in chance.sample(range(count), count):
        lengths = [chance.randint(0, 300) for _step in WAY]
        cases.append(upgraded("npu-%03d" % number, begin, lengths))
        begin += sum(lengths)
    return document(rows(*cases))


def halted():
    """One got there, one went back, one is left in the middle, one was given back, the others were not taken."""
    back = [("cordon-required", 60), ("reboot-required", 240), ("validation-required", 30), ("rollback-required", 200)]
    stuck = [("cordon-required", 60), ("reboot-required", 900)]
    budget = "The budget training/bert keeps training/bert-0."
    return document(
        rows(
            upgraded("npu-a", 0, approval=APPROVAL),
            (
                "npu-b",
                "failed",
                WHY,
                planned("npu-b"),
                node("npu-b", last=taken(360, back, outcome="rolled-back"), state="upgrade-failed"),
            ),
            ("npu-c", "halted", "It did not come back.", planned("npu-c"), node("npu-c", current=taken(400, stuck, ended=False))),
            (
                "npu-d",
                "deferred",
                budget,
                planned("npu-d"),
                node("npu-d", last=taken(100, [("cordon-required", 300)], outcome="deferred")),
            ),
            ("npu-e", "halted", "The rollout is halted.", planned("npu-e"), node("npu-e", state="upgrade-required")),
            ("npu-f", "halted", "The rollout is halted.", planned("npu-f"), node("npu-f", state="upgrade-required")),
            ("npu-g", None, None, planned("npu-g", "up-to-date", to={"version": "25.5.1"}), node("npu-g")),
            ("npu-h", None, None, planned("npu-h", "skipped", ["it has no chip"]), None),
        ),
        HALTED,
    )


def awaiting():
    case = ("awaiting-approval", "its reboot is not approved")
    waiting = [(name, *case, planned(name), node(name, state="approval-required")) for name in ("npu-b", "npu-c")]
    return document(rows(upgraded("npu-a", 0), *waiting))


def nothing_due(count):
    entry = {"to": {"version": "25.5.1"}, "from": {"version": "25.5.1"}}
    names = ["npu-%03d" % number for number in range(count)]
    return document(rows(*((name, None, None, planned(name, "up-to-date", **entry), node(name)) for name in names)))


def parked(problem=None):
    """All nodes got there; of the parked workloads one is restored, one was changed by another client, one is still parked."""
    one, two, three = "deployment ml/bert", "cronjob ml/nightly <b>", "statefulset ml/db"
    left = [{"object": two, "reason": "it was changed", "repair": False}]
    if problem:
        left.append({"object": three, "reason": "its annotation cannot be read", "repair": True})
    workloads = {
        "parked": [{"object": one, "was": 3}, {"object": two, "was": False}, {"object": three, "was": None}],
        "restored": [{"object": one, "was": 3}],
        "left": left,
        "problem": problem,
    }
    return document(rows(upgraded("npu-a", 0)), workloads=workloads)


HOSTILE = "<script>alert(1)</script> & \"quoted\" 'text' ]]> \x1b[31mred\x1b[0m \x00\x07\ud800\ufffe url(http://x) -->"
# What is left of it where control characters have no place.
HARMLESS = "<script>alert(1)</script> & \"quoted\" 'text' ]]> red  url(http://x) -->"


def hostile():
    """Every text that another client may have written is HOSTILE."""
    name, versions = "n" + HOSTILE, {"from": {"version": HOSTILE}, "to": {"version": HOSTILE}}
    approval = {"time": HOSTILE, "manager": HOSTILE, "by": HOSTILE, "job": HOSTILE}
    done = upgraded("npu-a", 0, approval=approval, **versions)
    last = taken(400, [("cordon-required", 60), ("rollback-required", 60)], outcome="rolled-back", **versions)
    went_back = (name, "failed", HOSTILE, planned("x" + HOSTILE, **versions), node("x" + HOSTILE, last=last))
    blocked = ("npu-c" + HOSTILE, None, None, planned("npu-c" + HOSTILE, "blocked", [HOSTILE], **versions), None)
    halt = {"who": HOSTILE, "why": HOSTILE, "when": HOSTILE}
    return rollout_report.document(rows(done, went_back, blocked), "r" + HOSTILE, "upgrade", halt, END)
