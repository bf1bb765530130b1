# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people are told at the end of a roll-out."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.filter.npu_outcomes import npu_outcomes
from ansible_collections.npuops.ascend.plugins.module_utils import _report

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
        **fields
    )


def rows(*cases, run="r1", order=None):
    """``cases``: (name, outcome, reason, planned, node)."""
    plan = {"hosts": {name: entry for name, _o, _r, entry, _n in cases}, "order": order or [case[0] for case in cases]}
    hosts = [{"name": name, "outcome": outcome, "reason": reason} for name, outcome, reason, _p, _n in cases]
    nodes = {entry["node"]: found for _name, _o, _r, entry, found in cases if found}
    return _report.rows(hosts, plan, nodes, run)


DONE = ("npu-a", "done", None, planned("npu-a"), node("npu-a", last=record()))


def test_a_node_that_got_there():
    made = rows(DONE)
    assert made[0].result()["outcome"] == "upgraded" and made[0].fine
    assert made[0].seconds == {"EVICT": 12, "REBOOT": 60, "VALIDATE": 10, "TOTAL": 82}
    assert _report.table(made) == [
        "NODE   FROM    TO      OUTCOME   EVICT  REBOOT  VALIDATE  TOTAL",
        "npu-a  25.5.0  25.5.1  upgraded   12 s    60 s      10 s   82 s",
    ]
    assert _report.problem(made, None, "upgrade") is None
    assert _report.awaiting(made) == []


def test_a_node_that_a_person_sent_back():
    back = record(reason="rollback")
    made = rows(("npu-a", "done", None, planned("npu-a"), node("npu-a", last=back)))
    assert made[0].outcome == "returned" and _report.problem(made, None, "rollback") is None


def test_steps_of_the_same_second():
    times = {"cordon-required": 0, "reboot-required": 0, "validation-required": 9, "rollback-required": 9}
    times = {step: "2026-11-21T10:00:%02dZ" % second for step, second in times.items()}
    assert _report.seconds_of_parts({"times": times, "ended": "2026-11-21T10:00:59Z"}) == {
        "EVICT": 0,
        "REBOOT": 9,
        "VALIDATE": 0,
        "BACK": 50,
        "TOTAL": 59,
    }


def test_nothing_was_due():
    entry = planned("npu-a", "up-to-date", to={"version": "25.5.0"})
    made = rows(("npu-a", None, None, entry, node("npu-a", last=record(run="earlier"))), order=["x"])
    assert _report.table(made) == ["NODE   FROM    TO      OUTCOME", "npu-a  25.5.0  25.5.0  up-to-date"]
    assert _report.problem(made, None, "upgrade") is None


def test_a_node_that_went_back():
    times = dict(TIMES, **{"rollback-required": "2026-11-21T10:01:15Z"})
    times = {step: when for step, when in times.items() if step != "uncordon-required"}
    why = "The upgrade to 25.5.1 failed on npu-a: the driver does not work. It is back on 25.5.0 and healthy."
    last = record(outcome="rolled-back", times=times, failure=why)
    halted = {"who": "the run r1", "why": why, "when": "2026-11-21T10:01:22Z"}
    failed = ("npu-a", "failed", why, planned("npu-a"), node("npu-a", last=last, state="upgrade-failed"))
    spared = [
        (name, "halted", "The rollout is halted.", planned(name), node(name, state="upgrade-required"))
        for name in ("npu-b", "npu-c")
    ]
    made = rows(failed, *spared)
    assert made[0].seconds == {"EVICT": 12, "REBOOT": 60, "VALIDATE": 3, "BACK": 7, "TOTAL": 82}
    lines = _report.table(made)
    assert lines[1].split()[:5] == ["npu-a", "25.5.0", "25.5.1", "rolled", "back"]
    assert "npu-a: " + why in lines
    told = _report.problem(made, halted, "upgrade")
    assert told.startswith("3 of 3 nodes did not get there:\n  npu-a: rolled back, The upgrade to 25.5.1 failed")
    assert "\n  npu-b, npu-c: not begun\nThe roll-out is halted since 2026-11-21T10:01:22Z.\nWhen" in told
    other = _report.problem(made[1:], dict(halted, why="A disk is full."), "upgrade")
    assert "\nThe roll-out is halted since 2026-11-21T10:01:22Z: A disk is full.\n" in other
    assert told.endswith(
        "go on with: ansible-playbook npuops.ascend.upgrade -e npu_upgrade_clear_halt=true -e npu_upgrade_retry=true"
    )


