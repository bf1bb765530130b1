# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ResourceClaims (Dynamic Resource Allocation) of pods on nodes: of which DRA drivers, and whether the drivers' plugins run.

The kubelet lets a pod with a claim end only when the plugin of the claim's driver has unprepared it: without the plugin, the pod
stays Terminating, over reboots, too. Who looks from outside sees a plugin by its ResourceSlices, which the kubelet deletes half a
minute after the plugin has left.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.blocker import NO_DRA_PLUGIN, Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.pod import FINISHED, NPU, OTHER, Pod, is_kubelet_plugin
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

GROUP_VERSION = "resource.k8s.io/v1"
CLAIMS = "/apis/%s/resourceclaims" % GROUP_VERSION
SLICES = "/apis/%s/resourceslices" % GROUP_VERSION
DAEMONSETS = "/apis/apps/v1/daemonsets"

_MOST_DEVICES = 128  # of one claim; the API server allows 32
_MOST_DRIVERS = 32  # whose ResourceSlices are read
_SHOWN = 3
_NAME = 253  # characters
_DRIVER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


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
            if _DRIVER.fullmatch(driver):
                pools.add((driver, pool))
                if result.get("adminAccess") is not True:
                    users.add(driver)
        return cls(_text(item["metadata"]["name"]), frozenset(pools), frozenset(users))

    @property
    def label(self) -> str:
        """``job-0-npu-x7k2p of npu.huawei.com``"""
        drivers = sorted({driver for driver, _pool in self.pools})
        return "%s of %s" % (self.name, ", ".join(drivers)) if drivers else self.name


class HeldClaims:
    """The claims of some pods. ``problem``: why they are not known, a clause, or None."""

    def __init__(
        self,
        claims: Mapping[tuple[str, str], Claim] | None = None,
        served: Collection[tuple[str, str]] | None = None,
        npu_drivers: Collection[str] = (),
        daemonsets: Mapping[str, str] | None = None,
        asked: Collection[tuple[str, str]] = (),
        problem: str | None = None,
    ) -> None:
        """``claims``: by (namespace, name); ``served``: (driver, pool) that ResourceSlices name, None when unknown; ``daemonsets``:
        of drivers whose plugin is missing somewhere; ``asked``: keys that were looked for."""
        self._claims, self._served, self._npu_drivers = claims or {}, served, npu_drivers
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
            for item in cluster.each(CLAIMS):
                key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
                if key in wanted:
                    found[key] = Claim.of(item)
        except NpuError as exc:
            return cls(asked=wanted, problem=_why_unknown(exc, "resourceclaims"))
        needed = {pool for claim in found.values() for pool in claim.pools}
        served, problem = _served(cluster, sorted({driver for driver, _pool in needed}))
        lacking = {driver for driver, _pool in needed - served} if served is not None else set()
        held = cls(found, served, npu_drivers, _daemonsets(cluster, lacking) if lacking else {}, wanted, problem)
        held.mark(pods)
        return held

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
        return _some([claim.label for claim in self.of(pod)], ", ")

    def objection(self, pod: Pod) -> Blocker | None:
        """The Blocker that a missing plugin is to the pod's eviction, or None."""
        if self._served is None:
            return None
        for claim in self.of(pod):
            for driver, pool in sorted(claim.pools):
                if (driver, pool) not in self._served:
                    daemonset = self._daemonsets.get(driver)
                    why = (
                        "the plugin of the DRA driver %s does not run on %s, so its ResourceClaim %s stays prepared and the pod"
                        " Terminating; start that plugin there again%s"
                        % (driver, pod.node, claim.name, " (DaemonSet %s)" % daemonset if daemonset else "")
                    )
                    return Blocker(NO_DRA_PLUGIN, pod, why)
        return None


def npu_users(cluster: AnyCluster, items: Iterable[Object], npu_drivers: Collection[str]) -> set[str]:
    """namespace/name of those of the Pod objects that use NPUs by a claim, as far as claims may be read."""
    pods = [
        Pod(item)
        for item in items
        if (item.get("spec") or {}).get("resourceClaims") or (item.get("status") or {}).get("extendedResourceClaimStatus")
    ]
    HeldClaims.read(cluster, pods, npu_drivers)
    return {pod.label for pod in pods if pod.npu_claims}


def holders(pods: Sequence[Pod], claims: HeldClaims) -> str | None:
    """A clause that names the pods of one node that hold claims, with their claims and drivers; None when there is none."""
    told = ["%s (%s)" % (pod.label, claims.labels(pod)) for pod in pods if claims.of(pod)]
    return "pods that hold ResourceClaims: %s" % _some(told, "; ") if told else None


def _some(names: Sequence[str], separator: str) -> str:
    return separator.join(names[:_SHOWN]) + (" and %d more" % (len(names) - _SHOWN) if len(names) > _SHOWN else "")


def _keys(pod: Pod) -> Iterator[tuple[str, str]]:
    return ((pod.namespace, name) for name in pod.claims)


def _allocated(item: Object) -> list[dict[str, Any]]:
    devices = ((item.get("status") or {}).get("allocation") or {}).get("devices") or {}
    return [result for result in (devices.get("results") or [])[:_MOST_DEVICES] if isinstance(result, dict)]


def _text(value: Any) -> str:
    """A name of the cluster's, fit for a message."""
    return one_line(value)[:_NAME] if isinstance(value, str) else ""


def _served(cluster: AnyCluster, drivers: Sequence[str]) -> tuple[set[tuple[str, str]] | None, str | None]:
    """({(driver, pool)} that the drivers' plugins publish, None), or (None, why that is not known)."""
    found = set()
    if len(drivers) > _MOST_DRIVERS:
        return None, "pods hold ResourceClaims of %d DRA drivers; whether their plugins run was not checked" % len(drivers)
    try:
        for driver in drivers:
            for item in cluster.each(SLICES, field_selector="spec.driver=" + driver):
                spec = item.get("spec") or {}
                if spec.get("driver") == driver:
                    found.add((driver, _text((spec.get("pool") or {}).get("name"))))
    except NpuError as exc:
        return None, _why_unknown(exc, "resourceslices")
    return found, None


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
    """{driver: namespace/name} of the DaemonSets that are these drivers' plugins, as far as that can be told: they register with
    the kubelet, and their template names the driver."""
    found: dict[str, str] = {}
    try:
        for item in cluster.each(DAEMONSETS):
            spec = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
            if is_kubelet_plugin(spec):
                words = set(_words(spec))
                for driver in drivers:
                    if any(driver in word for word in words):
                        found.setdefault(driver, "%s/%s" % (item["metadata"]["namespace"], item["metadata"]["name"]))
    except NpuError as exc:
        if not isinstance(exc, kube_client.NotFound) and not exc.details.get("missing"):
            raise
    return found


def _words(spec: Object) -> Iterator[str]:
    """What says for which driver a pod works: paths, arguments, the environment."""
    for volume in spec.get("volumes") or []:
        yield str((volume.get("hostPath") or {}).get("path"))
    for container in spec.get("containers") or []:
        yield from (str(word) for key in ("command", "args") for word in container.get(key) or [])
        yield from (str(variable.get("value")) for variable in container.get("env") or [])
