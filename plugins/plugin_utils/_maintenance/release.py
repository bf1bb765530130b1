# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a maintenance left, given back by a person, who answers for the host: it is not asked.

Of a cordon, only what a maintenance set is taken back. The reason and the name of the person are in the annotation
last-maintenance, and in an Event of the Node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock, RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import end, purpose
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, node_log, run_liveness
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.halt import Halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import LEFT, PAUSED
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slot_watch import SlotHolder
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import Slots

OUTCOME = "released"


class Order(NamedTuple):
    """``who`` releases nodes, and ``why``; ``force``: also those whose reboot is certain."""

    who: str
    why: str
    force: bool = False

    @property
    def text(self) -> str:
        return "Released by %s: %s" % (self.who, sentence(self.why))


class Released(NamedTuple):
    """``names``: of the nodes that were released, or would be; ``lines`` tell about them, and ``problems`` about the others;
    ``halted``: the Halt of the slots, None without one."""

    names: list[str]
    lines: list[str]
    problems: list[str]
    halted: Halt | None


def release(
    cluster: RetryingCluster,
    namespace: str,
    names: Sequence[str],
    order: Order,
    heartbeat_limit: float,
    say: Callable[[str], None],
    check_mode: bool = False,
) -> Released:
    """Release the nodes ``names``, but no node of a run that shows signs of life within ``heartbeat_limit`` seconds, or that began
    meanwhile."""
    slots = Slots(cluster, namespace, cluster.clock)
    dead = _dead(cluster, namespace, names, heartbeat_limit, say)
    seen = slots.view()
    done = Released([], [], [], seen["halted"])
    for name in names:
        releasing = Releasing(cluster, slots, name, order, cluster.clock)
        try:
            if releasing.run(dead, seen["holders"].get(name), check_mode):
                done.names.append(name)
                done.lines.append("%s: %s" % (name, releasing.told))
        except NpuError as exc:
            done.problems.append("%s was not released: %s" % (name, sentence(exc.message)))
    return done


def _dead(cluster: RetryingCluster, namespace: str, names: Sequence[str], limit: float, say: Callable[[str], None]) -> set[str]:
    """The runs that have one of the nodes in maintenance and show no sign of life while they are watched."""
    nodes, runs = cluster.nodes(), set()
    for name in names:
        try:
            record = maintenance_record.decode(nodes[name]) if name in nodes else None
        except NpuError:
            continue  # told when it is to be released
        if record:
            runs.add(record["run"])
    if not runs:
        return set()
    life = run_liveness.Life(cluster, namespace, OUTCOME, cluster.clock)
    return runs - run_liveness.living(cluster, sorted(runs), life, limit, cluster.clock, say)


