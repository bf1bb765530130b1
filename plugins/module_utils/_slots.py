# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many nodes may be in maintenance at once, and whether the rollout is halted: a Lease that all runs share.

Every write is a compare-and-swap. A node's slot is taken before its record is written and given back after the record
has ended; so a holder without a record is either about to begin or left by a run that died.

Runs on the controller. Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import copy
import json

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _maintenance, _record
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError

LEASE = "npu-maintenance"
ANNOTATION = "npuops.ascend/slots"
# Seconds after which a holder that has no record is taken for dead.
HOLDER_LIMIT = 60


class Halted(NpuError):
    """The rollout is halted until a person clears it."""


class Refused(NpuError):
    """Another run works with another number of slots, or the Lease cannot be used."""


class Slots:
    def __init__(self, cluster, namespace, clock, holder_limit=HOLDER_LIMIT):
        self._cluster, self._clock, self._holder_limit = cluster, clock, holder_limit
        self._namespace = namespace
        self._collection = "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % namespace
        self._path = "%s/%s" % (self._collection, LEASE)

    def view(self):
        """{max, halted, holders} as they are."""
        return self._read()[1]

    def take(self, node, run, maximum, recoveries=None):
        """Take a slot for ``node``. None when this run has it; else, in a sentence, why it has to wait.

        ``maximum``: slots of the cluster, 0 = unlimited. A node that has a slot of this run keeps it. Raises Halted, and
        Refused when another number is in force. ``recoveries``: for a recovery, how many of those there may be, 0 = any number;
        it takes a slot within whatever number other runs work with.
        """
        recovers = recoveries is not None

        def decide(slots):
            holders = slots["holders"]
            mine = holders.get(node)
            if mine is not None and mine["run"] == run:
                return None
            if mine is not None and not self._abandoned(node, mine):
                return "the run %s has just taken it up" % mine["run"]
            if slots["halted"]:
                raise Halted(halted_text(slots["halted"]), halted=slots["halted"])
            holders.pop(node, None)
            number, why = _room(slots, maximum, recoveries)
            if holders and (why or slots["max"] != maximum):
                for name in [name for name, holder in holders.items() if self._abandoned(name, holder)]:
                    del holders[name]
                number, why = _room(slots, maximum, recoveries)
            if not recovers and _upgrades(holders) and slots["max"] != maximum:
                raise Refused(
                    "Another run works with %s, this one was started with %s, and the number is the cluster's: wait"
                    " until %s is done, or start this one with npu_upgrade_max_parallel=%d."
                    % (_slots_text(slots["max"]), _slots_text(maximum), ", ".join(sorted(holders)), slots["max"])
                )
            if why:
                return why
            slots["max"] = number
            holders[node] = self._holder(run, recovers)
            return None

        return self._write(decide)

    def hold(self, node, run, recovers=False):
        """Have a slot for a node whose record is this run's already: it is in maintenance, however many others are."""

        def decide(slots):
            if slots["holders"].get(node, {}).get("run") != run:
                slots["holders"][node] = self._holder(run, recovers)

        self._write(decide)

    def _holder(self, run, recovers):
        holder = {"run": run, "since": _maintenance.rfc3339(self._clock.now())}
        return dict(holder, reason=_maintenance.RECOVERY_REASON) if recovers else holder

    def give(self, node, run):
        """Give the node's slot back, if it is this run's."""

        def decide(slots):
            if slots["holders"].get(node, {}).get("run") == run:
                del slots["holders"][node]

        self._write(decide)

    def sweep(self):
        """Drop the holders that dead runs left behind; returns the names of their nodes."""

        def decide(slots):
            dead = [name for name, holder in slots["holders"].items() if self._abandoned(name, holder)]
            for name in dead:
                del slots["holders"][name]
            return dead

        return self._write(decide)

    def halt(self, who, why):
        """Stop every run before its next cordon. The first reason stays."""

        def decide(slots):
            if not slots["halted"]:
                slots["halted"] = {"who": who, "why": why, "when": _maintenance.rfc3339(self._clock.now())}

        self._write(decide)

    def halted(self):
        """The sentence about the halt, or None."""
        halted = self.view()["halted"]
        return halted_text(halted) if halted else None

    def clear_halt(self):
        """Returns what was cleared ({who, why, when}), or None."""

        def decide(slots):
            cleared, slots["halted"] = slots["halted"], None
            return cleared

        return self._write(decide)

    def _abandoned(self, name, holder):
        """Whether the holder's run is done with the node or died before it began."""
        node = self._cluster.get(_maintenance.path_of(name))
        since = _maintenance.seconds_of(holder.get("since"))
        if node is not None:
            if _cluster.ANNOTATION_MAINTENANCE in _cluster.annotations(node):
                return False
            last = _maintenance.last(node)
            over = _maintenance.seconds_of(last.get("ended"))
            if last.get("run") == holder.get("run") and since is not None and over is not None and since <= over:
                return True  # it ended, and only giving the slot back was left
        return since is None or self._clock.now() - since > self._holder_limit

    def _read(self):
        """(Lease or None, {max, halted, holders})."""
        lease = self._cluster.get(self._path)
        slots = {"max": 1, "halted": None, "holders": {}}
        if lease is not None:
            text = _cluster.annotations(lease).get(ANNOTATION)
            try:
                slots.update(_record.slots(text or "{}"))
            except _record.Misfit as exc:
                raise Refused(
                    "The annotation %s of the Lease %s/%s cannot be read: %s. Somebody edited it, or a newer version of npuops.ascend"
                    " wrote it: then use that one. Otherwise look which nodes have the annotation %s; when none is in maintenance,"
                    " kubectl -n %s delete lease %s and run again."
                    % (ANNOTATION, self._namespace, LEASE, exc, _maintenance.ANNOTATION_RECORD, self._namespace, LEASE)
                )
        return lease, slots

    def _write(self, decide):
        """``decide(slots)`` changes the dict and returns the result; it is called anew when somebody was faster."""
        while True:
            lease, before = self._read()
            after = copy.deepcopy(before)
            result = decide(after)
            if after == before:
                return result
            annotations = {ANNOTATION: json.dumps(after, sort_keys=True)}
            try:
                if lease is None:
                    self._create(annotations)
                else:
                    self._replace(lease, annotations)
                return result
            except _cluster.Conflict:
                continue

    def _replace(self, lease, annotations):
        metadata = {"annotations": annotations, "resourceVersion": lease["metadata"]["resourceVersion"]}
        try:
            self._cluster.merge_patch(self._path, {"metadata": metadata})
        except _cluster.NotFound as exc:
            raise _cluster.Conflict(exc.message)  # deleted in between: begin anew

    def _create(self, annotations):
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": self._namespace, "annotations": annotations},
            "spec": {},
        }
        try:
            self._cluster.request("post", self._collection, body=lease)
        except _cluster.NotFound:
            raise Refused(
                "The cluster has no namespace %s, where the Lease %s belongs. Run npuops.ascend.install first, or set"
                " npu_namespace as it was there." % (self._namespace, LEASE)
            )


