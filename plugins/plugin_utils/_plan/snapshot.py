# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster at one moment, as small as a plan can do with: thousands of nodes and tens of thousands of pods.

The number of requests grows with the pages of the lists, not with nodes or pods.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.mindcluster_version_lines import MindClusterVersionLines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.registry_nodes import RegistryNodes
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.claims import HeldClaims
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval

_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"


class FleetSnapshot:
    """``nodes``: Node objects by name; ``pods``: lists of _pods.pod_view.Pod by node name; ``budgets``; ``registry_nodes``: names
    of the nodes that a registry runs on, each with what tells so; ``version_lines``: of MindCluster; ``claims``: of the pods."""

    def __init__(
        self,
        nodes: Mapping[str, Object],
        pods: Mapping[str, Sequence[pod_view.Pod]],
        budgets: disruption_budgets.Budgets,
        registry_nodes: Mapping[str, str] | None = None,
        version_lines: MindClusterVersionLines | None = None,
        claims: HeldClaims | None = None,
    ) -> None:
        self.nodes, self.pods, self.budgets = nodes, pods, budgets
        self.registry_nodes = registry_nodes or {}
        self.version_lines = version_lines or MindClusterVersionLines(pod_view.NAMESPACE)
        self.claims = claims or HeldClaims()

    @classmethod
    def read(
        cls,
        cluster: AnyCluster,
        registries: Sequence[str] = (),
        namespace: str = pod_view.NAMESPACE,
        npu_drivers: Collection[str] = (),
    ) -> FleetSnapshot:
        """``registries``: host names (with port) of the registries that driver images come from; ``namespace``: ours;
        ``npu_drivers``: DRA drivers whose devices are NPUs."""
        with _without_collector():
            return cls._read(cluster, registries, namespace, npu_drivers)

    def without(self, goes: Callable[[pod_view.Pod], bool]) -> FleetSnapshot:
        """The same without the pods for which ``goes(pod)``."""
        pods = {node: [pod for pod in some if not goes(pod)] for node, some in self.pods.items()}
        return FleetSnapshot(self.nodes, pods, self.budgets, self.registry_nodes, self.version_lines, self.claims)

    def with_version_lines(self, version_lines: MindClusterVersionLines) -> FleetSnapshot:
        """The same with other ``version_lines``."""
        return FleetSnapshot(self.nodes, self.pods, self.budgets, self.registry_nodes, version_lines, self.claims)

    @classmethod
    def _read(cls, cluster: AnyCluster, registries: Sequence[str], namespace: str, npu_drivers: Collection[str]) -> FleetSnapshot:
        nodes: dict[str, Object] = {}
        for node in cluster.each("/api/v1/nodes"):
            nodes[node["metadata"]["name"]] = _slim(node)
        registry = RegistryNodes(cluster, nodes, registries)
        version_lines = MindClusterVersionLines(namespace)
        pods: dict[str, list[pod_view.Pod]] = collections.defaultdict(list)
        for item in cluster.each("/api/v1/pods", field_selector=_RUNNING):
            pod = pod_view.Pod(item, namespace)
            if pod.node:
                pods[pod.node].append(pod)
                registry.look(pod, item)
                if pod.kind == pod_view.COMPONENT:
                    version_lines.look(item)
        claims = HeldClaims.read(cluster, itertools.chain.from_iterable(pods.values()), npu_drivers)
        return cls(nodes, dict(pods), disruption_budgets.Budgets.read(cluster), registry.nodes, version_lines, claims)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Decoded pages have no cycles; looking for some after every few hundred objects costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _slim(node: Object) -> Object:
    """The Node without what fills it: images, and who manages which field but approval and cordon."""
    node.get("status", {}).pop("images", None)
    managed = (_slim_entry(entry) for entry in node["metadata"].get("managedFields") or [])
    node["metadata"]["managedFields"] = [entry for entry in managed if entry]
    return node


def _slim_entry(entry: Object) -> Object | None:
    """The entry of managedFields with approval and cordon only, None without them."""
    owned = entry.get("fieldsV1", {})
    kept: Object = {}
    key = "f:" + approval.ANNOTATION_APPROVE
    if key in owned.get("f:metadata", {}).get("f:annotations", {}):
        kept["f:metadata"] = {"f:annotations": {key: {}}}
    if "f:unschedulable" in owned.get("f:spec", {}):
        kept["f:spec"] = {"f:unschedulable": {}}
    return dict(entry, fieldsV1=kept) if kept else None
