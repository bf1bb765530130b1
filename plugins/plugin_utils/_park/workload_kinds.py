# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of workloads that can be told to stop, scaled to zero or suspended, and the objects of them. Only looks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, Unpack

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.kind_table import KNOWN, SUSPEND, Key, Path, Stop

REPLICAS = ("spec", "replicas")
# Of Jobs of any kind: the conditions that say that they have ended.
_ENDED = ("Complete", "Completed", "Failed", "Succeeded")
# Of a Volcano Job: the phases after an AbortJob, and those that a Job does not leave any more.
_ABORTED = ("Aborting", "Aborted")
_OVER = ("Completing", "Completed", "Terminating", "Terminated", "Failed")

# All groups with all they serve in one answer; servers before 1.27 give the plain list of groups instead.
_ALL_AT_ONCE = ",".join(
    "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList" % version for version in ("v2", "v2beta1")
)

# What is parked carries this label, and an annotation of the same name (_park/parking.py).
PARKED = "npuops.ascend/parked"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object. ``field``: what is set to ``off`` to stop it, None where that is not known (yet); ``running``:
    where it says how many pods it still has; ``by_command``, ``never``, ``beside``: as in _park.kind_table.Stop."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True
    stops: bool = True
    built_in: bool = False
    field: Path | None = None
    off: int | bool | str = 0
    running: Path | None = None
    by_command: bool = False
    never: str = ""
    beside: bool = False

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


CRON_JOB = Kind("batch", "v1", "cronjobs", "CronJob", built_in=True, field=SUSPEND, off=True, beside=True)
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


def discover(cluster: RetryingCluster, declared: Mapping[Key, Stop]) -> dict[Key, Kind]:
    """All kinds of the cluster, as {(group, name): Kind}; of those that are not built in, what stands in the table or is
    ``declared`` by the user (_park.declared_kinds) or has a scale subresource ``stops``. ``cluster``:
    _kube.retry.RetryingCluster. One request, on servers before 1.27 one for each group."""
    table = {**KNOWN, **declared}
    kinds: dict[Key, Kind] = {}
    found = cluster.request("get", "/apis", header_params={"Accept": _ALL_AT_ONCE + ",application/json"})
    if found.get("kind") == "APIGroupDiscoveryList":
        for group in found["items"]:
            for version in group.get("versions") or []:  # the preferred one first
                for kind in _described(group["metadata"]["name"], version):
                    kinds.setdefault((kind.group, kind.name), _stopped_as(kind, table))
    else:
        for group in found.get("groups") or []:
            for kind in _listed(cluster, group):
                kinds.setdefault((kind.group, kind.name), _stopped_as(kind, table))
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
        found = cluster.without_retries.get("/apis/" + preferred["groupVersion"]) or {}
    except kube_client.Unreachable:
        return
    names = {entry["name"] for entry in found.get("resources") or []}
    for entry in found.get("resources") or []:
        if "/" not in entry["name"] and "list" in (entry.get("verbs") or ()):
            scales = entry["name"] + "/scale" in names
            yield Kind(group["name"], preferred["version"], entry["name"], entry["kind"], entry["namespaced"], scales)


def _stopped_as(kind: Kind, table: Mapping[Key, Stop]) -> Kind:
    stop = table.get((kind.group, kind.name))
    if stop is None:
        return kind
    return dataclasses.replace(kind, stops=not stop.never, **dataclasses.asdict(stop))


def stopping(kinds: Mapping[Key, Kind]) -> list[Kind]:
    """Those of ``kinds`` that can be stopped, the built-in ones first."""
    return list(BUILT_IN) + sorted(
        (kind for kind in kinds.values() if kind.stops and not kind.built_in), key=lambda kind: kind.list_path
    )


def completed(cluster: AnyCluster, kind: Kind) -> Kind:
    """The Kind with its field, as its CustomResourceDefinition names it."""
    if kind.built_in or kind.field or kind.by_command:
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
        if path is None:
            raise AssertionError("of a kind that is not completed, only what its Mark names is asked for")
        return dig(self.item, path)

    @property
    def marked(self) -> bool:
        """Whether it seems to be parked."""
        return PARKED in kube_client.labels(self.item)

    @property
    def controlled(self) -> bool:
        return any(owner.get("controller") for owner in self.item["metadata"].get("ownerReferences") or [])

    @property
    def phase(self) -> str:
        """Of a Volcano Job."""
        return str(dig(self.item, ("status", "state", "phase")) or "")

    @property
    def stopped(self) -> bool:
        return self.phase in _ABORTED if self.kind.by_command else self.value() == self.kind.off

    @property
    def objection(self) -> str:
        """Why it cannot be stopped although others of its kind can, a clause; "" when it can."""
        if self.kind.by_command:
            return "" if self.marked else self._no_restart_left()
        # Of a training job's roles, a custom resource may scale one that is left out. Annotations there may always be.
        path = self.kind.field or ()
        if path[:1] == ("spec",) and not isinstance(dig(self.item, path[:-1]), dict):
            return "it has no %s, in which %s would stop it" % (".".join(path[:-1]), path[-1])
        return ""

    def _no_restart_left(self) -> str:
        """Volcano counts a resume as a restart, and fails a Job that has had as many as spec.maxRetry, 3 by default."""
        had, most = dig(self.item, ("status", "retryCount")), dig(self.item, ("spec", "maxRetry"))
        had, most = (number if isinstance(number, int) else default for number, default in ((had, 0), (most, 3)))
        if had + 1 < most:
            return ""
        return (
            "Volcano would mark it as failed when it is resumed, because it has been restarted %d times and its spec.maxRetry is"
            " %d; wait until it has ended, or have its pods evicted" % (had, most)
        )

    @property
    def over(self) -> bool:
        """Whether it is a Job of some kind that has ended."""
        if self.kind.by_command:
            return self.phase in _OVER
        if self.kind.off is not True or self.kind.beside:
            return False
        if self.value(("status", "jobDeploymentStatus")) in ("Complete", "Failed"):  # of a RayJob
            return True
        conditions = self.value(("status", "conditions"))
        # The schema of a custom resource may allow anything.
        return any(
            dig(entry, ("type",)) in _ENDED and dig(entry, ("status",)) == "True"
            for entry in (conditions if isinstance(conditions, list) else [])
        )

    def still_running(self) -> int:
        """How many pods it says it has, as far as it has noticed its last change; 0 where it says nothing."""
        if self.kind.by_command:
            return 0 if self.over or self.phase == "Aborted" else 1
        seen = self.value(("status", "observedGeneration"))
        if isinstance(seen, int) and seen < self.item["metadata"].get("generation", 0):
            return 1
        count = self.value(self.kind.running) if self.kind.running else 0
        return count if isinstance(count, int) else 0


def dig(item: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(item, dict):
            return None
        item = item.get(key)
    return item


def each(cluster: AnyCluster, kind: Kind, **selectors: Unpack[Selectors]) -> Iterable[Object]:
    """The objects of a Kind."""
    if kind.built_in:
        return cluster.each(kind.list_path, **selectors)
    return read_custom(cluster, lambda once: once.list(kind.list_path, **selectors))


def read_custom(cluster: AnyCluster, read: Callable[[AnyCluster], Result]) -> Result:
    """What ``read(cluster)`` returns. Raises at once where a custom kind alone cannot be read: its conversion may be broken
    for ever."""
    try:
        return read(cluster.without_retries)
    except (kube_client.Unreachable, kube_client.TooManyRequests):
        cluster.request("get", "/version")  # waits if it is the whole server that is away
        return read(cluster.without_retries)
