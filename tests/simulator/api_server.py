# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server: Nodes, the Lease, Events and Deployments with exact compare-and-swap, and pods with evictions and budgets.

Objects are read and written as copies. What an object was is remembered for a while, for replicas that are behind.
"""

from __future__ import annotations

import collections
import functools
import itertools
import marshal
import time as wall
from collections.abc import Callable, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors

from simulator.timeline import START, Timeline
from support.kube.conditions import merged

Object = dict[str, Any]

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
DEPLOYMENTS = "/apis/apps/v1/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
LEASE = LEASES + "/npu-maintenance"
_REMEMBERED = 400
ETCD = "etcd"  # who writes what is restored from a backup


def copied(item: Any) -> Any:
    return marshal.loads(marshal.dumps(item))


@functools.cache
def _selector(text: str) -> kube_selectors.Selector:
    return kube_selectors.parse(text, "labelSelector")


def rfc3339(seconds: float) -> str:
    return wall.strftime("%Y-%m-%dT%H:%M:%SZ", wall.gmtime(seconds))


def node_path(name: str) -> str:
    return "%s/%s" % (NODES, name)


class ApiServer:
    """``on_write(path, before, after, writer)`` is called after each write, ``before`` and ``after`` None where there is nothing.

    ``pods``: support for PODS, BUDGETS and evictions, see simulator.pods.Pods.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.away_until = 0.0
        self.pods: Any = None
        self.acting = ""  # the run whose request this is
        self.on_write: Callable[[str, Object | None, Object | None, str], None] = lambda *_told: None
        self.on_lease_read: Callable[[str], None] = lambda _run: None
        self._objects: dict[str, dict[str, Object]] = collections.defaultdict(dict)  # collection -> name -> object
        self._past: dict[str, collections.deque[tuple[float, bytes | None]]] = {}
        self._version = itertools.count(100)
        self._uids = itertools.count(1)

    # --- what the world itself does; nothing here fails ---

    def peek(self, path: str) -> Object | None:
        """The object itself: not to be changed."""
        collection, _slash, name = path.rpartition("/")
        return self._objects[collection].get(name)

    def all(self, collection: str) -> list[Object]:
        """The objects themselves."""
        if collection == DEPLOYMENTS:
            collection = "/apis/apps/v1/namespaces/train/deployments"
        return list(self._objects[collection].values())

    def create(self, path: str, item: Object, writer: str) -> Object:
        item["metadata"].setdefault("uid", "uid-%d" % next(self._uids))
        return self._put(path, item, writer)

    def change(self, path: str, patch: Object, writer: str) -> None:
        """Apply a merge patch, if the object exists."""
        if self.peek(path) is not None:
            self.patch(path, copied(patch), writer)

    def delete(self, path: str, writer: str) -> None:
        collection, _slash, name = path.rpartition("/")
        before = self._objects[collection].pop(name, None)
        if before is not None:
            self._remember(path, None)
            self.on_write(path, before, None, writer)

    def restore(self, path: str, at: float) -> None:
        """Restore the object as it was at the time ``at``, if it existed then."""
        blob = self._as_of(path, at)
        if blob is not None:
            self._put(path, marshal.loads(blob), ETCD)

    # --- requests ---

    def get(self, path: str, at: float | None = None) -> Object:
        if at is not None:
            blob = self._as_of(path, at)
            item = marshal.loads(blob) if blob is not None else None
        else:
            found = self.peek(path)
            item = copied(found) if found is not None else None
        if path == LEASE and self.acting:
            self.on_lease_read(self.acting)
        if item is None:
            raise kube_client.NotFound("%s not found" % path)
        return item

    def list(self, collection: str, label: str | None, at: float | None = None) -> list[Object]:
        selector = _selector(label or "")
        found: list[Object] = []
        if collection == DEPLOYMENTS:
            collection = "/apis/apps/v1/namespaces/train/deployments"
        for path in self._paths(collection, at):
            try:
                item = self.get(path, at)
            except kube_client.NotFound:
                continue
            if not selector or selector.matches(item["metadata"].get("labels", {})):
                found.append(item)
        return found

    def post(self, collection: str, body: Object, writer: str) -> Object:
        path = "%s/%s" % (collection, body["metadata"]["name"])
        if self.peek(path) is not None:
            raise kube_client.Conflict("%s already exists" % path)
        return copied(self.create(path, copied(body), writer))

    def remove(self, path: str) -> Object:
        if self.peek(path) is None:
            raise kube_client.NotFound("%s not found" % path)
        self.delete(path, "python")
        return {"kind": "Status", "status": "Success"}

    def patch(self, path: str, body: Object, writer: str) -> Object:
        before = self.peek(path)
        if before is None:
            raise kube_client.NotFound("%s not found" % path)
        version = body.get("metadata", {}).pop("resourceVersion", None)
        if version not in (None, before["metadata"]["resourceVersion"]):
            raise kube_client.Conflict("%s: the object has been modified" % path)
        after = copied(before)
        # Merged as in a strategic merge patch, whatever the client sends: no kubelet overwrites the conditions of other clients.
        conditions = body.get("status", {}).pop("conditions", None)
        if conditions is not None:
            after["status"]["conditions"] = merged(after["status"].get("conditions", []), conditions)
        _merge(after, body)
        _note_owners(before, after, writer, rfc3339(self.timeline.time))
        if after == before:
            return after
        if "spec" in body and path.startswith("/apis/apps/"):
            after["metadata"]["generation"] = after["metadata"].get("generation", 1) + 1
        return copied(self._put(path, after, writer))

    # --- inside ---

    def _put(self, path: str, item: Object, writer: str) -> Object:
        collection, _slash, name = path.rpartition("/")
        before = self._objects[collection].get(name)
        item["metadata"]["resourceVersion"] = str(next(self._version))
        self._objects[collection][name] = item
        self._remember(path, marshal.dumps(item))
        self.on_write(path, before, item, writer)
        return item

    def _remember(self, path: str, blob: bytes | None) -> None:
        self._past.setdefault(path, collections.deque(maxlen=_REMEMBERED)).append((self._since(), blob))

    def _since(self) -> float:
        """An object that exists at the start has always existed."""
        return self.timeline.time if self.timeline.time > START else 0.0

    def _as_of(self, path: str, at: float) -> bytes | None:
        past = self._past.get(path, ())
        found = None
        for when, blob in past:
            if when > at:
                break
            found = blob
        return found

    def _paths(self, collection: str, at: float | None) -> Iterator[str]:
        names = set(self._objects[collection])
        if at is not None:
            names |= {path.rpartition("/")[2] for path in self._past if path.rpartition("/")[0] == collection}
        return iter(["%s/%s" % (collection, name) for name in sorted(names)])


