# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on one node: whether it is rebooted now, goes on, waits, or is left alone, and why."""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Validation
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import due_node_checks, vnpu_changes
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import firmware as rollout_firmware
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import kernels as rollout_kernels
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollback as rollout_rollback
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import target as rollout_target
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.due_node_checks import ImageSizes
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollback import Wave
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import Lookups, RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.snapshot import FleetSnapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.driver_image import Answers
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


def judge(
    entry: PlannedNode,
    validation: Validation,
    snapshot: FleetSnapshot,
    settings: RolloutSettings,
    lookups: Lookups,
    sizes: ImageSizes,
    wave: Wave | None,
    holders: Collection[str],
    firmware: rollout_firmware.Firmware,
    answers: Answers | None,
) -> None:
    """Sets the verdict, with reasons, notes and target. ``validation``: of the driver that the host has now; ``wave``: what the
    last upgrade brought, for a rollback; ``holders``: the names of the nodes that have a slot; ``answers``: of the registry, None
    for a rollback."""
    entry.requested = maintenance_record.is_true(entry.labels, maintenance_record.LABEL_REQUESTED)
    if entry.waiting_firmware:
        entry.notes.append("the firmware %s is in its chips already: they run it after the next boot" % entry.waiting_firmware)
    vnpu_changes.look(entry, settings)
    if settings.reason == maintenance_record.UPGRADE_REASON and entry.facts and entry.checked.digest:
        rollout_firmware.look(entry, validation, firmware)
    settled = _settled(entry, settings, lookups.now, wave, holders)
    if settled is not None:
        entry.verdict = settled
        if settled == SKIPPED:
            vnpu_changes.tell(entry)
        if settled in (IN_FLIGHT, ON_TRIAL):
            rollout_firmware.keep_unless_possible(entry, settings)
        return
    if settings.reason == maintenance_record.ROLLBACK_REASON:
        problem = (
            rollout_rollback.previous(entry)
            or rollout_rollback.back_already(entry, settings)
            or rollout_rollback.not_of(wave, entry)
        )
        if problem:
            entry.verdict, entry.notes = SKIPPED, entry.notes + [problem]
            return
    elif entry.checked.digest:
        rollout_target.configure(entry)
    reasons = list(entry.checked.reasons)
    # What a host says about its driver says nothing about a node that is another machine.
    # Nor is it known whether the chips have what they are to have, where that is not known.
    known = entry.same_machine and not entry.firmware_problem
    if entry.target and not entry.requested and known and rollout_target.is_there(entry, settings):
        entry.verdict = UP_TO_DATE
        vnpu_changes.tell(entry)
        entry.notes += reasons + due_node_checks.trouble(entry, validation)
        rollout_kernels.tell(entry, answers)
        return
    node = entry.node
    if node is not None and rollout_target.failed_before(entry, settings) and not settings.retry:
        last = maintenance_record.last(node)
        entry.verdict = FAILED
        entry.reasons.append(
            "%s; after fixing this: -e npu_upgrade_retry=true" % one_line(last.get("failure") or "its last upgrade failed")
        )
        return
    entry.reasons = reasons
    if node is not None and entry.target:
        rollout_kernels.check(entry, entry.target, answers)
        due_node_checks.check(entry, node, entry.target, validation, snapshot, settings, lookups, sizes)
        vnpu_changes.check(entry)
    # That there is no node is among the reasons.
    if entry.reasons or node is None:
        entry.verdict = BLOCKED
        return
    _approve(entry, node, settings, lookups)


def _settled(entry: PlannedNode, settings: RolloutSettings, now: float, wave: Wave | None, holders: Collection[str]) -> str | None:
    """The verdict that needs no look at the target, or None."""
    host, node = entry.checked.host, entry.node
    if node is not None:
        verdict = _in_flight(entry, node, settings, now, wave) or _unreadable(entry, node)
        if verdict:
            return verdict
    if host.get("unreachable"):
        entry.reasons = list(entry.checked.reasons)
        return UNREACHABLE
    if entry.facts and not entry.checked.has_chips:
        entry.notes += entry.checked.notes
        return SKIPPED
    if entry.checked.config["driver_source"] == "preinstalled":
        entry.notes.append("its driver is preinstalled; npuops.ascend never upgrades it")
        return SKIPPED
    if maintenance_record.is_true(entry.labels, maintenance_record.LABEL_SKIP):
        entry.notes.append("is excluded by its label %s=true" % maintenance_record.LABEL_SKIP)
        return SKIPPED
    return _left_behind(entry, node, settings, holders) if node is not None and entry.same_machine else None


