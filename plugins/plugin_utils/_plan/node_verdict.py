# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on one node: whether it is rebooted now, goes on, waits, or is left alone, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import due_node_checks, vnpu_changes
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import firmware as rollout_firmware
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import kernels as rollout_kernels
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollback as rollout_rollback
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import target as rollout_target
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.plan_context import PlanContext
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import (
    AWAITING,
    BLOCKED,
    FAILED,
    IN_FLIGHT,
    ON_TRIAL,
    READY,
    SKIPPED,
    UNREACHABLE,
    UP_TO_DATE,
)


class Rule(NamedTuple):
    verdict: str
    holds: Callable[[PlannedNode, PlanContext], bool]  # if it does, the reasons and notes of the node say why


def judge(entry: PlannedNode, plan: PlanContext) -> None:
    """Sets the verdict, with reasons, notes and target."""
    entry.requested = maintenance_record.is_true(entry.labels, maintenance_record.LABEL_REQUESTED)
    if entry.waiting_firmware:
        entry.notes.append("the firmware %s is in its chips already: they run it after the next boot" % entry.waiting_firmware)
    vnpu_changes.look(entry, plan.settings)
    if plan.settings.reason == maintenance_record.UPGRADE_REASON and entry.facts and entry.checked.digest:
        rollout_firmware.look(entry, plan.contents)
    entry.verdict = next(rule.verdict for rule in _RULES if rule.holds(entry, plan))


# --- what a maintenance has begun ---


def _recovers(entry: PlannedNode, plan: PlanContext) -> bool:
    record = entry.record
    if record is None or record.get("reason") != maintenance_record.RECOVERY_REASON:
        return False
    dead = maintenance_record.age(record, plan.lookups.now) > maintenance_record.HEARTBEAT_LIMIT
    if dead and not maintenance_record.intended(record):
        return False
    # As pods that cannot leave now, it ends by itself.
    entry.blocker_text = "is in recovery by the run %s (step %s, last heartbeat %s); if that run is dead: %s" % (
        record["run"],
        record.get("step"),
        record.get("heartbeat"),
        this_run.again("heal", limit=entry.name),
    )
    return True


def _is_in_maintenance(entry: PlannedNode, plan: PlanContext) -> bool:
    record = entry.record
    if record is None:
        return False
    entry.notes.append("step %s of run %s, last heartbeat %s" % (record.get("step"), record["run"], record.get("heartbeat")))
    intended = maintenance_record.intended(record)
    entry.target = (
        rollout_target.after_intent(entry, record, plan.settings)
        if intended
        else rollout_target.before_intent(entry, record, plan.settings, plan.wave)
    )
    if maintenance_record.reason_of(record) != plan.settings.reason:
        what = "its %s to %s" % (maintenance_record.reason_of(record), (record.get("to") or {}).get("version") or "the same")
        ends = " is ended first: back to the confirmed driver, unless its own is confirmed"
        entry.notes.append(what + (ends if intended else " is given back first"))
    elif entry.target is None:
        entry.notes.append("is given back: it runs %s already" % entry.loaded_version)
    entry.notes += entry.checked.reasons
    rollout_firmware.keep_unless_possible(entry, plan.settings)
    return True


def _cannot_be_read(entry: PlannedNode, _plan: PlanContext) -> bool:
    """What became of it last is unknown."""
    try:
        if entry.node is not None:
            maintenance_record.check(entry.node)
    except NpuError as exc:
        entry.reasons.append(one_line(exc.message))
        return True
    return False


def _runs_on_trial(entry: PlannedNode, plan: PlanContext) -> bool:
    """A maintenance has left it so, without a record."""
    trial, good = (entry.facts.get("upgrade") or {}).get("trial"), entry.driver.get("good")
    if not entry.same_machine or not trial or trial == good:
        return False
    entry.target = rollout_target.of_trial(entry, plan.settings, trial, good)
    entry.notes.append("runs %s on trial, unconfirmed; without confirmation its next boot uses %s" % (trial, good))
    if kube_client.LABEL_PRESENT not in entry.labels:
        entry.notes.append("lacks the labels of npuops.ascend.install (was the Node recreated?): run install afterwards")
    entry.notes += entry.checked.reasons
    rollout_firmware.keep_unless_possible(entry, plan.settings, on_trial=True)
    return True


def _has_lost_its_record(entry: PlannedNode, plan: PlanContext) -> bool:
    """A maintenance has left it before its reboot, or after it with a confirmed driver."""
    armed, node = entry.driver.get("next"), entry.node
    if node is None or not entry.same_machine or not (armed or maintenance_record.is_lost(node, lambda: plan.holders)):
        return False
    # A rollback takes a node no further back if it is unknown how far its maintenance was.
    target = None if plan.settings.reason == maintenance_record.ROLLBACK_REASON else rollout_target.wanted_now(entry)
    entry.target = target
    if target and not entry.requested and rollout_target.is_there(entry, plan.settings):
        entry.target = None
    entry.notes.append(
        "was left in the middle of a maintenance whose record is missing: it is given back first%s"
        % ("; its next boot would try %s" % armed if armed else "")
    )
    entry.notes += entry.checked.reasons
    rollout_firmware.keep_unless_possible(entry, plan.settings)
    return True


