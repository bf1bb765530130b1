# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether those who have a slot still live, as one process sees it that waits for one.

No time that another machine has written is compared with the own clock: a holder is silent for as long as this process has seen
nothing of it change, by its own monotonic clock. So a single look never shows that a holder died.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.annotations import Record
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Seconds for which what was seen of a node counts. Many may wait for few.
FRESH = 30
# Nodes that are read one by one at most. More of them cost one list.
_FEW = 3
_IN_HAND = "%s in (%s)" % (maintenance_record.LABEL_STATE, ",".join(maintenance_record.IN_HAND))


# Who has a slot, as the Lease tells: {run, since, reason, pool, aside}; only ``run`` is always there.
SlotHolder = dict[str, Any]
SlotHolders = dict[str, SlotHolder]  # by node


class _Sight:
    """``record``: the maintenance under way, the NpuError that it cannot be read with, or None; ``ended``: the holder's own
    maintenance if it has ended, or None."""

    def __init__(self, record: Record | NpuError | None, ended: Record | None) -> None:
        self.record, self.ended = record, ended
        self.sign: tuple[object, object] = (None, None)  # the holder, and what changes as long as a run is at work
        self.labels: Labels = {}  # of the Node
        self.since = self.looked = 0.0  # monotonic: the sign has been there, and was read last


class SlotWatch:
    def __init__(self, cluster: AnyCluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._seen: dict[str, _Sight] = {}

    def look_at(self, holders: SlotHolders) -> None:
        """Before all of these are asked about: with one request, however many have to be looked at again."""
        stale = [name for name, holder in holders.items() if self._fresh(name, holder, FRESH) is None]
        if len(stale) <= _FEW:
            return
        # Those whose maintenance has not begun or has ended are not among them, and remain to be read one by one.
        nodes = {node["metadata"]["name"]: node for node in self._cluster.list("/api/v1/nodes", label_selector=_IN_HAND)}
        for name in stale:
            if name in nodes:
                self._note(name, holders[name], nodes[name])

    def ended(self, name: str, holder: SlotHolder) -> Record | None:
        """The holder's maintenance if it has ended, and only giving the slot back was left; else None."""
        return self._look(name, holder).ended

    def has_begun(self, name: str, holder: SlotHolder) -> bool:
        """Whether there is a maintenance on the holder's node, by whichever run."""
        return self._look(name, holder).record is not None

    def label(self, name: str, holder: SlotHolder, key: str) -> str | None:
        """The value of a label of the holder's node, None without it."""
        return self._look(name, holder).labels.get(key)

    def abandoned(self, name: str, holder: SlotHolder, limit: float) -> bool:
        """Whether the holder's run is done with the node, or died before it began."""
        sight = self._look(name, holder)
        if sight.ended is not None:
            return True
        if sight.record is not None or not self._silent(sight, limit):
            return False
        sight = self._look(name, holder, 0)
        return sight.ended is not None or (sight.record is None and self._silent(sight, limit))

    def dead(self, name: str, holder: SlotHolder, limit: float) -> Record | NpuError | None:
        """The record that a dead run has left on the node, or None; the NpuError if it cannot be read."""
        sight = self._look(name, holder)
        if sight.record is None or not self._silent(sight, limit):
            return None
        sight = self._look(name, holder, 0)
        return sight.record if sight.record is not None and self._silent(sight, limit) else None

    def _silent(self, sight: _Sight, limit: float) -> bool:
        return self._clock.monotonic() - sight.since > limit

    def _look(self, name: str, holder: SlotHolder, fresh: float = FRESH) -> _Sight:
        """What is known of the holder's node, at most ``fresh`` seconds old."""
        seen = self._fresh(name, holder, fresh)
        return seen if seen is not None else self._note(name, holder, self._cluster.get(maintenance_record.path_of(name)))

    def _fresh(self, name: str, holder: SlotHolder, fresh: float) -> _Sight | None:
        """What was seen of the holder's node in the last ``fresh`` seconds, if anything."""
        seen = self._seen.get(name)
        known = seen is not None and seen.sign[0] == _key(holder) and self._clock.monotonic() - seen.looked < fresh
        return seen if known else None

    def _note(self, name: str, holder: SlotHolder, node: Object | None) -> _Sight:
        """``node``: as it was just read, None if it does not exist."""
        now, seen = self._clock.monotonic(), self._seen.get(name)
        sight = _sight(node, holder)
        sight.labels = kube_client.labels(node) if node is not None else {}
        sight.sign = _key(holder), _sign(sight.record)
        sight.since = seen.since if seen is not None and seen.sign == sight.sign else now
        sight.looked = now
        self._seen[name] = sight
        return sight


def _key(holder: SlotHolder) -> object:
    return holder.get("run"), holder.get("since")


def _sign(record: Record | NpuError | None) -> object:
    """What a run that is at work changes."""
    if record is None or isinstance(record, NpuError):
        return record and record.message
    return record.get("run"), record.get("heartbeat")


def _sight(node: Object | None, holder: SlotHolder) -> _Sight:
    if node is None:
        return _Sight(None, None)
    if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        try:
            return _Sight(maintenance_record.decode(node), None)
        except NpuError as exc:
            return _Sight(exc, None)
    last = maintenance_record.last(node)
    # Both times are of one run, and so of one clock.
    since, over = maintenance_record.seconds_of(holder.get("since")), maintenance_record.seconds_of(last.get("ended"))
    if last.get("run") == holder.get("run") and since is not None and over is not None and since <= over:
        return _Sight(None, last)
    return _Sight(None, None)