def _left_behind(entry: PlannedNode, node: Object, settings: RolloutSettings, holders: Collection[str]) -> str | None:
    """The verdict on a node that a maintenance has left without a record, or None."""
    trial, good = (entry.facts.get("upgrade") or {}).get("trial"), entry.driver.get("good")
    if trial and trial != good:
        entry.target = rollout_target.of_trial(entry, settings, trial, good)
        entry.notes.append("runs %s on trial, unconfirmed; without confirmation its next boot uses %s" % (trial, good))
        if kube_client.LABEL_PRESENT not in entry.labels:
            entry.notes.append("lacks the labels of npuops.ascend.install (was the Node recreated?): run install afterwards")
        verdict = ON_TRIAL
    elif maintenance_record.is_lost(node, lambda: holders) or entry.driver.get("next"):
        # A rollback takes nothing further back of which nobody knows how far it was.
        target = None if settings.reason == maintenance_record.ROLLBACK_REASON else rollout_target.wanted_now(entry)
        entry.target = target
        if target and not entry.requested and rollout_target.is_there(entry, settings):
            entry.target = None
        armed = "; its next boot would try %s" % entry.driver["next"] if entry.driver.get("next") else ""
        entry.notes.append("was left in the middle of a maintenance whose record is missing: it is given back first%s" % armed)
        verdict = IN_FLIGHT
    else:
        return None
    entry.notes += entry.checked.reasons
    return verdict


def _unreadable(entry: PlannedNode, node: Object) -> str | None:
    """The verdict on a node of which nobody knows what became of it last, or None."""
    try:
        maintenance_record.check(node)
    except NpuError as exc:
        entry.reasons.append(one_line(exc.message))
        return BLOCKED
    return None


def _in_flight(entry: PlannedNode, node: Object, settings: RolloutSettings, now: float, wave: Wave | None) -> str | None:
    """The verdict on a node with the record of a maintenance, or None."""
    try:
        record = maintenance_record.decode(node)
    except NpuError as exc:
        entry.reasons.append(one_line(exc.message))
        return BLOCKED
    if record is None:
        return None
    entry.record = record
    dead = maintenance_record.age(record, now) > maintenance_record.HEARTBEAT_LIMIT
    if record.get("reason") == maintenance_record.RECOVERY_REASON and (maintenance_record.intended(record) or not dead):
        # As pods that cannot leave now, it ends by itself.
        entry.blocker_text = "is in recovery by the run %s (step %s, last heartbeat %s); if that run is dead: %s" % (
            record["run"],
            record.get("step"),
            record.get("heartbeat"),
            this_run.again("heal", limit=entry.name),
        )
        return BLOCKED
    entry.notes.append("step %s of run %s, last heartbeat %s" % (record.get("step"), record["run"], record.get("heartbeat")))
    intended = maintenance_record.intended(record)
    entry.target = (
        rollout_target.after_intent(entry, record, settings)
        if intended
        else rollout_target.before_intent(entry, record, settings, wave)
    )
    if maintenance_record.reason_of(record) != settings.reason:
        what = "its %s to %s" % (maintenance_record.reason_of(record), (record.get("to") or {}).get("version") or "the same")
        ends = " is ended first: back to the confirmed driver, unless its own is confirmed"
        entry.notes.append(what + (ends if intended else " is given back first"))
    elif entry.target is None:
        entry.notes.append("is given back: it runs %s already" % entry.loaded_version)
    entry.notes += entry.checked.reasons
    return IN_FLIGHT


def _approve(entry: PlannedNode, node: Object, settings: RolloutSettings, lookups: Lookups) -> None:
    entry.verdict = READY
    if settings.auto:
        return
    version = (entry.target or {}).get("version")
    approval, why = maintenance_record.approval(node, lookups.now, settings.approval_max_age, version=version)
    if approval is None:
        entry.verdict = AWAITING
        entry.reasons.append(why or "")
