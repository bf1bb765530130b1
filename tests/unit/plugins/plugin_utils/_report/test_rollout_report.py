# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people are told at the end of a rollout."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.filter.npu_outcomes import npu_outcomes
from ansible_collections.npuops.ascend.plugins.plugin_utils._awx import stats as awx_stats
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import report_table, rollout_report

from support.fleet import reports
from support.fleet.reports import DONE, TIMES, document, node, planned, record, rows


def test_a_node_that_got_there():
    made = rows(DONE)
    assert [made[0].result()[key] for key in ("outcome", "status")] == ["upgraded", "passed"]
    assert made[0].result()["seconds"] == {"EVICT": 12, "REBOOT": 60, "VALIDATE": 10, "TOTAL": 82}
    assert report_table.table(document(made)) == [
        "NODE   FROM    TO      OUTCOME   EVICT  REBOOT  VALIDATE  TOTAL",
        "npu-a  25.5.0  25.5.1  upgraded   12 s    60 s      10 s   82 s",
    ]
    assert report_table.problem(document(made, None, "upgrade")) is None


def test_nodes_that_come_later_are_nobodys_failure():
    made = rows(DONE, ("npu-b", None, None, dict(planned("npu-b"), later=True), node("npu-b", state="upgrade-required")))
    assert [(row.outcome, row.result()["status"]) for row in made] == [("upgraded", "passed"), ("later", "skipped")]
    assert report_table.problem(document(made)) is None
    assert report_table.table(document(made))[2].split()[:4] == ["npu-b", "25.5.0", "25.5.1", "later"]


@pytest.mark.parametrize(("verdict", "why"), [("blocked", "pod default/web-1 cannot leave"), ("failed", "its last upgrade failed")])
def test_a_run_for_first_nodes_does_not_answer_for_those_that_it_has_not_tried(verdict, why):
    """As its failure, they would ask for a rollback of the nodes that succeeded."""
    left = dict(planned("npu-b"), verdict=verdict, reasons=[why], later=True)
    made = rows(DONE, ("npu-b", None, None, left, node("npu-b")))
    assert [(row.outcome, row.result()["status"]) for row in made] == [("upgraded", "passed"), ("later", "skipped")]
    assert made[1].reason == why
    assert report_table.problem(document(made)) is None
    assert awx_stats.failed(awx_stats.of_report(document(made))) is False


def test_a_node_that_a_person_sent_back():
    back = record(reason="rollback")
    made = rows(("npu-a", "done", None, planned("npu-a"), node("npu-a", last=back)))
    assert made[0].outcome == "returned" and report_table.problem(document(made, None, "rollback")) is None


def test_a_node_that_was_recovered():
    cured = record(reason="recovery", to={})
    made = rows(("npu-a", "done", None, planned("npu-a"), node("npu-a", last=cured)))
    assert (made[0].outcome, made[0].result()["status"]) == ("recovered", "passed")
    assert report_table.problem(document(made, None, "recovery")) is None


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        ("answers-again", "passed"),
        ("too-soon", "skipped"),
        ("in-upgrade", "skipped"),
        ("awaiting-approval", "skipped"),
        ("skipped", "skipped"),
        ("given-up", "failed"),
        ("not-ready", "failed"),
        ("blocked", "failed"),
    ],
)
def test_a_wedged_node_that_was_not_recovered(verdict, status):
    """Only what needs a person fails the run, with the command to go on."""
    made = rows(("npu-a", None, None, dict(planned("npu-a"), verdict=verdict, reasons=["So it is."]), node("npu-a")))
    assert made[0].result()["status"] == status
    told = report_table.problem(document(made, None, "recovery"))
    assert (told is None) is (status != "failed")
    assert told is None or (told.endswith("ansible-playbook npuops.ascend.heal") and "So it is" in told)


def test_steps_of_the_same_second():
    times = {"cordon-required": 0, "reboot-required": 0, "validation-required": 9, "rollback-required": 9}
    times = {step: "2026-11-21T10:00:%02dZ" % second for step, second in times.items()}
    steps = rollout_report.timeline({"times": times, "ended": "2026-11-21T10:00:59Z"})
    assert rollout_report.seconds_of_parts(steps) == {
        "EVICT": 0,
        "REBOOT": 9,
        "VALIDATE": 0,
        "BACK": 50,
        "TOTAL": 59,
    }


