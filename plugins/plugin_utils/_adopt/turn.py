# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time moves nodes, in either direction: an annotation of the Lease that all runs share says which one.

It changes as long as that run lives. A run is dead if the run that asks has seen no change for a while (``_kube.sign_of_life``);
the clocks of two machines are never compared. A run that stalled notices before its next write that another run has taken its turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any, Unpack

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_failure import printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.sign_of_life import DEAD_SECONDS, POLL_SECONDS, SignOfLife
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.stream import Stream
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects, Selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import LEASE, new_lease

ANNOTATION = "npuops.ascend/adopting"

_BEAT_SECONDS = 5.0
_LONGEST = 1024
_FORM = schema.fields(["run", "state", "beat"], run=schema.text(253), state=schema.text(64), beat=schema.number())


class Turn:
    """``state``: ``adopted`` or ``returned``; ``say(sentence)``: progress for people; ``run``: the name of this run."""

    def __init__(
        self, cluster: AnyCluster, namespace: str, state: str, say: Callable[[str], None], clock: Clock, run: str | None = None
    ) -> None:
        self._cluster, self._namespace, self._state, self._say, self._clock = cluster, namespace, state, say, clock
        self._run = run or "%s-%d-%s" % (socket.gethostname(), os.getpid(), uuid.uuid4().hex[:8])
        self._collection = "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % namespace
        self._path = "%s/%s" % (self._collection, LEASE)
        self._beat, self._last = 0, clock.monotonic()

    @contextlib.contextmanager
    def taken(self) -> Iterator[AnyCluster]:
        """The cluster as long as it is this run's turn; it shows that the run lives. Raises NpuError if another one lives."""
        self._take()
        try:
            yield _InTurn(self._cluster, self)
        except BaseException:
            with contextlib.suppress(NpuError):
                self._end()
            raise
        self._end()

    def keep(self, at_least: float = 0.0) -> None:
        """Raise NpuError if it is another run's turn; show that this one lives. ``at_least``: not within so many seconds."""
        while self._clock.monotonic() - self._last >= at_least:
            lease = self._cluster.get(self._path)
            text = _text(lease)
            if lease is None or text is None or _told(text).get("run") != self._run:
                why = "%s moves nodes now" % _named(text) if text else self._lost()
                raise NpuError("This run stops here: %s. Run it again to continue" % why)
            if self._clock.monotonic() - self._last < _BEAT_SECONDS or self._write(lease):
                return

    def _lost(self) -> str:
        return "the annotation %s of the Lease %s/%s was removed" % (ANNOTATION, self._namespace, LEASE)

    def _take(self) -> None:
        life, seen = None, None
        while True:
            lease = life.look() if life else self._cluster.get(self._path)
            text = _text(lease)
            if text is None or _told(text).get("run") == self._run or (life and life.is_dead(text)):
                if self._write(lease):
                    return
                continue
            if life is None:
                life, seen = SignOfLife(self._cluster, self._path, text), text
                self._say("waits up to %d s: %s moves nodes, or was killed" % (DEAD_SECONDS, _named(text)))
            elif text != seen:
                raise NpuError("Nothing was changed: %s moves nodes. Wait until it ends, then run this again" % _named(text))
            self._clock.sleep(POLL_SECONDS)

    def _write(self, lease: Object | None) -> bool:
        """Whether it was as ``lease`` says."""
        now = self._clock.monotonic()
        annotations = {ANNOTATION: json.dumps({"run": self._run, "state": self._state, "beat": self._beat + 1})}
        try:
            if lease is None:
                self._cluster.request("post", self._collection, body=new_lease(self._namespace, annotations))
            else:
                self._patch(lease, annotations)
        except (kube_client.Conflict, kube_client.NotFound):
            if lease is None and self._cluster.get("/api/v1/namespaces/" + self._namespace) is None:
                raise NpuError("The cluster has no namespace %s. Set npu_namespace to the one of install" % self._namespace)
            return False
        self._beat, self._last = self._beat + 1, now
        return True

    def _end(self) -> None:
        while True:
            lease = self._cluster.get(self._path)
            text = _text(lease)
            if lease is None or text is None or _told(text).get("run") != self._run:
                return
            with contextlib.suppress(kube_client.Conflict, kube_client.NotFound):
                self._patch(lease, {ANNOTATION: None})
                return

    def _patch(self, lease: Object, annotations: dict[str, Any]) -> None:
        metadata = {"resourceVersion": lease["metadata"]["resourceVersion"], "annotations": annotations}
        self._cluster.merge_patch(self._path, {"metadata": metadata})


class _InTurn:
    """The cluster, for a run whose turn it is: each write makes sure of that; who only reads for a while shows that it lives."""

    def __init__(self, cluster: AnyCluster, turn: Turn) -> None:
        self._cluster, self._turn = cluster, turn

    @property
    def without_retries(self) -> AnyCluster:
        return _InTurn(self._cluster.without_retries, self._turn)

    def request(self, method: str, path: str, **arguments: Any) -> Any:
        self._turn.keep(_BEAT_SECONDS if method == "get" else 0)
        return self._cluster.request(method, path, **arguments)

    def get(self, path: str, **params: Any) -> Object | None:
        self._turn.keep(_BEAT_SECONDS)
        return self._cluster.get(path, **params)

    def list(self, path: str, **selectors: Unpack[Selectors]) -> Objects:
        self._turn.keep(_BEAT_SECONDS)
        return self._cluster.list(path, **selectors)

    def each(self, path: str, **selectors: Unpack[Selectors]) -> Iterator[Object]:
        self._turn.keep(_BEAT_SECONDS)
        return self._cluster.each(path, **selectors)

    def merge_patch(self, path: str, body: Object, **params: Any) -> Object:
        self._turn.keep()
        return self._cluster.merge_patch(path, body, **params)

    def pieces(self, path: str, **params: Any) -> Generator[bytes, None, None]:
        self._turn.keep(_BEAT_SECONDS)
        return self._cluster.pieces(path, **params)

    def stream(self, path: str, version: str, **selectors: Unpack[Selectors]) -> Stream | None:
        return self._cluster.stream(path, version, **selectors)

    def may(self, verb: str, resource: str, group: str = "", namespace: str | None = None, name: str | None = None) -> bool:
        return self._cluster.may(verb, resource, group, namespace, name)


def _text(lease: Object | None) -> str | None:
    return kube_client.annotations(lease).get(ANNOTATION) if lease is not None else None


def _told(text: str) -> dict[str, Any]:
    """What the annotation says; {} if that cannot be read: then it only matters whether it changes."""
    try:
        told = schema.load(text, _LONGEST)
        _FORM(told, "")
    except schema.Misfit:
        return {}
    return told


def _named(text: str) -> str:
    told = _told(text)
    way = {"adopted": " with npu_adopt_state: adopted", "returned": " with npu_adopt_state: returned"}.get(
        told.get("state", ""), ""
    )
    return "the run %s%s" % (printable(told["run"]), way) if told else "another run"
