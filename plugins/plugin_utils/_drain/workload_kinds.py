# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps pods with NPUs running and can be told to stop: scaled to zero or suspended. Only looks, changes nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import pod as drain_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import PatientCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.selectors import Selector
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

REPLICAS, SUSPEND = ("spec", "replicas"), ("spec", "suspend")
_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
# All groups with all they serve in one answer; servers before 1.27 give the plain list of groups instead.
_ALL_AT_ONCE = ",".join(
    "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList" % version for version in ("v2", "v2beta1")
)
# What is parked carries this label, and an annotation of the same name (_drain/parking.py).
PARKED = "npuops.ascend/parked"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"


Path = tuple[str, ...]  # to a field, such as ("spec", "replicas")
Owner = tuple[str | None, str, str]  # namespace, kind, name
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object. ``field``: what is set to ``off`` to stop it, None where that is not known (yet); ``running``:
    where it says how many pods it still has."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True
    stops: bool = True
    built_in: bool = False
    field: Path | None = None
    off: int | bool = 0
    running: Path | None = None

    @property
    def root(self) -> str:
        return "/apis/%s/%s" % (self.group, self.version) if self.group else "/api/" + self.version

    @property
    def resource(self) -> str:
        """As kubectl takes it."""
        return "%s.%s" % (self.plural, self.group) if self.group else self.plural

    @property
    def list_path(self) -> str:
        return "%s/%s" % (self.root, self.plural)

    def path(self, namespace: str | None, name: str) -> str:
        middle = "/namespaces/%s" % namespace if self.namespaced else ""
        return "%s%s/%s/%s" % (self.root, middle, self.plural, name)


def _scaled(group: str, plural: str, name: str) -> Kind:
    return Kind(group, "v1", plural, name, built_in=True, field=REPLICAS, running=("status", "replicas"))


CRON_JOB = Kind("batch", "v1", "cronjobs", "CronJob", built_in=True, field=SUSPEND, off=True)
JOB = Kind("batch", "v1", "jobs", "Job", built_in=True, field=SUSPEND, off=True, running=("status", "active"))
# CronJobs first: one must not begin a Job when those have been looked at.
BUILT_IN = (
    CRON_JOB,
    _scaled("apps", "deployments", "Deployment"),
    _scaled("apps", "statefulsets", "StatefulSet"),
    _scaled("apps", "replicasets", "ReplicaSet"),
    _scaled("", "replicationcontrollers", "ReplicationController"),
    JOB,
)


# --- what there is ---


def discover(cluster: PatientCluster) -> dict[tuple[str, str], Kind]:
    """All kinds of the cluster, as {(group, name): Kind}; of those that are not built in, what has a scale subresource
    ``stops``. ``cluster``: _kube.retry.PatientCluster. One request, on servers before 1.27 one for each group."""
    kinds: dict[tuple[str, str], Kind] = {}
    found = cluster.request("get", "/apis", header_params={"Accept": _ALL_AT_ONCE + ",application/json"})
    if found.get("kind") == "APIGroupDiscoveryList":
        for group in found["items"]:
            for version in group.get("versions") or []:  # the preferred one first
                for kind in _described(group["metadata"]["name"], version):
                    kinds.setdefault((kind.group, kind.name), kind)
    else:
        for group in found.get("groups") or []:
            for kind in _listed(cluster, group):
                kinds.setdefault((kind.group, kind.name), kind)
    kinds.update({(kind.group, kind.name): kind for kind in BUILT_IN})
    return kinds


def _described(group: str, version: Object) -> Iterator[Kind]:
    for entry in version.get("resources") or []:
        subresources = {sub["subresource"] for sub in entry.get("subresources") or []}
        name = (entry.get("responseKind") or {}).get("kind")
        if name and "list" in (entry.get("verbs") or ()):
            namespaced = entry.get("scope") == "Namespaced"
            yield Kind(group, version["version"], entry["resource"], name, namespaced, "scale" in subresources)


def _listed(cluster: AnyCluster, group: Object) -> Iterator[Kind]:
    preferred = group["preferredVersion"]
    try:
        # An extension's own API server may be away for ever.
        found = cluster.impatient.get("/apis/" + preferred["groupVersion"]) or {}
    except kube_client.Unreachable:
        return
    names = {entry["name"] for entry in found.get("resources") or []}
    for entry in found.get("resources") or []:
        if "/" not in entry["name"] and "list" in (entry.get("verbs") or ()):
            scales = entry["name"] + "/scale" in names
            yield Kind(group["name"], preferred["version"], entry["name"], entry["kind"], entry["namespaced"], scales)


def stopping(kinds: dict[tuple[str, str], Kind]) -> list[Kind]:
    """Those of ``kinds`` that can be stopped, the built-in ones first."""
    return list(BUILT_IN) + sorted(
        (kind for kind in kinds.values() if kind.stops and not kind.built_in), key=lambda kind: kind.list_path
    )


def completed(cluster: AnyCluster, kind: Kind) -> Kind:
    """The Kind with its field, as its CustomResourceDefinition names it."""
    if kind.built_in or kind.field:
        return kind
    definition = cluster.get(_CRDS + kind.resource)
    if definition is None:  # served by an API server of its own; all that are known have it there
        return dataclasses.replace(kind, field=REPLICAS, running=("status", "replicas"))
    for version in definition["spec"]["versions"]:
        scale = (version.get("subresources") or {}).get("scale")
        if version["name"] == kind.version and scale:
            # Such as .spec.replicas: no brackets are allowed in it.
            field, running = (tuple(scale[key].strip(".").split(".")) for key in ("specReplicasPath", "statusReplicasPath"))
            return dataclasses.replace(kind, field=field, running=running)
    return kind