def halted_text(halted):
    """The sentence for people; how to go on is part of it."""
    return (
        "The rollout is halted since %(when)s by %(who)s: %(why)s When that is repaired, go on with"
        " ansible-playbook npuops.ascend.upgrade -e npu_upgrade_clear_halt=true" % halted
    )


def _room(slots, maximum, recoveries):
    """(the number of slots in force, why there is none free or None)."""
    holders = slots["holders"]
    # Recoveries alone do not say how many an upgrade may take.
    number = slots["max"] if recoveries is not None and _upgrades(holders) else maximum
    if number and len(holders) >= number:
        return number, "all %s taken: %s" % (_slots_text(number), _holders_text(holders))
    recovering = {name: holder for name, holder in holders.items() if name not in _upgrades(holders)}
    if recoveries and len(recovering) >= recoveries:
        text = "as many nodes are in recovery as npu_recovery_max_parallel allows (%d): %s"
        return number, text % (recoveries, _holders_text(recovering))
    return number, None


def _upgrades(holders):
    """Those that are no recoveries."""
    return {name: holder for name, holder in holders.items() if holder.get("reason") != _maintenance.RECOVERY_REASON}


def _slots_text(number):
    return "no limit (npu_upgrade_max_parallel=0)" if not number else "%d slot%s" % (number, "s" if number > 1 else "")


def _holders_text(holders):
    return ", ".join(
        "%s (run %s since %s)" % (name, holder["run"], holder.get("since")) for name, holder in sorted(holders.items())
    )