def test_nothing_was_due():
    entry = planned("npu-a", "up-to-date", to={"version": "25.5.0"})
    made = rows(("npu-a", None, None, entry, node("npu-a", last=record(run="earlier"))), order=["x"])
    assert report_table.table(document(made)) == ["NODE   FROM    TO      OUTCOME", "npu-a  25.5.0  25.5.0  up-to-date"]
    assert report_table.problem(document(made, None, "upgrade")) is None


def test_what_a_run_that_was_killed_has_done_is_told():
    entry = planned("npu-b", "up-to-date", **{"from": {"version": "25.5.1"}})
    made = rows(("npu-b", None, None, entry, node("npu-b", last=record(run="killed"))), DONE, order=["npu-a", "npu-b"])
    assert made[1].result()["earlier"] == {"run": "killed", "from": "25.5.0", "ended": "2026-11-21T10:01:22Z"}
    lines = report_table.table(document(made))
    assert lines[2].split() == ["npu-b", "25.5.1", "25.5.1", "up-to-date", "-", "-", "-", "-"]
    assert lines[-1] == "npu-b: upgraded from 25.5.0 by the earlier run killed"
    assert report_table.problem(document(made)) is None


@pytest.mark.parametrize(
    "last",
    [
        record(run="r0", ended="2026-11-19T10:00:00Z"),
        record(run="r0", outcome="rolled-back"),
        record(run="r0", to={"version": "25.4.0"}),
    ],
)
def test_older_and_other_maintenances_are_not_told(last):
    (made,) = rows(("npu-a", None, None, planned("npu-a", "up-to-date"), node("npu-a", last=last)))
    assert (made.result()["earlier"], made.result()["reason"]) == (None, None)


def test_a_node_that_was_emptied_in_vain():
    """It was cordoned for a while: that is not 'not begun'."""
    last = record(outcome="halted", unschedulable=False, times={"cordon-required": TIMES["cordon-required"]})
    untouched = dict(last, unschedulable=None)
    made = rows(
        *(
            (name, "halted", "The rollout is halted.", planned(name), node(name, last=record, state="upgrade-required"))
            for name, record in (("npu-a", last), ("npu-b", untouched))
        )
    )
    assert [(row.outcome, row.result()["status"]) for row in made] == [("given back", "not-begun"), ("not begun", "not-begun")]
    told = report_table.problem(document(made, reports.HALTED))
    assert "npu-a: given back, it was being drained when the rollout was halted; it was not rebooted" in told


def test_check_mode_tells_what_the_plan_says():
    made = rows(
        ("npu-a", "check-mode", None, planned("npu-a"), node("npu-a")),
        ("npu-b", "check-mode", None, planned("npu-b", "blocked", ["a budget"]), node("npu-b")),
    )
    assert [(row.outcome, row.result()["status"]) for row in made] == [("ready", "skipped"), ("blocked", "skipped")]
    assert report_table.problem(document(made)) is None


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
    assert made[0].result()["seconds"] == {"EVICT": 12, "REBOOT": 60, "VALIDATE": 3, "BACK": 7, "TOTAL": 82}
    lines = report_table.table(document(made))
    assert lines[1].split()[:5] == ["npu-a", "25.5.0", "25.5.1", "rolled", "back"]
    assert "npu-a: " + why in lines
    told = report_table.problem(document(made, halted, "upgrade"))
    assert told.startswith("3 of 3 nodes did not succeed:\n  npu-a: rolled back, The upgrade to 25.5.1 failed")
    assert "\n  npu-b, npu-c: not begun\nThe rollout is halted since 2026-11-21T10:01:22Z.\nAfter" in told
    other = report_table.problem(document(made[1:], dict(halted, why="A disk is full."), "upgrade"))
    assert "\nThe rollout is halted since 2026-11-21T10:01:22Z: A disk is full.\n" in other
    assert told.endswith(
        "continue with: ansible-playbook npuops.ascend.upgrade -e npu_upgrade_clear_halt=true -e npu_upgrade_retry=true"
    )


