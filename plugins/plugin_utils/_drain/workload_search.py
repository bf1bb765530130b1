# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which workloads keep pods with NPUs running: the topmost that can be told to stop. Only looks, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import pod as drain_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.workload_kinds import (
    CRON_JOB,
    Kind,
    Workload,
    completed,
    discover,
    each,
    read_custom,
    stopping,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.selectors import Selector
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
Owner = tuple[str | None, str, str]  # namespace, kind, name


class Found:
    """``workloads``: what is to be stopped, each with the resources in ``asks[workload.path]``."""

    def __init__(self) -> None:
        self.workloads: list[Workload] = []
        self.asks: dict[str, set[str]] = {}
        self.unseen: list[str] = []
        self._owners: set[Owner] = set()  # of all whose pods go

    def add(self, workload: Workload, owners: Iterable[Owner], resources: Iterable[str]) -> None:
        if workload.path not in self.asks:
            self.workloads.append(workload)
        self.asks.setdefault(workload.path, set()).update(resources)
        self._owners.update(owners)

    def takes_away(self, pod: drain_pod.Pod) -> bool:
        """Whether an _drain.pod.Pod ends with one of these workloads."""
        return pod.owner is not None and (pod.namespace,) + pod.owner in self._owners

    def asking(self, resources: Iterable[str]) -> list[Workload]:
        """The workloads that ask for one of the ``resources``."""
        return [workload for workload in self.workloads if self.asks[workload.path] & set(resources)]


def find(cluster: RetryingCluster, resources: Iterable[str], namespace: str, spared: Selector) -> Found:
    """The Found: what runs and asks for one of ``resources`` (names). ``namespace``: ours, left out; ``spared``: a Selector
    of pods that may finish, whose workloads are left alone.

    Of what owns each other it is the topmost: whoever owns a Deployment would scale it up again. A CronJob goes beside its
    Jobs, which run on without it. Requests: discovery, a list for each kind that stops, with custom ones a list of pods as
    well, and one for each owner in between. Raises NpuError for what may not be read.
    """
    search = _Search(cluster, discover(cluster), set(resources), namespace, spared)
    kinds = stopping(search.kinds)
    for kind in kinds:
        search.look_at(kind)
    if not all(kind.built_in for kind in kinds):
        search.look_at_pods()
    return search.found


