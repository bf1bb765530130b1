# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DaemonSet that is being rolled out, its pods and its nodes at one moment."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.npuops.ascend.plugins.plugin_utils._components import revisions as components_revisions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

NOT_READY = "NotReady"
# So many nodes are looked at for one without pods that use NPUs.
_MOST_LOOKS = 20


class DaemonSetView:
    """``daemonset``: the object; ``revisions``: its Revisions; ``pods``: its pods by node, without those that end."""

    def __init__(self, cluster: AnyCluster, daemonset: Object) -> None:
        self._cluster, self.daemonset = cluster, daemonset
        metadata = daemonset["metadata"]
        self.namespace, uid = metadata["namespace"], metadata["uid"]
        self.revisions = components_revisions.Revisions(cluster, daemonset)
        self._nodes = {node["metadata"]["name"]: node for node in cluster.list("/api/v1/nodes")}
        path = "/api/v1/namespaces/%s/pods" % self.namespace
        found = cluster.list(path, **components_revisions.selector_of(daemonset))
        mine = [pod for pod in found if components_revisions.is_owned(pod, uid)]
        self.pods: dict[str, Object] = {}
        for pod in mine:
            name = kube_daemonsets.pod_node(pod)
            if name is not None and not pod["metadata"].get("deletionTimestamp"):
                self.pods[name] = pod
        self.offers_chips = _offers_chips(daemonset)

    @property
    def observed(self) -> bool:
        """Whether the controller has seen the present template, so that ``revisions`` has it."""
        status = self.daemonset.get("status") or {}
        return status.get("observedGeneration", 0) >= self.daemonset["metadata"].get("generation", 0)

    @property
    def desired(self) -> int:
        """On how many nodes it is to run."""
        return max((self.daemonset.get("status") or {}).get("desiredNumberScheduled", 0), len(self.pods))

    def node(self, name: str) -> Object | None:
        return self._nodes.get(name)

    def hash_on(self, name: str) -> str | None:
        """Of the template of the pod on that node; None without one."""
        pod = self.pods.get(name)
        return components_revisions.hash_of(pod) if pod else None

    def why_not_waited_for(self, name: str) -> str | None:
        """Why nothing can be told from the pod on that node, or None."""
        node = self._nodes.get(name)
        if node is None:
            return "not in the cluster"
        if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
            return "in maintenance"
        labels = kube_client.labels(node)
        if labels.get(kube_client.LABEL_COMPONENTS) not in (None, "enabled"):
            return "its components are paused"
        selector = self.daemonset["spec"]["template"]["spec"].get("nodeSelector") or {}
        if not selector.items() <= labels.items():
            return "not selected"
        # Last: a node with another reason is down on purpose.
        return None if kube_client.node_ready(node)[0] else NOT_READY

    def pod_works(self, name: str) -> bool:
        return name in self.pods and kube_daemonsets.pod_ready(self.pods[name])

    def working(self) -> list[str]:
        """The nodes that are waited for and whose pod works, whatever its template."""
        return sorted(name for name in self.pods if self.pod_works(name) and not self.why_not_waited_for(name))

    def chips(self, name: str) -> dict[str, int]:
        """{resource: count} that the node offers, if this DaemonSet has to do with it. In chips, to be compared with what another
        template offers, which may make more or fewer devices of a chip.
        """
        offered = ((self._nodes.get(name) or {}).get("status") or {}).get("allocatable") or {}
        if not self.offers_chips:
            return {}
        each = shared_chips.devices_per_chip([self.pods[name]] if name in self.pods else [])
        counts = {
            resource: (kube_quantity.whole(text) or 0) // each
            for resource, text in offered.items()
            if npu_resources.is_npu(resource)
        }
        return {resource: count for resource, count in sorted(counts.items()) if count}

    def short_of(self, name: str, before: Mapping[str, int]) -> list[str]:
        """What the node offers less than ``before``, as phrases."""
        now = self.chips(name)
        return [
            "%d instead of %d of %s" % (now.get(resource, 0), count, resource)
            for resource, count in before.items()
            if now.get(resource, 0) < count
        ]

    def least_used(self, names: list[str]) -> str:
        """The first of the nodes on which no pod uses NPUs; if they are used on all of them, the first."""
        for name in names[:_MOST_LOOKS]:
            if not any(pod.uses_npus or pod.claims for pod in pod_view.pods_of_node(self._cluster, name, self.namespace)):
                return name
        return names[0]


def _offers_chips(daemonset: Object) -> bool:
    """Whether it is a device plugin, or between one and the kubelet, by the directory of sockets that it mounts."""
    volumes = daemonset["spec"]["template"]["spec"].get("volumes") or []
    return any((volume.get("hostPath") or {}).get("path") in kube_daemonsets.PLUGIN_SOCKETS for volume in volumes)
