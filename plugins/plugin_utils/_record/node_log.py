# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One Node with the record of a run on it, and the one way to write both."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.api_watch import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock, RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_conditions, node_events
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record


class Change:
    """What one Node PATCH does: the whole new record (None: it ends), labels and annotations (None: removed), and the
    cordon (None: as it is)."""

    def __init__(
        self,
        record: Record | None,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
        cordon: bool | None = None,
    ) -> None:
        self.record = data_annotations.bounded(record)
        self.labels = dict(labels or {})
        self.annotations = dict(annotations or {})
        self.cordon = cordon

    def patch(self, node: Object) -> Object:
        """The merge patch, on top of exactly this version of the Node."""
        labels, values = dict(self.labels), dict(self.annotations)
        values[maintenance_record.ANNOTATION_RECORD] = None if self.record is None else maintenance_record.encode(self.record)
        if self.record is not None:
            labels[maintenance_record.LABEL_STATE] = self.record["step"]
        body = {
            "metadata": {
                "resourceVersion": node["metadata"]["resourceVersion"],
                "labels": labels,
                "annotations": values,
            }
        }
        if self.cordon is not None:
            # null rather than false: that is how kubectl uncordon leaves it.
            body["spec"] = {"unschedulable": True if self.cordon else None}
        return body

    def is_on(self, node: Object, before: Record | None) -> bool:
        """Whether this very change is what the node says: then a write whose answer was lost took effect.

        ``before``: the record before the write. If two writes in the same second are equal, it cannot tell them apart.
        """
        values = kube_client.annotations(node)
        there = values.get(maintenance_record.ANNOTATION_RECORD)
        if self.record is not None:
            return self.record != before and there == maintenance_record.encode(self.record)
        ended = self.annotations.get(maintenance_record.ANNOTATION_LAST)
        return there is None and ended is not None and values.get(maintenance_record.ANNOTATION_LAST) == ended


class Lost(NpuError):
    """The record on the Node is no longer what this run wrote. Nothing may be written any more, and nothing given back."""


class Gone(NpuError):
    """The Node object was deleted."""


class Recreated(NpuError):
    """There is a new Node object under the old name; it knows nothing of the maintenance."""