@pytest.mark.parametrize("outcome", ["deferred", "failed", "halted", "busy", "under-way"])
def test_what_is_left_fails_the_run(outcome):
    made = rows(DONE, ("npu-b", outcome, "because", planned("npu-b"), node("npu-b", state="upgrade-required")))
    told = report_table.problem(document(made, None, "rollback"))
    assert "1 of 2 nodes" in told and "npu-b" in told and "npu-a" not in told
    assert told.endswith("\nTo continue: ansible-playbook npuops.ascend.rollback")


def test_a_blocked_node_of_the_plan_fails_the_run():
    made = rows(DONE, ("npu-b", None, None, planned("npu-b", "blocked", ["no image"]), None))
    assert "npu-b: blocked, no image" in report_table.problem(document(made, None, "upgrade"))


def test_who_waits_for_approval_does_not_fail_the_run():
    why = "its reboot is not approved"
    made = rows(("npu-a", "awaiting-approval", why, planned("npu-a"), node("npu-a", state="approval-required")))
    assert report_table.problem(document(made, None, "upgrade")) is None
    assert report_table.table(document(made))[-1].endswith(
        "kubectl annotate node npu-a npu.openfuyao.com/approve-reboot=true npuops.ascend/approval-for=25.5.1 --overwrite"
    )


def test_a_version_that_is_none_is_in_no_command():
    """People copy it into their shell, and any client that may write to the Node may have written the record."""
    broken = planned("npu-a")
    broken["to"]["version"] = "1; reboot"
    made = rows(("npu-a", "awaiting-approval", "", broken, node("npu-a", state="approval-required")))
    assert report_table.table(document(made))[-1].strip() == (
        "kubectl annotate node npu-a npu.openfuyao.com/approve-reboot=true --overwrite"
    )


def test_a_record_of_another_run_is_not_this_ones():
    made = rows(("npu-a", "busy", "in other hands", planned("npu-a"), node("npu-a", current=record(run="other"))))
    assert made[0].result()["seconds"] == {} and made[0].outcome == "busy"


def test_a_node_in_the_middle_is_timed_to_its_last_sign_of_life():
    current = record(times={step: TIMES[step] for step in ("cordon-required", "reboot-required")}, heartbeat="2026-11-21T10:05:12Z")
    del current["ended"]
    made = rows(("npu-a", "halted", "did not come back", planned("npu-a"), node("npu-a", current=current)))
    assert made[0].result()["seconds"] == {"EVICT": 12, "REBOOT": 300, "TOTAL": 312}


def test_a_deleted_node_and_another_name():
    made = rows(("host-1", "failed", "The Node object worker-1 was deleted.", planned("worker-1"), None))
    assert report_table.table(document(made))[1].startswith("worker-1 (host-1)")


def test_order_of_the_plan_first():
    case = ("npu-c", None, None, planned("npu-c", "up-to-date"), None)
    other = ("npu-b", "done", None, planned("npu-b"), node("npu-b", last=record()))
    assert [row.name for row in rows(case, other, DONE, order=["npu-a", "npu-b"])] == ["npu-a", "npu-b", "npu-c"]


# --- the JSON ---


def test_all_of_it_is_json():
    for made in (reports.success(3), reports.halted(), reports.awaiting(), reports.nothing_due(2), reports.hostile()):
        assert json.loads(json.dumps(made)) == made


def test_what_an_outcome_comes_to():
    assert {entry["host"]: (entry["outcome"], entry["status"]) for entry in reports.halted()["nodes"]} == {
        "npu-a": ("upgraded", "passed"),
        "npu-b": ("rolled back", "failed"),
        "npu-c": ("halted", "failed"),
        "npu-d": ("deferred", "failed"),
        "npu-e": ("not begun", "not-begun"),
        "npu-f": ("not begun", "not-begun"),
        "npu-g": ("up-to-date", "passed"),
        "npu-h": ("skipped", "skipped"),
    }
    assert [entry["status"] for entry in reports.awaiting()["nodes"]] == ["passed", "skipped", "skipped"]


