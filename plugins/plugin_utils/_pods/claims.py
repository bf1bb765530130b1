# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ResourceClaims (Dynamic Resource Allocation) of pods on nodes: of which DRA drivers, and whether the drivers' plugins run.

The kubelet lets a pod with a claim end only when the plugin of the claim's driver has unprepared it: without the plugin, the pod
stays Terminating, over reboots, too. Who looks from outside sees a plugin by its ResourceSlices, which the kubelet deletes half a
minute after the plugin has left. What a plugin publishes of its node names that node; of devices on no node, only the
pool is known. Nothing was prepared for a pod that never started: the kubelet first looks for the plugin, then notes the claim.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import NO_DRA_PLUGIN, Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import FINISHED, NPU, OTHER, Pod, is_kubelet_plugin

GROUP_VERSION = "resource.k8s.io/v1"
CLAIMS = "/apis/%s/resourceclaims" % GROUP_VERSION
_CLAIMS_OF = "/apis/%s/namespaces/%%s/resourceclaims" % GROUP_VERSION
SLICES = "/apis/%s/resourceslices" % GROUP_VERSION
DAEMONSETS = "/apis/apps/v1/daemonsets"

_MOST_DEVICES = 128  # of one claim; the API server allows 32
_MOST_DRIVERS = 32  # whose ResourceSlices are read
_BY_NAME = 16  # claims that are read one by one instead of all of the cluster
_NAME = 253  # characters
DRIVER_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclasses.dataclass(frozen=True)
class Claim:
    """A ResourceClaim. ``pools``: (driver, pool) of the devices that it has; ``users``: drivers of those that it does not only
    observe (admin access)."""

    name: str
    pools: frozenset[tuple[str, str]]
    users: frozenset[str]

    @classmethod
    def of(cls, item: Object) -> Claim:
        """``item``: the object."""
        pools, users = set(), set()
        for result in _allocated(item):
            driver, pool = _text(result.get("driver")), _text(result.get("pool"))
            if DRIVER_NAME.fullmatch(driver):
                pools.add((driver, pool))
                if result.get("adminAccess") is not True:
                    users.add(driver)
        return cls(_text(item["metadata"]["name"]), frozenset(pools), frozenset(users))

    @property
    def label(self) -> str:
        """``job-0-npu-x7k2p of npu.huawei.com``"""
        drivers = sorted({driver for driver, _pool in self.pools})
        return "%s of %s" % (self.name, and_more(drivers)) if drivers else self.name


@dataclasses.dataclass
class Plugins:
    """Which plugins of DRA drivers publish devices: ``nodes``: (driver, node); ``pools``: (driver, pool) of devices on no node."""

    nodes: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    pools: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def look(self, item: Object) -> None:
        """Take the ResourceSlice object ``item`` into account."""
        spec = item.get("spec") or {}
        driver, node = _text(spec.get("driver")), _text(spec.get("nodeName"))
        if node:
            self.nodes.add((driver, node))
        else:
            self.pools.add((driver, _text((spec.get("pool") or {}).get("name"))))

    def run(self, driver: str, pool: str, node: str | None) -> bool:
        """Whether that driver's plugin does, on the node or for devices of the pool that are on no node."""
        return (driver, node) in self.nodes or (driver, pool) in self.pools