def _merge(target: Object, patch: Object) -> None:
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            inner = target.get(key)
            if not isinstance(inner, dict):
                inner = target[key] = {}
            _merge(inner, value)
        else:
            target[key] = value


APPROVE = "npu.openfuyao.com/approve-reboot"
NOTE = "example.com/note"


def _note_owners(before: Object, after: Object, writer: str, now: str) -> None:
    """managedFields for what the collection looks at: the cordon, the approval and the wedge. Who changes a value owns it; all
    annotations of a writer have the time of its last change.
    """
    if bool(before.get("spec", {}).get("unschedulable")) != bool(after.get("spec", {}).get("unschedulable")):
        _entries(after)[:] = [entry for entry in _entries(after) if "f:spec" not in entry["fieldsV1"]]
        if after["spec"].get("unschedulable"):
            _entries(after).append(_entry(writer, now, {"f:spec": {"f:unschedulable": {}}}))
    had, has = (item["metadata"].get("annotations", {}) for item in (before, after))
    for name in (APPROVE, kube_client.ANNOTATION_WEDGED, NOTE):
        if had.get(name) != has.get(name):
            _note_annotation(after, name, writer, now)


def _note_annotation(after: Object, name: str, writer: str, now: str) -> None:
    owned = [
        (entry, entry["fieldsV1"]["f:metadata"]["f:annotations"]) for entry in _entries(after) if "f:metadata" in entry["fieldsV1"]
    ]
    for entry, names in owned:
        names.pop("f:" + name, None)
        if not names:
            _entries(after).remove(entry)
    if not after["metadata"].get("annotations", {}).get(name):
        return
    for entry, names in owned:
        if names and entry["manager"] == writer:
            entry["time"], names["f:" + name] = now, {}
            return
    _entries(after).append(_entry(writer, now, {"f:metadata": {"f:annotations": {"f:" + name: {}}}}))


def _entries(item: Object) -> list[Object]:
    entries: list[Object] = item["metadata"].setdefault("managedFields", [])
    return entries


def _entry(writer: str, now: str, owned: Object) -> Object:
    return {
        "manager": writer,
        "operation": "Update",
        "apiVersion": "v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