# --- one object ---


class Workload:
    """An object of a Kind that stops."""

    def __init__(self, kind: Kind, item: Object) -> None:
        self.kind, self.item = kind, item
        self.namespace, self.name = item["metadata"].get("namespace"), item["metadata"]["name"]

    @property
    def label(self) -> str:
        """``Deployment train/web``; with the group, as kubectl takes it, of what is not Kubernetes' own."""
        kind = self.kind.name if self.kind.built_in else "%s.%s" % (self.kind.name, self.kind.group)
        return "%s %s" % (kind, "/".join(part for part in (self.namespace, self.name) if part))

    @property
    def path(self) -> str:
        return self.kind.path(self.namespace, self.name)

    def value(self, path: Path | None = None) -> Any:
        """What is at ``path``, by default in the kind's field; None when there is nothing."""
        path = path or self.kind.field
        assert path is not None  # of a kind that is not completed, only what its Mark names is asked for
        return dig(self.item, path)

    @property
    def marked(self) -> bool:
        """Whether it seems to be parked."""
        return PARKED in kube_client.labels(self.item)

    @property
    def controlled(self) -> bool:
        return any(owner.get("controller") for owner in self.item["metadata"].get("ownerReferences") or [])

    @property
    def stopped(self) -> bool:
        return self.value() == self.kind.off

    @property
    def has_room_for_field(self) -> bool:
        """Whether there is what the field is in: of a training job's roles, a custom resource may scale one that is left out."""
        return isinstance(dig(self.item, (self.kind.field or ())[:-1]), dict)

    @property
    def over(self) -> bool:
        """Whether it is a Job that has ended."""
        conditions = (self.item.get("status") or {}).get("conditions") if self.kind == JOB else None
        return any(entry["type"] in ("Complete", "Failed") and entry["status"] == "True" for entry in conditions or [])

    def still_running(self) -> int:
        """How many pods it says it has, as far as it has noticed its last change; 0 where it says nothing."""
        status = self.item.get("status") or {}
        seen = status.get("observedGeneration")
        if seen is not None and seen < self.item["metadata"].get("generation", 0):
            return 1
        count = self.value(self.kind.running) if self.kind.running else 0
        return count if isinstance(count, int) else 0


def dig(item: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(item, dict):
            return None
        item = item.get(key)
    return item


def templates(node: Any) -> Iterator[Object]:
    """The pod templates anywhere in the specification ``node``: dictionaries with ``spec`` and perhaps ``metadata``."""
    if isinstance(node, list):
        for entry in node:
            yield from templates(entry)
    elif isinstance(node, dict):
        inner = node.get("spec")
        if isinstance(node.get("containers"), list):
            yield {"spec": node}
        elif isinstance(inner, dict) and isinstance(inner.get("containers"), list):
            yield node
        else:
            for entry in node.values():
                yield from templates(entry)


def requested(pod_spec: Object) -> set[str]:
    """The names of all resources that one of the containers asks for, those of the start included."""
    names: set[str] = set()
    for container in (pod_spec.get("containers") or []) + (pod_spec.get("initContainers") or []):
        resources = container.get("resources") if isinstance(container, dict) else None
        for key in ("limits", "requests"):
            counts = (resources or {}).get(key) or {}
            names.update(name for name, count in counts.items() if str(count) not in ("0", ""))
    return names


# --- which of them ---


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


def find(cluster: PatientCluster, resources: Iterable[str], namespace: str, spared: Selector) -> Found:
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
        self, cluster: PatientCluster, kinds: dict[tuple[str, str], Kind], resources: set[str], namespace: str, spared: Selector
    ) -> None:
        self._cluster, self.kinds, self._resources = cluster, kinds, resources
        self._namespace, self._spared = namespace, spared
        self._known: dict[str, Object | None] = {}  # by path
        self.found = Found()

    def look_at(self, kind: Kind) -> None:
        try:
            for item in each(self._cluster, kind):
                asked = self._asked(templates(item.get("spec")))
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
        """Of the resources those that the pods or templates ask for; none if they may finish."""
        asked: set[str] = set()
        for pod in pods:
            if self._spared.matches((pod.get("metadata") or {}).get("labels") or {}):
                return set()
            asked |= requested(pod["spec"]) & self._resources
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
                found = self._cluster.get(path) if kind.built_in else _of_custom(self._cluster, lambda once: once.get(path))
                self._known[path] = found
            except NpuError as exc:
                if kind.built_in:
                    raise
                self.found.unseen.append("%s: %s" % (path, exc.message))
        return self._known[path]


def each(cluster: AnyCluster, kind: Kind, **selectors: Any) -> Iterable[Object]:
    """The objects of a Kind."""
    if kind.built_in:
        return cluster.each(kind.list_path, **selectors)
    return _of_custom(cluster, lambda once: once.list(kind.list_path, **selectors))


def _of_custom(cluster: AnyCluster, read: Callable[[AnyCluster], Result]) -> Result:
    """What ``read(cluster)`` returns. Raises at once where a custom kind alone cannot be read: its conversion may be broken
    for ever."""
    try:
        return read(cluster.impatient)
    except (kube_client.Unreachable, kube_client.TooManyRequests):
        cluster.request("get", "/version")  # waits if it is the whole server that is away
        return read(cluster.impatient)


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