@pytest.mark.parametrize("outcome", ["deferred", "failed", "halted", "busy", "under-way"])
def test_what_is_left_fails_the_run(outcome):
    made = rows(DONE, ("npu-b", outcome, "because", planned("npu-b"), node("npu-b", state="upgrade-required")))
    told = _report.problem(made, None, "rollback")
    assert "1 of 2 nodes" in told and "npu-b" in told and "npu-a" not in told
    assert told.endswith("\nTo go on: ansible-playbook npuops.ascend.rollback")


def test_a_blocked_node_of_the_plan_fails_the_run():
    made = rows(DONE, ("npu-b", None, None, planned("npu-b", "blocked", ["no image"]), None))
    assert "npu-b: blocked, no image" in _report.problem(made, None, "upgrade")


def test_who_waits_for_approval_does_not_fail_the_run():
    why = "its reboot is not approved"
    made = rows(("npu-a", "awaiting-approval", why, planned("npu-a"), node("npu-a", state="approval-required")))
    assert _report.problem(made, None, "upgrade") is None
    assert _report.awaiting(made)[-1].endswith("kubectl annotate node npu-a npu.openfuyao.com/approve-reboot=true --overwrite")


def test_a_record_of_another_run_is_not_this_ones():
    made = rows(("npu-a", "busy", "in other hands", planned("npu-a"), node("npu-a", current=record(run="other"))))
    assert made[0].seconds == {} and made[0].outcome == "busy"


def test_a_node_in_the_middle_is_timed_to_its_last_sign_of_life():
    current = record(times={step: TIMES[step] for step in ("cordon-required", "reboot-required")}, heartbeat="2026-11-21T10:05:12Z")
    del current["ended"]
    made = rows(("npu-a", "halted", "did not come back", planned("npu-a"), node("npu-a", current=current)))
    assert made[0].seconds == {"EVICT": 12, "REBOOT": 300, "TOTAL": 312}


def test_a_deleted_node_and_another_name():
    made = rows(("host-1", "failed", "The Node object worker-1 was deleted.", planned("worker-1"), None))
    assert _report.table(made)[1].startswith("worker-1 (host-1)")


def test_order_of_the_plan_first():
    case = ("npu-c", None, None, planned("npu-c", "up-to-date"), None)
    other = ("npu-b", "done", None, planned("npu-b"), node("npu-b", last=record()))
    assert [row.name for row in rows(case, other, DONE, order=["npu-a", "npu-b"])] == ["npu-a", "npu-b", "npu-c"]


# --- what the tasks registered ---


def outcome(**variables):
    return {key: val for key, val in npu_outcomes(["h"], {"h": variables})[0].items() if key != "name"}


def test_the_last_call_counts():
    under_way, skipped = {"outcome": "under-way"}, {"skipped": True}
    done = {"outcome": "done", "reason": None, "msg": "done"}
    assert outcome(__npu_begun=under_way, __npu_emptied=skipped, __npu_rebooted=under_way, __npu_returned=done) == {
        "outcome": "done",
        "reason": None,
    }
    deferred = {"outcome": "deferred", "reason": "a budget"}
    assert outcome(__npu_begun=deferred, __npu_emptied=skipped, __npu_rebooted=skipped) == deferred


def test_a_call_that_broke():
    assert outcome(__npu_begun={"failed": True, "msg": "a bug"}) == {"outcome": "failed", "reason": "a bug"}
    refused = {"failed": True, "outcome": "failed", "reason": "wrong alias", "msg": "wrong alias"}
    assert outcome(__npu_begun=refused) == {"outcome": "failed", "reason": "wrong alias"}


def test_no_call_was_made():
    assert outcome() == {"outcome": None, "reason": None}
    assert outcome(__npu_begun={"skipped": True}, __npu_staged={"changed": True}) == {"outcome": None, "reason": None}


@pytest.mark.parametrize("result", [{"failed": True, "msg": "no space"}, {"unreachable": True, "msg": "no space"}])
def test_staging_failed(result):
    assert outcome(__npu_staged=result, __npu_begun={"skipped": True}) == {
        "outcome": "failed",
        "reason": "its driver could not be staged: no space",
    }