class NodeLog:
    """One Node, with the record of this run on it. All writes to the Node go through ``write``.

    ``node``: the Node as last seen, {} before ``open``; ``record``: what this run has written last, None before and after;
    ``on_beat()`` is called whenever ``beat`` shows that this run lives.
    """

    def __init__(
        self,
        cluster: RetryingCluster,
        name: str,
        run: str,
        clock: Clock,
        on_beat: Callable[[], None] = lambda: None,
        process: str | None = None,
    ) -> None:
        """``process``: the name of this process, see run_process."""
        self._cluster, self._clock, self._on_beat = cluster, clock, on_beat
        self.name, self.run, self._process = name, run, process
        self.node: Object = {}
        self.previous: Object = {}  # the Node object before the present one
        self.record: Record | None = None
        self.started: str | None = None  # when the maintenance began; stays when its record has ended
        self.writes = 0
        self._written = 0.0  # monotonic time of the last write
        self._uid: str | None = None
        self._watch = Watch(cluster, clock, "/api/v1/nodes", field_selector="metadata.name=" + name)

    @property
    def own(self) -> Record:
        """``record``, for code that runs only where there is one."""
        if self.record is None:
            raise AssertionError("no record, where there must be one")
        return self.record

    def open(self) -> Record | None:
        """Read the Node for the first time; returns the record on it, whosever it is, or None. Raises Gone."""
        node = self._cluster.get(maintenance_record.path_of(self.name))
        if node is None:
            raise Gone(_gone(self.name))
        self.node, self._uid = node, node["metadata"].get("uid")
        record = maintenance_record.decode(node)
        if record is None:
            # A new one is numbered, and recoveries are counted, by what ended last.
            maintenance_record.check(node)
        return record

    def look(self) -> Object:
        """Read the Node. Raises Gone, Recreated or Lost when it is not as this run left it."""
        self._accept(self._cluster.get(maintenance_record.path_of(self.name)), None)
        return self.node

    def wait(self, pause: float, least: float, most: float) -> bool:
        """Sleep until the Node changes, as Watch.wait. Return whether it may have changed since it was last seen."""
        self._watch.read(self.node["metadata"].get("resourceVersion"))
        return self._watch.wait(pause, least, most)

    def waited(self) -> None:
        """No more waits follow."""
        self._watch.end()

    def adopt(self, record: Record) -> None:
        """Go on with the record that ``open`` found. Raises NpuError when it lacks what that takes."""
        missing = data_annotations.missing(record)
        if missing:
            raise maintenance_record.unreadable(self.node, maintenance_record.ANNOTATION_RECORD, "it lacks %s" % ", ".join(missing))
        self.record, self.started = record, record.get("started")
        self._written = self._clock.monotonic()

    def adopt_new_node(self, change_of: Callable[[Object, Record], Change]) -> None:
        """After Recreated: write the record on the new Node. ``change_of(node, record)`` makes the Change."""
        record, self.record = self.own, None
        try:
            self.write(lambda node, _none: change_of(node, copy.deepcopy(record)))
        except Gone:
            self.record = record
            raise

    def now(self) -> str:
        return maintenance_record.rfc3339(self._clock.now())

    def write(self, decide: Callable[[Object, Any], Change]) -> None:
        """One transition. ``decide(node, record)`` makes the Change, again for each version of the Node; it may raise.

        The Node is written by others all the time (the kubelet, the node agent): that alone is no reason to stop. That
        the record is no longer what this run wrote is: Lost.
        """
        cleared = False
        while True:
            change = decide(self.node, copy.deepcopy(self.record))
            if change.record is not None:
                change.record["process"] = self._process
            if not cleared and self._ends(change):
                # Before the record and the label, by which a run that continues after a crash finds out what to remove.
                cleared = True
                if self._tell_conditions(ended=True):
                    continue
            try:
                patch = change.patch(self.node)
                self.node = self._cluster.merge_patch(
                    maintenance_record.path_of(self.name), patch, field_manager=maintenance_record.CORDON_MANAGER
                )
            except (kube_client.Conflict, kube_client.NotFound):
                if not self._accept(self._cluster.get(maintenance_record.path_of(self.name)), change):
                    continue
            self.writes += 1
            before, self.record = self.record, change.record
            self.started = (change.record or {}).get("started", self.started)
            self._written = self._clock.monotonic()
            self._uid = self.node["metadata"].get("uid")
            # Not with every heartbeat.
            if before is None or change.record is None or before["step"] != change.record["step"]:
                self._tell_conditions()
            self._tell_event(before)
            return

    def _ends(self, change: Change) -> bool:
        """Whether the Node has no maintenance after the change, neither under way nor due."""
        state = change.labels.get(maintenance_record.LABEL_STATE, maintenance_record.state(self.node))
        return change.record is None and (self.record is not None or state not in maintenance_record.DUE)

    def _tell_event(self, before: Record | None) -> None:
        record = self.record
        if record is None:
            last = maintenance_record.last(self.node)
            story = node_events.of_end(last) if before is not None and last else None
        else:
            story = node_events.of_step(before, record)
        if story is not None:
            node_events.tell(self._cluster.without_retries, self.node, story, self.now())

    def _tell_conditions(self, ended: bool = False) -> bool:
        """Make the Node's conditions right. True if the Node was read or written for that."""
        node = node_conditions.write(self._cluster.retrying_outages_only, self.node, self._clock.now(), ended)
        if node is not None:
            self._accept(node, None)
        return node is not None

    def step(
        self,
        step: str,
        cordon: bool | None = None,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
        guard: Callable[[Object, Record], None] | None = None,
        **fields: Any,
    ) -> None:
        """Write that ``step`` is due now, with other fields of the record. ``guard(node, record)`` may raise."""

        def decide(node: Object, record: Record) -> Change:
            if guard is not None:
                guard(node, record)
            changed = dict(record, **fields)
            if step != record["step"]:
                changed["times"] = dict(changed["times"], **{step: self.now()})
            changed.update(step=step, heartbeat=self.now())
            return Change(changed, labels, annotations, cordon)

        self.write(decide)

    def beat(self, every: float = maintenance_record.BEAT_SECONDS) -> bool:
        """Show that this run lives: people at once, the record after ``every`` seconds. Whether the Node was read for that."""
        self._on_beat()
        due = self.record is not None and self._clock.monotonic() - self._written >= every
        if due:
            self.write(lambda _node, record: Change(dict(record, heartbeat=self.now())))
        return due

    def _accept(self, node: Object | None, attempted: Change | None) -> bool:
        """Take ``node`` as the latest. True when ``attempted`` (a Change or None) is on it. Raises as ``look`` does."""
        if node is None:
            raise Gone(_gone(self.name))
        if attempted is not None and attempted.is_on(node, self.record):
            self.node = node
            return True
        found = maintenance_record.decode(node)
        if found is None and self.record is not None and node["metadata"].get("uid") != self._uid:
            self.previous, self.node = self.node, node
            raise Recreated("The Node object %s was deleted and recreated." % self.name)
        if found != self.record:
            raise Lost(lost_text(self.name, found, self.run))
        self.node = node
        self._uid = node["metadata"].get("uid")
        return False


def _gone(name: str) -> str:
    return (
        "The Node object %s does not exist: it was deleted. The kubelet registers it again when it starts: restart its unit on the"
        " host (systemctl restart kubelet; on a distribution that embeds it, its own unit, such as k3s-agent), then run again."
        % name
    )


def lost_text(name: str, found: Record | None, run: str) -> str:
    if found is None:
        return (
            "The record of the maintenance of %s (annotation %s) is missing, and this run did not remove it. Nothing more"
            " is done to the node; check whether it is cordoned (kubectl get node %s)."
            % (name, maintenance_record.ANNOTATION_RECORD, name)
        )
    if found["run"] == run:
        return (
            "The record of the maintenance of %s was changed, and not by this run. This run leaves the node unchanged;"
            " run again to continue from the record." % name
        )
    return "%s is maintained by another run (%s, step %s, last heartbeat %s). This run did not touch it; wait for that run." % (
        name,
        found["run"],
        found.get("step"),
        found.get("heartbeat"),
    )
