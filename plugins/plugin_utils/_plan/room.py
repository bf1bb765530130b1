# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where pods that ask for NPUs could go when their node is drained."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.snapshot import FleetSnapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record


class Room:
    """Where pods that ask for NPUs could go, by their requests alone."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self._free: dict[str, dict[str, int]] = {}  # resource -> node -> free
        self.totals: dict[str, dict[str, int]] = {}  # resource -> {allocatable, requested, free}, on nodes that take pods
        for name, node in snapshot.nodes.items():
            if not maintenance_record.serves_pods(node):
                continue
            for resource in node.get("status", {}).get("allocatable") or {}:
                count = kube_client.allocatable(node, resource)
                if npu_resources.is_npu(resource) and count > 0:
                    used = sum(pod.requests.get(resource, 0) for pod in snapshot.pods.get(name, ()))
                    self._free.setdefault(resource, {})[name] = count - used
                    total = self.totals.setdefault(resource, {"allocatable": 0, "requested": 0, "free": 0})
                    for key, value in (("allocatable", count), ("requested", used), ("free", count - used)):
                        total[key] += value
        # How many nodes have that much free: a plan asks for every node of the fleet.
        self._counts = {resource: collections.Counter(free.values()) for resource, free in self._free.items()}

    def homeless(self, node: str, pods: Sequence[pod_view.Pod]) -> list[pod_view.Pod]:
        """The Pods of ``pods`` on ``node`` that would find no other node; the largest look first."""
        result = []
        for resource in sorted({name for pod in pods for name in pod.requests}):
            counts = collections.Counter(self._counts.get(resource, {}))
            own = self._free.get(resource, {}).get(node)
            if own is not None:
                counts[own] -= 1
            asking = [pod for pod in pods if resource in pod.requests]
            for pod in sorted(asking, key=lambda pod: (-pod.requests[resource], pod.label)):
                wanted = pod.requests[resource]
                best = min((free for free, number in counts.items() if number > 0 and free >= wanted), default=None)
                if best is None:
                    result.append(pod)
                else:
                    counts[best] -= 1
                    counts[best - wanted] += 1
        return result
