# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes move from one side to the other, a few at a time; where that does not work, back.

All state is on the nodes: the labels say which side may run there, the annotation what the node offered before. Each step is a
single write that says as what it read the node, so a run that goes on after a killed one does the same again, and changes nothing
twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import sides
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.sides import Ours, Theirs
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_failure
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_watch import SETTLE_SECONDS
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, LabelChanges, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import ANNOTATION_ADOPTION
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use

_POLL_SECONDS = 2.0
_ATTEMPTS = 5
_MOST_NAMED = 20

Side = Theirs | Ours
# A Node -> the labels and annotations that it is to have; None: not to have.
Patch = Callable[[Object], tuple[LabelChanges, LabelChanges]]
# UID of a pod -> (its name, how often its containers have restarted).
Users = dict[str, tuple[str, int]]


class Move:
    """``source``, ``target``: the sides; ``pace.timeout``: seconds that each step of a node may take; ``say(sentence)``."""

    def __init__(
        self, cluster: AnyCluster, source: Side, target: Side, pace: Pace, say: Callable[[str], None], clock: Clock
    ) -> None:
        self._cluster, self._source, self._target, self._pace = cluster, source, target, pace
        self._say, self._clock = say, clock

    def move(self, names: Sequence[str], expected: Mapping[str, Mapping[str, int]] | None = None) -> list[str]:
        """Move the nodes, the first one alone. ``expected``: what they offer, where they do not tell it any more.

        Returns those that were moved. Raises NpuError at the first that does not work on the other side; it is back then.
        """
        moved: list[str] = []
        left = list(names)
        while left:
            count = self._pace.at_once(len(names)) if moved else 1
            batch, left = left[:count], left[count:]
            failed = self._batch(batch, expected or {})
            moved += [name for name in batch if name not in failed]
            if failed:
                raise NpuError(self._message(failed, moved, left), changed=True, moved=moved, failed=sorted(failed))
        return moved

    def _batch(self, names: Sequence[str], expected: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
        """{node: why} of those that did not move."""
        befores: dict[str, dict[str, int]] = {}
        users: dict[str, Users] = {}
        stay: dict[str, str] = {}
        for name in names:
            with _of_one(name, stay):
                users[name] = self._users(name)
                befores[name] = self._begin(name, expected.get(name, {}))
        late: dict[str, str] = {}
        failed = self._swap([name for name in names if name not in stay], befores, self._source, self._target, late)
        stay.update({name: "%s\n%s has %s" % (why, name, self._target.called) for name, why in late.items()})
        if failed:
            for name, why in failed.items():
                self._say("%s: %s; going back to %s" % (name, why, self._source.called))
            also = self._swap(sorted(failed), befores, self._target, self._source, late, begin=True)
            for name, why in failed.items():
                if name in also:
                    failed[name] = "%s\nIts way back does not work either: %s" % (why, also[name])
                else:
                    again = "%s has %s again" % (name, self._source.called)
                    failed[name] = "\n".join(filter(None, (why, late.get(name), again)))
        failed.update(stay)
        for name in names:
            if name not in failed:
                self._say("%s has %s; %s" % (name, self._target.called, self._compared(name, users[name])))
        return failed

    def _message(self, failed: Mapping[str, str], moved: Sequence[str], left: Sequence[str]) -> str:
        on, back = mindcluster_foreign.adopt(), mindcluster_foreign.give_back()
        if isinstance(self._target, Theirs):
            on, back = back, on
        return "\n".join(
            [
                *("%s: %s" % (name, why) for name, why in failed.items()),
                "Nodes that moved before: %s; not begun: %s." % (_named(moved), _named(left)),
                "After fixing this, continue with: %s" % on,
                "To go back instead: %s" % back,
            ]
        )

    def _begin(self, name: str, expected: Mapping[str, int]) -> dict[str, int]:
        """The first write: the side that is left must not run there, and what the node offers is remembered. Returns that."""
        counts: dict[str, int] = {}

        def patch(node: Object) -> tuple[LabelChanges, LabelChanges]:
            nonlocal counts
            begun = sides.before(node)
            counts = begun if begun is not None else sides.offers(node)
            counts = counts or dict(expected)
            return self._source.leave, {ANNOTATION_ADOPTION: sides.before_text(counts)}

        self._write(name, patch)
        return counts

    def _swap(
        self,
        names: Sequence[str],
        befores: Mapping[str, Mapping[str, int]],
        source: Side,
        target: Side,
        late: dict[str, str],
        begin: bool = False,
    ) -> dict[str, str]:
        """{node: why} of those that do not work on the other side. Those that do, but cannot be written after that, come into
        ``late``: they must not go back."""
        failed: dict[str, str] = {}
        if begin:
            for name in names:
                with _of_one(name, failed):
                    self._write(name, lambda _node: (source.leave, {}))
        failed.update(self._wait_until_gone([name for name in names if name not in failed], source))
        for name in names:
            if name not in failed:
                with _of_one(name, failed):
                    self._write(name, lambda _node: (target.enter, {}))
        there = [name for name in names if name not in failed]
        failed.update(self._wait_until_it_works(there, befores, target))
        for name in there:
            if name not in failed:
                with _of_one(name, late):
                    self._write(name, lambda _node: ({}, {ANNOTATION_ADOPTION: None}))
        return failed

    # --- waiting ---

    def _wait_until_gone(self, names: Sequence[str], side: Side) -> dict[str, str]:
        deadline = self._clock.monotonic() + self._pace.timeout
        while True:
            pods = side.pods(self._cluster)
            left = {name: sides.on_node(pods, name) for name in names}
            left = {name: found for name, found in left.items() if found}
            if not left:
                return {}
            if self._clock.monotonic() >= deadline:
                return {
                    name: "its pods did not end within %d s: %s" % (self._pace.timeout, ", ".join(map(_name, found)))
                    for name, found in left.items()
                }
            self._clock.sleep(_POLL_SECONDS)

    def _wait_until_it_works(self, names: Sequence[str], befores: Mapping[str, Mapping[str, int]], side: Side) -> dict[str, str]:
        """A kubelet reports every 10 s what its node offers: before that, it is what the other side has offered."""
        began, since = self._clock.monotonic(), dict.fromkeys(names, float("inf"))
        pulls = {name: kube_daemonsets.Pulls(self._clock.monotonic) for name in names}
        failed: dict[str, str] = {}
        waiting = list(names)
        while waiting:
            pods, now = side.pods(self._cluster), self._clock.monotonic()
            for name in list(waiting):
                with _of_one(name, failed):
                    node = self._node(name)
                if name in failed:
                    waiting.remove(name)
                    continue
                mine = sides.on_node(pods, name)
                if not sides.works(mine, side.awaited(node)) or sides.short_of(node, befores[name]):
                    since[name] = float("inf")
                    bad = [pod for pod in mine if not kube_daemonsets.pod_ready(pod)]
                    in_vain = pulls[name].in_vain(bad) or any(map(rollout_failure.keeps_ending, bad))
                    if in_vain or now - began >= self._pace.timeout:
                        failed[name] = self._why(node, mine, befores[name], side)
                        waiting.remove(name)
                    continue
                since[name] = min(since[name], now)
                if now - since[name] >= SETTLE_SECONDS:
                    waiting.remove(name)
            if waiting:
                self._clock.sleep(_POLL_SECONDS)
        return failed

    def _why(self, node: Object, pods: Objects, before: Mapping[str, int], side: Side) -> str:
        bad = [pod for pod in pods if not kube_daemonsets.pod_ready(pod)]
        if bad:
            return "%s do not work there: %s: %s" % (
                side.called,
                _name(bad[0]),
                rollout_failure.why_not_ready(self._cluster, bad[0]),
            )
        if not sides.works(pods, side.awaited(node)):
            return "%s have no pod there after %d s" % (side.called, self._pace.timeout)
        return "with %s, the node offers %s" % (side.called, ", ".join(sides.short_of(node, before)))

    # --- nodes ---

    def _node(self, name: str) -> Object:
        return self._cluster.request("get", "/api/v1/nodes/" + name)

    def _write(self, name: str, patch: Patch) -> None:
        """``write_node``, but not on a Node that is in maintenance."""

        def checked(node: Object) -> tuple[LabelChanges, LabelChanges]:
            if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
                raise NpuError(
                    "A maintenance of the node %s began in the meantime. Wait until it finishes, then run this again" % name
                )
            return patch(node)

        write_node(self._cluster, name, checked)

    def _users(self, name: str) -> Users:
        """The pods on a node that use its chips."""
        found = self._cluster.list("/api/v1/pods", field_selector="spec.nodeName=" + name)
        return {
            pod["metadata"]["uid"]: (_name(pod), _restarts(pod))
            for pod in found
            if kube_daemonsets.pod_node(pod) == name and npu_use.uses_npus(pod)
        }

    def _compared(self, name: str, before: Users) -> str:
        """What became of the pods that used chips, as a phrase."""
        if not before:
            return "no pod used its chips"
        now = self._users(name)
        restarted = [told for uid, (told, count) in before.items() if uid in now and now[uid][1] > count]
        text = "%d of %d pods that used its chips still run" % (len(before.keys() & now.keys()), len(before))
        if restarted:
            return "%s; restarted meanwhile: %s" % (text, ", ".join(restarted[:_MOST_NAMED]))
        return text + ", none was restarted"


def write_node(cluster: AnyCluster, name: str, patch: Patch) -> None:
    """Bring about what ``patch`` returns of the Node, also while others write it."""
    path = "/api/v1/nodes/" + name
    for attempt in range(_ATTEMPTS):
        node = cluster.request("get", path)
        labels, annotations = patch(node)
        metadata: Object = {}
        for key, have, want in (
            ("labels", kube_client.labels(node), labels),
            ("annotations", kube_client.annotations(node), annotations),
        ):
            changes = {field: value for field, value in want.items() if have.get(field) != value}
            if changes:
                metadata[key] = changes
        if not metadata:
            return
        metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
        try:
            cluster.merge_patch(path, {"metadata": metadata}, field_manager=kube_client.FIELD_MANAGER)
            return
        except kube_client.Conflict:
            if attempt == _ATTEMPTS - 1:
                raise


@contextlib.contextmanager
def _of_one(name: str, failed: dict[str, str]) -> Iterator[None]:
    """What is wrong with this node must not end the run before the others of its batch have a device plugin again."""
    try:
        yield
    except (kube_client.Unreachable, kube_client.Unauthorized, kube_client.Forbidden):
        raise  # that is not about the node
    except NpuError as exc:
        failed[name] = exc.message


def _name(pod: Object) -> str:
    return "%(namespace)s/%(name)s" % pod["metadata"]


def _restarts(pod: Object) -> int:
    return sum(int(entry.get("restartCount") or 0) for entry in (pod.get("status") or {}).get("containerStatuses") or [])


def _named(names: Sequence[str]) -> str:
    text = ", ".join(names[:_MOST_NAMED]) or "none"
    return text if len(names) <= _MOST_NAMED else "%s and %d more" % (text, len(names) - _MOST_NAMED)