class HeldClaims:
    """The claims of some pods. ``problem``: why they are not known, a clause, or None."""

    def __init__(
        self,
        claims: Mapping[tuple[str, str], Claim] | None = None,
        plugins: Plugins | None = None,
        npu_drivers: Collection[str] = (),
        daemonsets: Mapping[str, str] | None = None,
        asked: Collection[tuple[str, str]] = (),
        problem: str | None = None,
    ) -> None:
        """``claims``: by (namespace, name); ``plugins``: None when unknown; ``daemonsets``: of drivers whose plugin is missing
        somewhere, for people; ``asked``: keys that were looked for."""
        self._claims, self._plugins, self._npu_drivers = claims or {}, plugins, npu_drivers
        self._daemonsets, self._asked, self.problem = daemonsets or {}, asked, problem

    @classmethod
    def read(cls, cluster: AnyCluster, pods: Iterable[Pod], npu_drivers: Collection[str]) -> HeldClaims:
        """Those of ``pods``, whose kinds they may change (``mark``). No request when no pod has any; without the permission to
        list them, or in a cluster without the API, the ``problem`` tells it."""
        pods = [pod for pod in pods if pod.claims and pod.kind != FINISHED]
        wanted = {key for pod in pods for key in _keys(pod)}
        if not wanted:
            return cls()
        found: dict[tuple[str, str], Claim] = {}
        try:
            for item in _objects(cluster, wanted):
                key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
                if key in wanted:
                    found[key] = Claim.of(item)
        except NpuError as exc:
            return cls(asked=wanted, problem=_why_unknown(exc, "resourceclaims"))
        drivers = {driver for claim in found.values() for driver, _pool in claim.pools}
        plugins, problem = _plugins(cluster, drivers, {pod.node for pod in pods})
        held = cls(found, plugins, npu_drivers, {}, wanted, problem)
        lacking = {driver for pod in pods for _claim, driver in held._lacking(pod)}
        held._daemonsets = _daemonsets(cluster, lacking) if lacking else {}
        held.mark(pods)
        return held

    @property
    def unread(self) -> bool:
        """Whether there are claims that could not be read."""
        return bool(self._asked) and self._plugins is None and not self._claims

    def know(self, pods: Iterable[Pod]) -> bool:
        """Whether the claims of all these pods were looked for."""
        return all(key in self._asked for pod in pods if pod.kind != FINISHED for key in _keys(pod))

    def mark(self, pods: Iterable[Pod]) -> None:
        """Have pods whose claims are of NPUs count as pods that use NPUs."""
        for pod in pods:
            if pod.claims and pod.kind != FINISHED:
                mine = [claim for claim in self.of(pod) if claim.users.intersection(self._npu_drivers)]
                pod.npu_claims = tuple(claim.label for claim in mine)
                if mine and pod.kind == OTHER:
                    pod.kind = NPU

    def of(self, pod: Pod) -> list[Claim]:
        """The pod's claims that are allocated."""
        return [claim for claim in map(self._claims.get, _keys(pod)) if claim is not None and claim.pools]

    def labels(self, pod: Pod) -> str:
        """The pod's claims as a person reads them, "" without any."""
        return and_more([claim.label for claim in self.of(pod)])

    def objection(self, pod: Pod) -> Blocker | None:
        """The Blocker that a missing plugin is to the pod's eviction, or None."""
        for claim, driver in self._lacking(pod):
            daemonset = self._daemonsets.get(driver)
            why = (
                "the plugin of the DRA driver %s does not run on %s, so its ResourceClaim %s stays prepared and the pod"
                " Terminating; start that plugin there again%s"
                % (driver, pod.node, claim.name, " (DaemonSet %s)" % daemonset if daemonset else "")
            )
            return Blocker(NO_DRA_PLUGIN, pod, why)
        return None

    def _lacking(self, pod: Pod) -> Iterator[tuple[Claim, str]]:
        """The pod's claims that no plugin would unprepare, each with the driver whose plugin is missing."""
        if self._plugins is None or not (pod.started or pod.terminating):
            return
        for claim in self.of(pod):
            for driver, pool in sorted(claim.pools):
                if not self._plugins.run(driver, pool, pod.node):
                    yield claim, driver


def npu_users(cluster: AnyCluster, items: Iterable[Object], npu_drivers: Collection[str]) -> tuple[set[str], dict[str, str]]:
    """(namespace/name of those of the Pod objects that use NPUs by a claim, {that of those that may: why it is unknown})."""
    pods = [
        Pod(item)
        for item in items
        if (item.get("spec") or {}).get("resourceClaims") or (item.get("status") or {}).get("extendedResourceClaimStatus")
    ]
    held = HeldClaims.read(cluster, pods, npu_drivers)
    if held.unread:
        return set(), {pod.label: held.problem or "" for pod in pods if pod.kind != FINISHED}
    return {pod.label for pod in pods if pod.npu_claims}, {}


def holders(pods: Sequence[Pod], claims: HeldClaims) -> str | None:
    """A clause that names the pods of one node that hold claims, with their claims and drivers; None when there is none."""
    told = ["%s (%s)" % (pod.label, claims.labels(pod)) for pod in pods if claims.of(pod)]
    return "pods that hold ResourceClaims: %s" % and_more(told, separator="; ") if told else None


