# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods run on chips that the device plugin reports as unhealthy.

The kubelet writes that into the status of the pods (KEP-4680): by default from Kubernetes 1.36 on, with the feature gate
ResourceHealthStatus before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources

_UNHEALTHY = "Unhealthy"
_MOST = 16  # pods of one node
_NAME = 128  # characters


def lacks_devices(node: Object) -> bool:
    """Whether the node has more devices than it offers: only then is any of them unhealthy."""
    status = node.get("status") or {}
    offered = status.get("allocatable") or {}
    for name, text in (status.get("capacity") or {}).items():
        there = kube_quantity.whole(text)
        if npu_resources.is_npu(name) and there is not None and kube_client.allocatable(node, name) < there and name in offered:
            return True
    return False


def read(cluster: AnyCluster, nodes: Mapping[str, Object]) -> dict[str, list[str]]:
    """{node: phrases such as "train/job-0 (Ascend910-3)"}, one request for each node that lacks devices; without those whose pods
    may not be listed."""
    found: dict[str, list[str]] = {}
    for name, node in sorted(nodes.items()):
        if not lacks_devices(node):
            continue
        try:
            pods = cluster.list("/api/v1/pods", field_selector="spec.nodeName=" + name)
        except (kube_client.Refused, kube_client.Forbidden):
            return found
        told = told_by(pods)
        if told:
            found[name] = told
    return found


def told_by(pods: Iterable[Object]) -> list[str]:
    """Phrases, in the order of the pods' names."""
    told = []
    for pod in sorted(pods, key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"])):
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            continue
        devices = sorted(set(_unhealthy(pod)))
        if devices:
            told.append("%s/%s (%s)" % (pod["metadata"]["namespace"], pod["metadata"]["name"], ", ".join(devices)))
    return told[:_MOST] + (["and %d more" % (len(told) - _MOST)] if len(told) > _MOST else [])


def _unhealthy(pod: Object) -> Iterable[str]:
    """IDs of devices. A kubelet may say anything."""
    status = pod.get("status") or {}
    for container in _dicts(status.get("containerStatuses")) + _dicts(status.get("initContainerStatuses")):
        for entry in _dicts(container.get("allocatedResourcesStatus")):
            if not npu_resources.is_npu(entry.get("name")):
                continue
            for device in _dicts(entry.get("resources")):
                if device.get("health") == _UNHEALTHY:
                    yield one_line(device.get("resourceID"))[:_NAME]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)][:64] if isinstance(value, list) else []
