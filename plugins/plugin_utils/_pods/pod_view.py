# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a drain needs to know of a pod: what kind it is, who owns it, which chips it asks for."""

from __future__ import annotations

import os
import socket

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

PATH = "/api/v1/pods"
NAMESPACE: str = spec_defaults.default("npu_namespace")  # of our components, unless another one is given


# What a pod is to a drain; the first that fits counts.
FINISHED = "finished"  # nothing of it runs
MIRROR = "mirror"  # a static pod: the kubelet's own, ends with the reboot
COMPONENT = "component"  # ours: leaves when the node's components are paused
DAEMONSET = "daemonset"  # would come back at once
NPU = "npu"  # uses a chip: evicted first
OTHER = "other"


class Pod:
    """What a drain needs of a Pod object; small, because a plan has all of the cluster's in memory."""

    __slots__ = (
        "claims",
        "empty_dir",
        "kind",
        "kubelet_plugin",
        "labels",
        "name",
        "namespace",
        "node",
        "npu_claims",
        "owner",
        "phase",
        "ready",
        "requests",
        "started",
        "terminating",
        "tolerates_cordon",
        "uid",
        "uses_npus",
    )

    def __init__(self, item: Object, ours: str = NAMESPACE) -> None:
        """``item``: a Pod object; ``ours``: the namespace of our components."""
        metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
        self.namespace: str = metadata.get("namespace", "default")
        self.name: str = metadata["name"]
        self.uid: str | None = metadata.get("uid")
        self.labels: Labels = metadata.get("labels") or {}
        self.node: str | None = spec.get("nodeName")
        self.owner = _owner(metadata)  # (kind, name) or None
        self.terminating: str | None = metadata.get("deletionTimestamp")
        self.phase: str | None = status.get("phase")
        self.ready = any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in status.get("conditions") or [])
        self.started = _started(status)  # or about to start
        self.tolerates_cordon = any(_tolerates_cordon(entry) for entry in spec.get("tolerations") or [])
        self.empty_dir = any("emptyDir" in volume for volume in spec.get("volumes") or [])
        self.requests = npu_use.requests(spec)  # {resource: count}
        self.uses_npus = bool(self.requests) or npu_use.has_cdi_name(metadata)
        self.claims = _claims(spec, status)  # names of its ResourceClaims
        self.npu_claims: tuple[str, ...] = ()  # those of NPUs, for people; set when the claims are read
        self.kubelet_plugin = is_kubelet_plugin(spec)
        self.kind = self._kind(metadata, ours)

    def _kind(self, metadata: Object, ours: str) -> str:
        if self.phase in ("Succeeded", "Failed"):
            return FINISHED
        if "kubernetes.io/config.mirror" in (metadata.get("annotations") or {}):
            return MIRROR
        if component_names.daemonset_of(metadata, ours):
            return COMPONENT
        if self.owner and self.owner[0] == "DaemonSet":
            return DAEMONSET
        return NPU if self.uses_npus else OTHER

    @property
    def label(self) -> str:
        return "%s/%s" % (self.namespace, self.name)

    @property
    def owner_text(self) -> str | None:
        """``Deployment train/web``, or None without a controller, as a static pod is."""
        return "%s %s/%s" % (self.owner[0], self.namespace, self.owner[1]) if self.owner and self.kind != MIRROR else None


def _owner(metadata: Object) -> tuple[str, str] | None:
    """(kind, name) of what would create the pod again; a Deployment rather than its ReplicaSet."""
    for owner in metadata.get("ownerReferences") or []:
        if not owner.get("controller"):
            continue
        kind, name = owner["kind"], owner["name"]
        # Its ReplicaSets are named <deployment>-<pod template hash>: no need to read each of them.
        suffix = "-" + ((metadata.get("labels") or {}).get("pod-template-hash") or "")
        if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
            return "Deployment", name[: -len(suffix)]
        return kind, name
    return None


def _tolerates_cordon(toleration: Object) -> bool:
    key, exists = toleration.get("key"), toleration.get("operator") == "Exists"
    return (key == "node.kubernetes.io/unschedulable" or (not key and exists)) and toleration.get("effect") in (
        None,
        "",
        "NoSchedule",
    )


def _started(status: Object) -> bool:
    """Whether the kubelet has come as far as the pod's sandbox, before which it prepares the claims."""
    if status.get("phase") != "Pending":
        return True
    conditions = status.get("conditions") or []
    if any(entry.get("type") == "PodReadyToStartContainers" and entry.get("status") == "True" for entry in conditions):
        return True
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return any(entry.get("containerID") for entry in containers)


def _claims(spec: Object, status: Object) -> tuple[str, ...]:
    """Of the claims that Kubernetes makes for a pod, its status has the names."""
    extended = status.get("extendedResourceClaimStatus")
    if not spec.get("resourceClaims") and not extended:
        return ()
    entries = [*(spec.get("resourceClaims") or []), *(status.get("resourceClaimStatuses") or []), extended or {}]
    return tuple(sorted({entry["resourceClaimName"] for entry in entries if entry.get("resourceClaimName")}))


def is_kubelet_plugin(spec: Object) -> bool:
    """Whether a pod with this spec registers something with the kubelet, such as the plugin of a DRA driver: it has the directory
    of the sockets, or that of the kubelet."""
    paths = (str((volume.get("hostPath") or {}).get("path")).rstrip("/") for volume in spec.get("volumes") or [])
    return any(path.endswith(("/plugins_registry", "/kubelet")) for path in paths)


def pods_of_node(cluster: AnyCluster, node: str, ours: str = NAMESPACE) -> list[Pod]:
    """The Pods (class Pod) of the node named ``node``: one request. ``ours``: the namespace of our components."""
    return [Pod(item, ours) for item in cluster.each(PATH, field_selector=on_node(node))]


def on_node(node: str) -> str:
    """The field selector of the pods on the node."""
    return "spec.nodeName=" + node


def own_pod_name() -> str | None:
    """The name of the pod this process runs in, or None outside of Kubernetes."""
    return socket.gethostname() if os.environ.get("KUBERNETES_SERVICE_HOST") else None
