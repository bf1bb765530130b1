# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a maintenance left whose record is gone: the record was removed, or the Node object was recreated.

What the host says counts: a driver on trial, not confirmed yet, is validated and confirmed, or taken back. And what is left on
the Node counts: a step, or a slot with paused components, tells whose cordon it is.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import View
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import host_side as maintenance_host_side
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.context import Outdated, Work
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.end import Ending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import FAILED, UP_TO_DATE, WITHDRAWN, NotDue, Outcome
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import PAUSED, TURNED, Target

# What install and people put on a node, for a Node object that was recreated.
_LASTING_LABELS = (
    kube_client.LABEL_PRESENT,
    kube_client.LABEL_CHIP,
    kube_client.LABEL_DRIVER_VERSION,
    kube_client.LABEL_FIRMWARE_VERSION,
    "accelerator",
    "workerselector",
    "node-role.kubernetes.io/worker",
    "host-arch",
    maintenance_record.LABEL_KEEP_CORDONED,
    maintenance_record.LABEL_REQUESTED,
)


class Adoption:
    def __init__(self, work: Work) -> None:
        """``work``: Work."""
        self._work, self._request = work, work.request
        self._log, self._slots = work.log, work.slots

    def is_lost(self, node: Object) -> bool:
        """Whether a maintenance had this node, and its record is gone."""
        return maintenance_record.is_lost(node, lambda: self._slots.view()["holders"])

    def adopt_trial(self, view: View, lost: bool) -> None:
        """Write a new record for the trial that the host is in: at its validation, or on its way back."""
        request, driver, good = self._request, view["driver"], view["good"]
        if request.release is None:
            stays = request.reason == maintenance_record.UPGRADE_REASON
        else:
            stays = maintenance_host_side.runs(view, request.release)
        tried, before = _driver(driver), _driver(good)
        self._slots.hold(request.node, request.run, pool=self._work.pool(tried) if stays else None)

        def decide(node: Object, _none: None) -> Change:
            step = maintenance_record.VALIDATION if stays else maintenance_record.ROLLBACK
            target = dict(tried, digest=request.target.get("digest")) if stays else dict(before, digest=None)
            record = self._record(node, view, before if stays else tried, target, step, lost)
            record["boot_id"] = view["boot_id"] if stays else None
            if not stays:
                record["times"][TURNED] = self._log.now()
            old = approval.without_old(node, view["generation"])
            return Change(record, maintenance_record.reboot_required_label(node, record), old, cordon=True)

        self._log.write(decide)
        text = "its host runs %s on trial, and there is no record of it: " % tried["version"]
        self._work.say(text + ("validates it" if stays else "goes back to %s" % before["version"]))

    def give_back(self, view: View) -> Outcome:
        """Whose record is gone and whose host was not rebooted, or has a confirmed driver: back into service."""
        self._slots.hold(self._request.node, self._request.run)
        driver = _driver(view["driver"])
        lost = self.is_lost(self._log.node)
        withdraws = view["next"] is not None or view["going_down"]

        def decide(node: Object, _none: None) -> Change:
            record = self._record(node, view, driver, {}, maintenance_record.JOBS, lost)
            if withdraws:
                record["unseen"] = record["generation"]  # the host gets to know it, without an intent
            return Change(record, annotations=approval.without_old(node, view["generation"]))

        self._log.write(decide)
        if withdraws:
            # A reboot that is on its way takes place, but shall try nothing.
            self._work.host.withdrawn(self._log.own["generation"])
        return Ending(self._work).withdraw("It was left in the middle of a maintenance whose record is missing.")

    def drop(self, exc: Outdated) -> Outcome | None:
        """End the maintenance whose record is older than the host, as one whose record is gone: what the host says counts. Its
        approval was used long ago, whether the record has it or the Node has it still."""
        if maintenance_host_side.on_trial(exc.view) and not self._request.purpose.recovers:
            self.adopt_trial(exc.view, lost=True)
            return None
        gone: LabelChanges = {approval.ANNOTATION_APPROVE: None, approval.ANNOTATION_APPROVED_BY: None}

        def decide(_node: Object, record: Record) -> Change:
            # From now on the Node knows what the host has seen, so what is approved next counts.
            known = {name: record[name] for name in record if name != "unseen"}
            known["generation"] = max(known["generation"], exc.view["generation"])
            return Change(dict(known, heartbeat=self._log.now(), approval=None), annotations=gone)

        self._log.write(decide)
        return Ending(self._work).give_back(FAILED, exc.message)

    def record_again(self) -> None:
        """The Node was deleted, and the kubelet registered it again: write what is under way on the new one."""
        self._work.say("the Node object was recreated: writes the record again")
        previous = kube_client.labels(self._log.previous)
        labels: LabelChanges = {name: previous[name] for name in _LASTING_LABELS if name in previous}
        labels[kube_client.LABEL_COMPONENTS] = previous.get(kube_client.LABEL_COMPONENTS)

        def change_of(node: Object, record: Record) -> Change:
            record.update(uid=node["metadata"].get("uid"), heartbeat=self._log.now())
            if maintenance_record.intended(record):
                return Change(record, labels, cordon=True)
            record["step"] = maintenance_record.CORDON
            return Change(record, labels)

        self._log.adopt_new_node(change_of)

    def _record(self, node: Object, view: View, before: Target, target: Target, step: str, lost: bool) -> Record:
        """``lost``: the cordon is that maintenance's, and so are the paused components."""
        generation = max(maintenance_record.last(node).get("generation", 0), view["generation"]) + 1
        now, request = self._log.now(), self._request
        recoveries = maintenance_record.last(node).get("recoveries") or ()
        record = maintenance_record.new_record(
            node, request.run, now, generation, request.reason, before, target, recoveries, request.job
        )
        # managedFields tell whose the cordon is; where they do not, the step that was taken.
        by = maintenance_record.cordoned_by(node)
        cordoned = lost and maintenance_record.state(node) != maintenance_record.CORDON
        ours = by == maintenance_record.CORDON_MANAGER or (by is None and cordoned)
        record.update(step=step, unschedulable=maintenance_record.unschedulable(node) and not ours, times={step: now})
        # Or those of the maintenance before, which failed and left them so.
        paused = lost or maintenance_record.left_paused(node)
        if paused and kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused":
            record["times"][PAUSED] = now
        return record

    def settle(self, view: View) -> None:
        """Raise NotDue for a node without the label of a step: what the host and the Node say is what became of it."""
        request, node = self._request, self._log.node
        if request.release is None:
            raise NotDue(WITHDRAWN, "Nothing is left of its maintenance.")
        there = maintenance_host_side.has_confirmed(view, request.release)
        other_firmware = self._work.lacks_firmware() if there else None
        if not there or other_firmware:
            raise NotDue(
                FAILED,
                "It was not taken to %s: its label %s was removed during this run, and its %s. Run again, which upgrades"
                " it. To exclude it: kubectl label node %s %s=true"
                % (
                    request.target.get("version"),
                    maintenance_record.LABEL_STATE,
                    "chips run the firmware %s" % other_firmware if there else "host runs %s" % view["driver"],
                    request.node,
                    maintenance_record.LABEL_SKIP,
                ),
            )
        told = kube_client.labels(node).get(kube_client.LABEL_DRIVER_VERSION)
        if told != request.target.get("version"):
            raise NotDue(
                FAILED,
                "Its host runs %s, but the node's label %s says %s. Run npuops.ascend.install, which validates the host and labels"
                " the node." % (view["driver"], kube_client.LABEL_DRIVER_VERSION, told),
            )
        raise NotDue(UP_TO_DATE)


def _driver(release: str | None) -> Target:
    return {"version": maintenance_record.version_of(release) or None, "release": release}