# --- what gets no driver ---


def _does_not_answer(entry: PlannedNode, _plan: PlanContext) -> bool:
    if not entry.checked.host.get("unreachable"):
        return False
    entry.reasons = list(entry.checked.reasons)
    return True


def _has_no_chips(entry: PlannedNode, _plan: PlanContext) -> bool:
    return bool(entry.facts) and not entry.checked.has_chips and _left_alone(entry, entry.checked.notes)


def _has_a_driver_of_others(entry: PlannedNode, _plan: PlanContext) -> bool:
    given = entry.checked.config["driver_source"] == "preinstalled"
    return given and _left_alone(entry, ["its driver is preinstalled; npuops.ascend never upgrades it"])


def _is_excluded(entry: PlannedNode, _plan: PlanContext) -> bool:
    excluded = maintenance_record.is_true(entry.labels, maintenance_record.LABEL_SKIP)
    return excluded and _left_alone(entry, ["is excluded by its label %s=true" % maintenance_record.LABEL_SKIP])


def _left_alone(entry: PlannedNode, notes: Iterable[str]) -> bool:
    entry.notes += notes
    vnpu_changes.tell(entry)
    return True


def _has_no_part_in_the_rollback(entry: PlannedNode, plan: PlanContext) -> bool:
    """Sets the target: the release before, or for an upgrade the configured one."""
    if plan.settings.reason != maintenance_record.ROLLBACK_REASON:
        if entry.checked.digest:
            rollout_target.configure(entry)
        return False
    problem = (
        rollout_rollback.previous(entry)
        or rollout_rollback.back_already(entry, plan.settings)
        or rollout_rollback.not_of(plan.wave, entry)
    )
    entry.notes += [problem] if problem else []
    return problem is not None


# --- what gets its target, or would ---


def _is_up_to_date(entry: PlannedNode, plan: PlanContext) -> bool:
    # What a host says about its driver says nothing about a node that is another machine.
    # Nor is it known whether the chips have what they are to have, where that is not known.
    known = entry.same_machine and not entry.firmware_problem
    if not entry.target or entry.requested or not known or not rollout_target.is_there(entry, plan.settings):
        return False
    vnpu_changes.tell(entry)
    entry.notes += entry.checked.reasons + due_node_checks.trouble(entry)
    rollout_kernels.tell(entry, plan.answers)
    return True


def _has_failed_before(entry: PlannedNode, plan: PlanContext) -> bool:
    if entry.node is None or plan.settings.retry or not rollout_target.failed_before(entry, plan.settings):
        return False
    failure = maintenance_record.last(entry.node).get("failure") or "its last upgrade failed"
    entry.reasons.append("%s; after fixing this: -e npu_upgrade_retry=true" % one_line(failure))
    return True


def _is_blocked(entry: PlannedNode, plan: PlanContext) -> bool:
    # That there is no node is among the reasons.
    entry.reasons = list(entry.checked.reasons)
    if entry.node is not None and entry.target:
        rollout_kernels.check(entry, entry.target, plan.answers)
        due_node_checks.check(entry, entry.node, entry.target, plan)
        vnpu_changes.check(entry)
    return bool(entry.reasons) or entry.node is None


def _lacks_approval(entry: PlannedNode, plan: PlanContext) -> bool:
    if entry.node is None or plan.settings.auto:
        return False
    given, why = approval.given(
        entry.node, plan.lookups.now, plan.settings.approval_max_age, purpose=(entry.target or {}).get("version")
    )
    generation = (entry.facts.get("upgrade") or {}).get("generation") or 0
    if given and approval.without_old(entry.node, generation):
        given, why = None, "the run removes its approval and asks again: %s" % approval.may_be_used(generation)
    entry.reasons += [] if given else [why or ""]
    return given is None


def _is_ready(_entry: PlannedNode, _plan: PlanContext) -> bool:
    return True


# In this order; the first that holds counts.
_RULES = (
    Rule(BLOCKED, _recovers),
    Rule(IN_FLIGHT, _is_in_maintenance),
    Rule(BLOCKED, _cannot_be_read),
    Rule(UNREACHABLE, _does_not_answer),
    Rule(SKIPPED, _has_no_chips),
    Rule(SKIPPED, _has_a_driver_of_others),
    Rule(SKIPPED, _is_excluded),
    Rule(ON_TRIAL, _runs_on_trial),
    Rule(IN_FLIGHT, _has_lost_its_record),
    Rule(SKIPPED, _has_no_part_in_the_rollback),
    Rule(UP_TO_DATE, _is_up_to_date),
    Rule(FAILED, _has_failed_before),
    Rule(BLOCKED, _is_blocked),
    Rule(AWAITING, _lacks_approval),
    Rule(READY, _is_ready),
)