def test_the_run_as_a_whole():
    made = reports.halted()
    assert (made["started"], made["ended"]) == ("2026-11-21T10:00:00Z", "2026-11-21T10:22:40Z")
    assert (made["seconds"], made["from"], made["to"]) == (1360, ["25.5.0"], ["25.5.1"])
    assert made["halted"] == reports.HALTED and made["approve"] is None
    assert made["go_on"] == "ansible-playbook npuops.ascend.upgrade -e npu_upgrade_clear_halt=true -e npu_upgrade_retry=true"
    nothing = reports.nothing_due(2)
    assert [nothing[key] for key in ("started", "ended", "seconds", "from", "to", "go_on", "approve")] == [
        None,
        None,
        0,
        [],
        [],
        None,
        None,
    ]
    assert nothing["written"] == "2026-11-21T19:40:00Z"


def test_a_halt_by_somebody_else_is_to_be_cleared():
    made = document(rows(DONE), reports.HALTED)
    assert made["go_on"].endswith("npuops.ascend.upgrade -e npu_upgrade_clear_halt=true")
    assert report_table.problem(made) is None


def test_the_timeline_has_every_step_without_gaps():
    steps = rows(DONE)[0].result()["timeline"]
    assert [step["step"].replace("-required", "") for step in steps] == [
        "cordon", "wait-for-jobs", "pod-deletion", "drain", "reboot", "validation", "uncordon",
    ]  # fmt: skip
    assert [step["began"] for step in steps[1:]] + ["2026-11-21T10:01:22Z"] == [step["ended"] for step in steps]
    assert steps[4] == {
        "step": "reboot-required",
        "part": "REBOOT",
        "began": "2026-11-21T10:00:12Z",
        "ended": "2026-11-21T10:01:12Z",
    }


def test_the_order_is_that_of_the_times():
    times = {step: TIMES[step] for step in sorted(TIMES)}  # as records are written
    assert rollout_report.timeline(record(times=times)) == rollout_report.timeline(record()) != []


def test_a_record_that_somebody_edited():
    assert rollout_report.timeline({"times": {"cordon-required": "yesterday", "reboot-required": 5}, "ended": None}) == []
    assert rollout_report.timeline({"times": {"cordon-required": "2026-11-21T10:00:12Z"}, "ended": None, "heartbeat": "soon"}) == []


def test_printable():
    assert rollout_report.printable(reports.HOSTILE) == reports.HARMLESS
    assert rollout_report.printable("a\tb\n é 中 😀") == "a\tb\n é 中 😀"


# --- what the tasks registered ---


def outcome(**variables):
    return {key: val for key, val in npu_outcomes(["h"], {"h": variables})[0].items() if key != "name"}


def test_the_last_step_counts():
    assert outcome(__npu_step={"outcome": "done", "reason": None, "msg": "done"}) == {"outcome": "done", "reason": None}
    deferred = {"outcome": "deferred", "reason": "a budget"}
    assert outcome(__npu_step=dict(deferred, skipped=True, msg="ended with the step before")) == deferred


def test_a_call_that_broke():
    assert outcome(__npu_step={"failed": True, "msg": "a bug"}) == {"outcome": "failed", "reason": "a bug"}
    refused = {"failed": True, "outcome": "failed", "reason": "wrong alias", "msg": "wrong alias"}
    assert outcome(__npu_step=refused) == {"outcome": "failed", "reason": "wrong alias"}


def test_no_call_was_made():
    assert outcome() == {"outcome": None, "reason": None}
    assert outcome(__npu_step={"skipped": True}, __npu_staged={"changed": True}) == {"outcome": None, "reason": None}


@pytest.mark.parametrize("result", [{"failed": True, "msg": "no space"}, {"unreachable": True, "msg": "no space"}])
def test_staging_failed(result):
    assert outcome(__npu_staged=result, __npu_step={"skipped": True}) == {
        "outcome": "failed",
        "reason": "its driver could not be staged: no space",
    }


def test_workloads_that_could_not_be_restored_fail_the_run():
    assert report_table.problem(reports.parked("not restored")) == "not restored"
    assert report_table.problem(reports.parked()) is None
