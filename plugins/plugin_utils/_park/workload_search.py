# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which workloads keep pods with NPUs running: the topmost that can be told to stop. Only looks, changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.permissions import Permission
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.selectors import Selector
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import volcano_jobs
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.kind_table import Key, Stop
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.workload_kinds import (
    Kind,
    Workload,
    completed,
    dig,
    discover,
    each,
    read_custom,
    stopping,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
Owner = tuple[str | None, str, str]  # namespace, kind, name

# What a pod with NPUs by a ResourceClaim asks for: their kind is unknown.
_CLAIM = "a ResourceClaim"
_CLAIMS = ("resource.k8s.io", "ResourceClaim")
# Above each other. A user may write owners that own each other in a circle.
_MOST_OWNERS = 16
_UNKNOWN_KIND = (
    "its kind has no scale subresource; if a field or an annotation of it stops its pods, name that in npu_upgrade_workload_kinds"
)


class Found:
    """``workloads``: what is to be stopped, each with the resources in ``asks[workload.path]``; ``unseen``: what could not be
    looked at, and why."""

    def __init__(self) -> None:
        self.workloads: list[Workload] = []
        self.asks: dict[str, set[str]] = {}
        self.unseen: list[str] = []
        self._unstoppable: dict[str, tuple[str, set[str]]] = {}  # label: why, resources
        self._owners: set[Owner] = set()  # of all whose pods go

    def add(self, workload: Workload, owners: Iterable[Owner], resources: Iterable[str]) -> None:
        if workload.path not in self.asks:
            self.workloads.append(workload)
        self.asks.setdefault(workload.path, set()).update(resources)
        self._owners.update(owners)

    def cannot_stop(self, label: str, why: str, resources: Iterable[str]) -> None:
        self._unstoppable.setdefault(label, (why, set()))[1].update(resources)

    def takes_away(self, pod: pod_view.Pod) -> bool:
        """Whether an _pods.pod_view.Pod ends with one of these workloads."""
        return pod.owner is not None and (pod.namespace,) + pod.owner in self._owners

    def asking(self, resources: Iterable[str]) -> list[Workload]:
        """The workloads that ask for one of the ``resources``."""
        wanted = {_CLAIM, *resources}
        return [workload for workload in self.workloads if self.asks[workload.path] & wanted]

    def unstoppable(self, resources: Iterable[str]) -> list[tuple[str, str]]:
        """(label, why) of what asks for one of the ``resources`` and cannot be stopped."""
        wanted = {_CLAIM, *resources}
        return sorted((label, why) for label, (why, asked) in self._unstoppable.items() if asked & wanted)


def find(
    cluster: RetryingCluster,
    resources: Iterable[str],
    namespace: str,
    spared: Selector,
    declared: Mapping[Key, Stop],
    dra_drivers: Collection[str] = (),
) -> Found:
    """The Found: what runs and asks for one of ``resources`` (names), or holds a claim of one of ``dra_drivers``.
    ``namespace``: ours, left out; ``spared``: a Selector of pods that may finish, whose workloads are left alone;
    ``declared``: kinds of the user's (_park.declared_kinds).

    Of what owns each other it is the topmost: the owner of a Deployment would scale it up again. A CronJob goes beside its
    Jobs, which run on without it. Requests: discovery, a list for each kind that stops, a list of pods if there are custom
    kinds or ResourceClaims, and one for each owner in between. Raises NpuError for what may not be read.
    """
    search = _Search(cluster, discover(cluster, declared), set(resources), namespace, spared)
    kinds = stopping(search.kinds)
    for kind in kinds:
        search.look_at(kind)
    claims = bool(dra_drivers) and _CLAIMS in search.kinds
    if claims or any(kind for kind in search.kinds.values() if not kind.built_in):
        search.look_at_pods(dra_drivers if claims else ())
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

    def look_at_pods(self, dra_drivers: Collection[str]) -> None:
        """Custom resources that do not have the pods' template in them are known by the pods they own, and so is what has
        NPUs by a ResourceClaim: which devices it gets, a template of one does not tell."""
        holders: list[Object] = []
        for item in self._cluster.each("/api/v1/pods", field_selector=_RUNNING):
            self._look_at_pod(item, self._asked([item]))
            if dra_drivers and pod_view.Pod(item).claims:
                holders.append(item)
        users, unknown = pod_claims.npu_users(self._cluster, holders, dra_drivers)
        self.found.unseen += sorted(set(unknown.values()))
        for item in holders:
            if pod_view.Pod(item).label in users and not self._is_spared(item):
                self._look_at_pod(item, {_CLAIM})

    def _look_at_pod(self, item: Object, asked: set[str]) -> None:
        pod = pod_view.Pod(item)
        if asked and pod.owner and pod.namespace != self._namespace and not self.found.takes_away(pod):
            owner = self._owner_of(item)
            if owner:
                self._climb(owner[0], owner[1], asked, pod.namespace)

    def _asked(self, pods: Iterable[Object]) -> set[str]:
        """Of the resources those that the pods or _templates ask for; none if they may finish."""
        asked: set[str] = set()
        for pod in pods:
            if self._is_spared(pod):
                return set()
            asked |= _requested(pod["spec"]) & self._resources
        return asked

    def _is_spared(self, pod: Object) -> bool:
        labels = dig(pod, ("metadata", "labels"))
        return self._spared.matches(labels if isinstance(labels, dict) else {})

    def _climb(self, kind: Kind, item: Object, asked: set[str], namespace: str | None) -> None:
        """Add the topmost workload at or above an object. ``namespace``: of the pods, their owner may have none."""
        passed: list[Owner] = []
        top, why = None, ""
        while True:
            workload = self._workload(kind, item)
            if workload is not None and not passed and (workload.over or workload.stopped) and not workload.marked:
                return  # such as an old revision's ReplicaSet
            if workload is not None and not workload.objection:
                top = workload
            elif kind.never:
                top, why = None, kind.never  # whatever is below, it would make again
            elif workload is not None:
                why = why or workload.objection
            passed.append((namespace, kind.name, item["metadata"]["name"]))
            owner = self._owner_of(item)
            if owner is None or owner[0].beside or len(passed) == _MOST_OWNERS:
                break
            kind, item = owner
        if top is None:
            self._tell_unstoppable(kind, item, why, asked)
        elif top.marked or not top.stopped:
            self.found.add(top, passed, asked)
        if owner is not None and owner[0].beside and _CLAIM in asked:
            self._add_starter(*owner)

    def _add_starter(self, kind: Kind, item: Object) -> None:
        """What starts Jobs whose pods have claims: its template does not tell that they are of NPUs."""
        workload = self._workload(kind, item)
        if workload is not None and (workload.marked or not workload.stopped):
            self.found.add(workload, (), {_CLAIM})

    def _tell_unstoppable(self, kind: Kind, item: Object, why: str, asked: set[str]) -> None:
        if not why and kind.group in ("", "apps"):
            return  # DaemonSets, which the plan tells of
        label = Workload(kind, item).label
        self.found.cannot_stop(label, why or _UNKNOWN_KIND, asked)

    def _workload(self, kind: Kind, item: Object) -> Workload | None:
        if not kind.stops:
            return None
        kind = self.kinds[kind.group, kind.name] = completed(self._cluster, self.kinds[kind.group, kind.name])
        return Workload(kind, item) if kind.field or kind.by_command else None

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
    waiting = [node]  # not by recursion: an object may be nested as deeply as its author wants
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            inner = one.get("spec")
            if isinstance(one.get("containers"), list):
                yield {"spec": one}
            elif isinstance(inner, dict) and isinstance(inner.get("containers"), list):
                yield one
            else:
                waiting += one.values()


def _requested(pod_spec: Object) -> set[str]:
    """The names of all resources that one of the containers asks for, those of the start included."""
    names: set[str] = set()
    for listed in ("containers", "initContainers"):
        containers = pod_spec.get(listed)
        # The schema of a custom resource may allow anything.
        for container in containers if isinstance(containers, list) else []:
            for key in ("limits", "requests"):
                counts = dig(container, ("resources", key))
                names.update(
                    name for name, count in (counts if isinstance(counts, dict) else {}).items() if str(count) not in ("0", "")
                )
    return names


def missing_permissions(cluster: AnyCluster, workloads: Iterable[Workload]) -> list[Permission]:
    """What the Kubernetes user may not do but would have to, to stop the ``workloads`` and start them: [(verb, ...)]."""
    kinds = {workload.kind for workload in workloads}
    names = sorted({(kind.plural, kind.group) for kind in kinds})
    needed: list[Permission] = [("patch", plural, group, None, None) for plural, group in names]
    if any(kind.by_command for kind in kinds):
        needed += volcano_jobs.PERMISSIONS
    return kube_permissions.missing(cluster, needed)


def require_permissions(cluster: AnyCluster, workloads: Iterable[Workload]) -> None:
    """Raise NpuError, all at once, for missing permissions."""
    missing = missing_permissions(cluster, workloads)
    if missing:
        told = "; ".join(kube_permissions.told(missing))
        raise NpuError("No workload was parked: %s. Allow it, or set npu_upgrade_workloads: leave." % told)