class Releasing:
    """One node. ``told``: what was, or would be done, as a clause; None if nothing is left of a maintenance."""

    def __init__(self, cluster: RetryingCluster, slots: Slots, name: str, order: Order, clock: Clock) -> None:
        self._slots, self._name, self._order = slots, name, order
        self._log = node_log.NodeLog(cluster, name, OUTCOME, clock)
        self.told: str | None = None

    def run(self, dead: Collection[str], holder: SlotHolder | None, check_mode: bool = False) -> bool:
        """Give the node back; whether there was anything to do. ``dead``: the runs that were watched and are at work no more;
        ``holder``: who has the slot of the node. Raises NpuError."""
        record = self._log.open()
        if record is not None:
            self._check(record, dead)
            self._log.adopt(record)
        if self._change(self._log.node, record, holder is not None) is None:
            return False
        if not check_mode:
            self._log.write(self._decide(holder is not None))
            if holder is not None:
                self._slots.give(self._name, holder["run"])
        return True

    def _check(self, record: Record, dead: Collection[str]) -> None:
        if record["run"] not in dead:
            raise NpuError(
                "the run %s is at work on it (step %s). Stop that run, or wait until it ends" % (record["run"], record.get("step"))
            )
        if maintenance_record.intended(record) and not self._order.force:
            raise NpuError(
                "its reboot is certain, and the host may be on trial with another driver (%s, step %s). To validate the host and"
                " finish this: %s. If you know that the host works, release it with npu_release_force=true"
                % (maintenance_record.way(record), record.get("step"), purpose.finish(record, self._name))
            )

    def _decide(self, held: bool) -> Callable[[Object, Record | None], Change]:
        def decide(node: Object, record: Record | None) -> Change:
            # What another one has done in the meantime is a reason to stop for the log. Nothing to do is a change of nothing.
            return self._change(node, record, held) or Change(None)

        return decide

    def _change(self, node: Object, record: Record | None, held: bool) -> Change | None:
        if record is not None:
            return self._of_record(node, record)
        if maintenance_record.is_lost(node, lambda: [self._name] if held else []):
            return self._of_lost(node)
        if maintenance_record.left_cordoned(node) or (maintenance_record.left_paused(node) and _is_paused(node)):
            return self._of_left(node)
        if maintenance_record.cordon_remains(node):
            # Its record came back from a backup, and ended without a word of the cordon.
            self._tell(node, "a maintenance that has ended had cordoned it", {}, False)
            return Change(None, cordon=False)
        return None

    def _of_record(self, node: Object, record: Record) -> Change:
        # A recovery leaves what an upgrade has to do as it was.
        state = record.get("due") if purpose.of_record(record).recovers else None
        labels: LabelChanges = {
            maintenance_record.LABEL_STATE: state,
            maintenance_record.LABEL_REBOOT_REQUIRED: maintenance_record.reboot_required(
                node, state == maintenance_record.APPROVAL
            ),
        }
        if _is_paused(node) and PAUSED in record["times"]:
            labels[kube_client.LABEL_COMPONENTS] = "enabled"
        cordon = None if record.get("unschedulable") is None else end.gives_cordon_back(node, record)
        if LEFT in record["times"] and maintenance_record.cordon_is_ours(node):
            cordon = False
        closed = {key: value for key, value in record.items() if key != "process"}
        closed["times"] = _without_marks(record)
        closed["failure"] = " ".join(filter(None, (record.get("failure"), self._order.text)))
        if not maintenance_record.intended(record):
            # Its host cannot have seen this number. If it has, the record came back from a backup, and an approval of the node may
            # be the one with which the host was rebooted then: what the Node says now lets the next run find that out.
            closed["generation"] = closed.pop("unseen", record["generation"] - 1)
        annotations = approval.no_longer_asked(node)
        annotations[maintenance_record.ANNOTATION_LAST] = maintenance_record.ended(closed, OUTCOME, self._log.now())
        self._tell(node, "the %s by the run %s ended" % (maintenance_record.way(record), record["run"]), labels, cordon)
        return Change(None, labels, annotations, cordon)

    def _of_lost(self, node: Object) -> Change:
        """Of a maintenance whose record is gone, the label of its step says whether it had cordoned the node."""
        by = maintenance_record.cordoned_by(node)
        began = maintenance_record.state(node) not in (None, maintenance_record.CORDON)
        ours = by == maintenance_record.CORDON_MANAGER or (by is None and began and maintenance_record.unschedulable(node))
        labels: LabelChanges = {maintenance_record.LABEL_STATE: None}
        if _is_paused(node):
            labels[kube_client.LABEL_COMPONENTS] = "enabled"
        cordon = False if ours and not _is_kept(node) else None
        self._tell(node, "a maintenance whose record is missing ended", labels, cordon)
        return Change(None, labels, cordon=cordon)

    def _of_left(self, node: Object) -> Change:
        """It failed, and stays so for the next upgrade: npu_upgrade_retry."""
        labels: LabelChanges = {}
        if _is_paused(node):
            labels[kube_client.LABEL_COMPONENTS] = "enabled"
        cordon = False if maintenance_record.cordon_is_ours(node) else None
        last = maintenance_record.last(node)
        closed = dict(last, times=_without_marks(last))
        closed["failure"] = " ".join(filter(None, (last.get("failure"), self._order.text)))
        annotations: LabelChanges = {
            maintenance_record.ANNOTATION_LAST: maintenance_record.ended(closed, last.get("outcome") or OUTCOME, self._log.now())
        }
        self._tell(node, "it had been left out of service by the %s" % maintenance_record.way(last), labels, cordon)
        return Change(None, labels, annotations, cordon)

    def _tell(self, node: Object, what: str, labels: LabelChanges, cordon: bool | None) -> None:
        told = [what]
        if labels.get(kube_client.LABEL_COMPONENTS):
            told.append("its components run again")
        if cordon is False:
            told.append("it is uncordoned")
        elif maintenance_record.unschedulable(node):
            by = "the label %s" % maintenance_record.LABEL_KEEP_CORDONED if _is_kept(node) else "another client"
            told.append("it stays cordoned, which %s wants: kubectl uncordon %s" % (by, self._name))
        self.told = "; ".join(told)


def _is_paused(node: Object) -> bool:
    return kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused"


def _is_kept(node: Object) -> bool:
    return maintenance_record.is_true(kube_client.labels(node), maintenance_record.LABEL_KEEP_CORDONED)


def _without_marks(record: Record) -> dict[str, str]:
    """Its times, without those that say that it left the node out of service."""
    return {name: when for name, when in (record.get("times") or {}).items() if name not in (LEFT, PAUSED)}
