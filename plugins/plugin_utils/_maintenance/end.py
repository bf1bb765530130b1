# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a maintenance ends: done, given back as it was, failed and back on the old driver, left out of service, or halted in
the middle.

The record ends in one patch, together with label, cordon and components; then the slot is given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import Work
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import (
    AWAITING,
    DONE,
    FAILED,
    HALTED,
    WITHDRAWN,
    Outcome,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import LEFT, PAUSED


class Ending:
    def __init__(self, work: Work) -> None:
        """``work``: Work."""
        self._work, self._request = work, work.request
        self._log, self._slots, self._purpose = work.log, work.slots, work.request.purpose

    def finish(self, due: bool = False) -> Outcome:
        """The node is upgraded, or recovered. ``due``: what this run wants is to begin yet; the record was for something else."""
        record = self._log.own

        def decide(node: Object, record: Record) -> Change:
            labels = self._labels(node, record, maintenance_record.UPGRADE if due else None)
            if record["to"].get("version"):
                labels[kube_client.LABEL_DRIVER_VERSION] = record["to"]["version"]
            return self._end(node, record, "success", labels, gives_cordon_back(node, record), None, left=False)

        self._log.write(decide)
        self._slots.give(self._request.node, self._request.run, works=record["to"].get("release"))
        stays = maintenance_record.unschedulable(self._log.node)
        text = "done: %s%s" % (maintenance_record.way(record), "; it stays cordoned, as requested" if stays else "")
        self._work.say(text, maintenance_record.UNCORDON)
        return self._work.outcome(DONE)

    def withdraw(self, why: str | None = None) -> Outcome:
        """What another run began for something else is given back before its intent."""
        record, request = self._log.own, self._request
        wanted = "this run is a %s" % request.reason
        if request.reason == maintenance_record.reason_of(record):
            wanted = "the host has the wanted release now"
        why = why or "The %s was withdrawn before its reboot: %s." % (maintenance_record.way(record), wanted)
        # A recovery takes nothing from what an upgrade has to do.
        due = request.release is not None or self._purpose.recovers
        return self.give_back(WITHDRAWN, why, state=maintenance_record.UPGRADE if due else None)

    def give_back(self, outcome: str, why: str, blockers: Iterable[Any] | None = (), **after: str | None) -> Outcome:
        """The host was not rebooted: everything as it was, but for what is told, and the node is due still, or ``state`` is what it
        is."""
        step, intended = self._log.own["step"], self._log.own["boot_id"] is not None
        waits = outcome == AWAITING

        def decide(node: Object, record: Record) -> Change:
            labels = self._labels(node, record, maintenance_record.APPROVAL if waits else maintenance_record.UPGRADE)
            labels.pop(maintenance_record.LABEL_REQUESTED, None)
            if after:
                labels[maintenance_record.LABEL_STATE] = after["state"]
            # null: the cordon-required step was not taken yet
            cordon = None if record["unschedulable"] is None else gives_cordon_back(node, record)
            if LEFT in record["times"]:
                cordon = None  # it was out of service before, too
            elif PAUSED in record["times"] and kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused":
                labels[kube_client.LABEL_COMPONENTS] = "enabled"
            change = self._end(node, record, outcome, labels, cordon, why)
            if record["approval"] is not None:
                # It was for a reboot that did not take place.
                change.annotations[approval.ANNOTATION_APPROVE] = "true"
                change.annotations[approval.ANNOTATION_APPROVED_BY] = record["approval"].get("by")
                change.annotations[approval.ANNOTATION_APPROVAL_FOR] = approval.given_for(record)
            elif waits:
                change.annotations.update(approval.ask_for(node, self._request.version))
            return change

        if intended:
            self._work.host.withdrawn(self._log.own["generation"])
        why += self._what_stays()
        self._log.write(decide)
        self._slots.give(self._request.node, self._request.run)
        self._work.say("given back: %s" % why, step)
        if waits:
            self._work.tell_event()
        return self._work.outcome(outcome, why, blockers, step=step)

    def fail(self, outcome: str, addition: str, healthy: bool) -> Outcome:
        """The new driver did not work. ``healthy``: the old one does, and the node serves again.

        Halted first: a run that is killed after that has not gone on to the next node.
        """
        record = self._log.own
        reason = "The %s of %s to %s failed: %s. %s" % (
            record["reason"],
            self._request.node,
            record["to"].get("version"),
            (record["failure"] or "unknown").rstrip("."),
            addition + self._what_stays(),
        )
        if self._work.smoke is not None:
            self._work.smoke.remove()
        most = self._work.policy.max_failures
        if not healthy or 0 < most <= self._failures() + 1:
            self._slots.halt("the run " + self._request.run, reason, record["reason"])

        def decide(node: Object, record: Record) -> Change:
            labels = self._labels(node, record, maintenance_record.FAILED)
            if healthy:
                return self._end(node, record, outcome, labels, gives_cordon_back(node, record), reason, left=False)
            if PAUSED in record["times"]:
                labels[kube_client.LABEL_COMPONENTS] = "paused"
            # A cordon that another client has set is never ours.
            return self._end(node, record, outcome, labels, None, reason, left=not record["unschedulable"])

        self._log.write(decide)
        self._slots.give(self._request.node, self._request.run)
        self._work.say("failed: %s" % reason, maintenance_record.ROLLBACK)
        return self._work.outcome(FAILED, reason)

    def _what_stays(self) -> str:
        """What to add for a host that is not as it was, though its driver is; "" if there is nothing to add."""
        vnpus = self._log.own.get("vnpus")
        return (" Its virtual NPUs have changed, and stay: %s." % vnpus.rstrip(".") if vnpus else "") + self._waiting_firmware()

    def _waiting_firmware(self) -> str:
        """Of a host whose flash was written, be it by an earlier maintenance in this boot, and that was not rebooted since."""
        view = self._work.host.peek() if self._log.own["to"].get("firmware") else None
        version = view and maintenance_host_side.waiting_firmware(view)
        return " The firmware %s is in the chips already: they run it after the next boot of the host." % version if version else ""

    def leave(self, why: str) -> Outcome:
        """The reboot did not help. The node stays out of service; the rollout and other recoveries are no worse for it."""
        record = self._log.own
        reason = "The recovery of %s did not help: %s" % (self._request.node, sentence(why))
        if self._work.smoke is not None:
            self._work.smoke.remove()

        def decide(node: Object, record: Record) -> Change:
            # With its components: the node agent tells when the chips answer after all.
            labels = dict(self._labels(node, record, None), **self._work.components_back())
            return self._end(node, record, "failed", labels, None, reason, left=not record["unschedulable"])

        self._log.write(decide)
        self._slots.give(self._request.node, self._request.run)
        self._work.say("left cordoned: %s" % reason, record["step"])
        return self._work.outcome(FAILED, reason)

    def halt(self, problem: str) -> Outcome:
        """The node is neither on the new driver nor back: its record and slot stay, and no run begins another node."""
        step, node = self._log.own["step"], self._request.node
        why = "%s is in the middle of its maintenance (%s). %s Check its host." % (node, step, sentence(problem))
        self._slots.halt("the run " + self._request.run, why, self._log.own["reason"], node)
        self._log.step(step, failure=problem)
        self._work.say("halted: %s" % problem)
        return self._work.outcome(HALTED, why)

    def _failures(self) -> int:
        """How many other nodes failed in this run."""
        selector = "%s=%s" % (maintenance_record.LABEL_STATE, maintenance_record.FAILED)
        nodes = self._work.cluster.list("/api/v1/nodes", label_selector=selector)
        return sum(
            maintenance_record.last(node).get("run") == self._request.run and node["metadata"]["name"] != self._request.node
            for node in nodes
        )

    def _labels(self, node: Object, record: Record, state: str | None) -> LabelChanges:
        """The labels at the end. ``state``: what an upgrade's end is called; a recovery leaves that as it was."""
        state = self._purpose.state_after(record, state)
        labels = {
            maintenance_record.LABEL_STATE: state,
            maintenance_record.LABEL_REBOOT_REQUIRED: maintenance_record.reboot_required(
                node, state == maintenance_record.APPROVAL
            ),
        }
        if not self._purpose.recovers:
            labels[maintenance_record.LABEL_REQUESTED] = None
        return labels

    def _end(
        self,
        node: Object,
        record: Record,
        outcome: str,
        labels: LabelChanges,
        cordon: bool | None,
        why: str | None,
        left: bool | None = None,
    ) -> Change:
        """The Change with which the record becomes the last one. ``left``: whether it is left out of service, None: as it was."""
        times = dict(record["times"])
        if left:
            times[LEFT] = self._log.now()
        elif left is False:
            times.pop(LEFT, None)
        failure = record["failure"] if why is None else why
        closed = dict(record, heartbeat=self._log.now(), failure=failure, times=times)
        closed.pop("process", None)
        unseen = closed.pop("unseen", None)
        if unseen is not None and not maintenance_record.intended(record):
            # The host was never compared with it: what the Node says that it has seen must be no more than that.
            closed["generation"] = unseen
        if outcome == WITHDRAWN:
            closed["withdrawn_for"] = self._request.reason
        annotations: LabelChanges = {}
        if labels[maintenance_record.LABEL_STATE] not in maintenance_record.DUE:
            annotations = approval.no_longer_asked(node)
        annotations[maintenance_record.ANNOTATION_LAST] = maintenance_record.ended(closed, outcome, self._log.now())
        return Change(None, labels, annotations, cordon)


def gives_cordon_back(node: Object, record: Record) -> bool | None:
    """False (uncordon), or None (leave it): a cordon from before the maintenance, or one that a person wants, is not ours.

    The record says that this maintenance has cordoned it; only a client known to have done so since has a better claim.
    """
    if record["unschedulable"] or maintenance_record.is_true(kube_client.labels(node), maintenance_record.LABEL_KEEP_CORDONED):
        return None
    return False if maintenance_record.cordoned_by(node) in (None, maintenance_record.CORDON_MANAGER) else None