def _keys(pod: Pod) -> Iterator[tuple[str, str]]:
    return ((pod.namespace, name) for name in pod.claims)


def _allocated(item: Object) -> list[dict[str, Any]]:
    devices = ((item.get("status") or {}).get("allocation") or {}).get("devices") or {}
    return [result for result in (devices.get("results") or [])[:_MOST_DEVICES] if isinstance(result, dict)]


def _text(value: Any) -> str:
    """A name of the cluster's, fit for a message."""
    return one_line(value)[:_NAME] if isinstance(value, str) else ""


def _objects(cluster: AnyCluster, wanted: Collection[tuple[str, str]]) -> Iterator[Object]:
    """Objects among which those ``wanted``, by (namespace, name), are. For one node, not all of the cluster."""
    if len(wanted) > _BY_NAME:
        yield from cluster.each(CLAIMS)
        return
    for namespace, name in sorted(wanted):
        yield from cluster.each(_CLAIMS_OF % namespace, field_selector="metadata.name=" + name)


def _plugins(cluster: AnyCluster, drivers: Collection[str], nodes: Collection[str | None]) -> tuple[Plugins | None, str | None]:
    """(what the drivers' plugins publish, None), or (None, why that is not known)."""
    plugins = Plugins()
    if len(drivers) > _MOST_DRIVERS:
        return None, "pods hold ResourceClaims of %d DRA drivers; whether their plugins run was not checked" % len(drivers)
    try:
        (node, *others) = nodes or (None,)
        if drivers and node and not others:
            for item in cluster.each(SLICES, field_selector="spec.nodeName=%s" % node):
                plugins.look(item)
        for driver in sorted(drivers):
            if not any(name == driver for name, _node in plugins.nodes):
                for item in cluster.each(SLICES, field_selector="spec.driver=" + driver):
                    plugins.look(item)
    except NpuError as exc:
        return None, _why_unknown(exc, "resourceslices")
    return plugins, None


def _why_unknown(exc: NpuError, resource: str) -> str:
    """A clause for a failure that only means that something is not known here. Raises the others."""
    doubt = "whether they use NPUs, and " if resource == "resourceclaims" else ""
    if isinstance(exc, kube_client.NotFound):
        reason = "the cluster does not serve %s" % GROUP_VERSION
    elif exc.details.get("missing"):
        permission = kube_client.describe_permission("list", resource, GROUP_VERSION.partition("/")[0])
        reason = "the Kubernetes user may not %s" % permission
    else:
        raise exc
    return "pods hold ResourceClaims, but %s: %swhether the plugins of their DRA drivers run was not checked" % (reason, doubt)


def _daemonsets(cluster: AnyCluster, drivers: Collection[str]) -> dict[str, str]:
    """{driver: for people, the DaemonSets that are its plugin}, as far as that can be told: they register with the kubelet, and
    their template names the driver. Those whose pods work come first: any user may create one that only looks like it."""
    found: dict[str, list[tuple[bool, str]]] = {}
    try:
        for item in cluster.each(DAEMONSETS):
            spec = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
            if is_kubelet_plugin(spec):
                words = set(_words(spec))
                for driver in drivers:
                    if any(driver in word for word in words):
                        works = bool((item.get("status") or {}).get("numberReady"))
                        found.setdefault(driver, []).append((not works, "%(namespace)s/%(name)s" % item["metadata"]))
    except NpuError as exc:
        if not isinstance(exc, kube_client.NotFound) and not exc.details.get("missing"):
            raise
    return {driver: and_more([name for _works, name in sorted(names)], separator=" or ") for driver, names in found.items()}


def _words(spec: Object) -> Iterator[str]:
    """What says for which driver a pod works: paths, arguments, the environment."""
    for volume in spec.get("volumes") or []:
        yield str((volume.get("hostPath") or {}).get("path"))
    for container in spec.get("containers") or []:
        yield from (str(word) for key in ("command", "args") for word in container.get(key) or [])
        yield from (str(variable.get("value")) for variable in container.get("env") or [])