class _Search:
    def __init__(
        self, cluster: RetryingCluster, kinds: dict[tuple[str, str], Kind], resources: set[str], namespace: str, spared: Selector
    ) -> None:
        self._cluster, self.kinds, self._resources = cluster, kinds, resources
        self._namespace, self._spared = namespace, spared
        self._known: dict[str, Object | None] = {}  # by path
        self.found = Found()

    def look_at(self, kind: Kind) -> None:
        try:
            for item in each(self._cluster, kind):
                asked = self._asked(_templates(item.get("spec")))
                if asked and item["metadata"].get("namespace") != self._namespace:
                    self._known[Workload(kind, item).path] = item
                    self._climb(kind, item, asked, item["metadata"].get("namespace"))
        except NpuError as exc:
            if kind.built_in:
                raise
            self.found.unseen.append("%s: %s" % (kind.list_path, exc.message))

    def look_at_pods(self) -> None:
        """Custom resources that do not have the pods' template in them are known by the pods they own."""
        for item in self._cluster.each("/api/v1/pods", field_selector=_RUNNING):
            pod = drain_pod.Pod(item)
            if not pod.owner or pod.namespace == self._namespace or self.found.takes_away(pod):
                continue
            asked = self._asked([item])
            owner = self._owner_of(item) if asked else None
            if owner:
                self._climb(owner[0], owner[1], asked, pod.namespace)

    def _asked(self, pods: Iterable[Object]) -> set[str]:
        """Of the resources those that the pods or _templates ask for; none if they may finish."""
        asked: set[str] = set()
        for pod in pods:
            if self._spared.matches((pod.get("metadata") or {}).get("labels") or {}):
                return set()
            asked |= _requested(pod["spec"]) & self._resources
        return asked

    def _climb(self, kind: Kind, item: Object, asked: set[str], namespace: str | None) -> None:
        """Add the topmost workload at or above an object. ``namespace``: of the pods, their owner may have none."""
        passed: list[Owner] = []
        top = None
        while True:
            workload = self._workload(kind, item)
            if workload is not None:
                if not passed and (workload.over or workload.stopped) and not workload.marked:
                    return  # such as an old revision's ReplicaSet
                top = workload
            passed.append((namespace, kind.name, item["metadata"]["name"]))
            owner = self._owner_of(item)
            if owner is None or owner[0] == CRON_JOB:
                break
            kind, item = owner
        if top is not None and (top.marked or not top.stopped):
            self.found.add(top, passed, asked)

    def _workload(self, kind: Kind, item: Object) -> Workload | None:
        if not kind.stops:
            return None
        kind = self.kinds[kind.group, kind.name] = completed(self._cluster, self.kinds[kind.group, kind.name])
        workload = Workload(kind, item) if kind.field else None
        return workload if workload and workload.has_room_for_field else None

    def _owner_of(self, item: Object) -> tuple[Kind, Object] | None:
        """(Kind, object) of an object's controller; None without one, or one that cannot be known."""
        for owner in item["metadata"].get("ownerReferences") or []:
            kind = self.kinds.get((owner.get("apiVersion", "").rpartition("/")[0], owner["kind"]))
            if owner.get("controller") and kind:
                path = kind.path(item["metadata"].get("namespace"), owner["name"])
                found = self._get(kind, path)
                return (kind, found) if found is not None else None
        return None

    def _get(self, kind: Kind, path: str) -> Object | None:
        if path not in self._known:
            self._known[path] = None
            try:
                found = self._cluster.get(path) if kind.built_in else read_custom(self._cluster, lambda once: once.get(path))
                self._known[path] = found
            except NpuError as exc:
                if kind.built_in:
                    raise
                self.found.unseen.append("%s: %s" % (path, exc.message))
        return self._known[path]


def _templates(node: Any) -> Iterator[Object]:
    """The pod _templates anywhere in the specification ``node``: dictionaries with ``spec`` and perhaps ``metadata``."""
    if isinstance(node, list):
        for entry in node:
            yield from _templates(entry)
    elif isinstance(node, dict):
        inner = node.get("spec")
        if isinstance(node.get("containers"), list):
            yield {"spec": node}
        elif isinstance(inner, dict) and isinstance(inner.get("containers"), list):
            yield node
        else:
            for entry in node.values():
                yield from _templates(entry)


def _requested(pod_spec: Object) -> set[str]:
    """The names of all resources that one of the containers asks for, those of the start included."""
    names: set[str] = set()
    for container in (pod_spec.get("containers") or []) + (pod_spec.get("initContainers") or []):
        resources = container.get("resources") if isinstance(container, dict) else None
        for key in ("limits", "requests"):
            counts = (resources or {}).get(key) or {}
            names.update(name for name, count in counts.items() if str(count) not in ("0", ""))
    return names


def missing_permissions(cluster: AnyCluster, workloads: Iterable[Workload]) -> list[tuple[str, str, str, None]]:
    """What the Kubernetes user may not do but would have to, to stop the ``workloads`` and start them: [(verb, ...)]."""
    kinds = {(workload.kind.plural, workload.kind.group) for workload in workloads}
    needed = [("patch", plural, group, None) for plural, group in sorted(kinds)]
    return [entry for entry in needed if not cluster.may(*entry)]


def require_permissions(cluster: AnyCluster, workloads: Iterable[Workload]) -> None:
    """Raise NpuError, all at once, for missing permissions."""
    missing = missing_permissions(cluster, workloads)
    if missing:
        told = "; ".join("the Kubernetes user may not %s" % kube_client.describe_permission(*entry) for entry in missing)
        raise NpuError("No workload was parked: %s. Allow it, or set npu_upgrade_workloads: leave." % told)
