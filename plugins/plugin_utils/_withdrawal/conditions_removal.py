# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing what the node agents say of drivers and chips, where no agent is any more."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import agent_conditions as kube_agent_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.each import AllOf
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names

_CLOCK = Clock()
_INTERVAL = 1.0


def remove_all(cluster: AnyCluster, namespace: str, timeout: float, check_mode: bool = False, clock: Clock = _CLOCK) -> list[str]:
    """Remove their conditions from all Nodes, each when its agent's pod has ended; phrases of what was (or would be) done.
    On a node that is not Ready, no pod ends: it is not waited for.

    Raises NpuError with all that failed, a pod that does not end within ``timeout`` seconds among it, when everything else is done.
    """
    nodes = [node for node in cluster.each("/api/v1/nodes") if kube_agent_conditions.of(node)]
    left, down = [node["metadata"]["name"] for node in nodes], _down(nodes)
    each = AllOf()
    deadline = clock.monotonic() + timeout
    while left:
        is_late = clock.monotonic() >= deadline
        if is_late:  # one may have gone down meanwhile
            down = _down(cluster.each("/api/v1/nodes"))
        # The agent would write it again.
        pods = {} if check_mode else _agents(cluster, namespace)
        for name in left:
            if name not in pods or name in down:
                each.do("node %s" % name, kube_agent_conditions.remove, cluster, name, check_mode)
        left = [name for name in left if name in pods and name not in down]
        if left and is_late:
            for name in left:
                each.do("node %s" % name, _fail, pods[name], timeout)
            break
        if left:
            clock.sleep(_INTERVAL)
    each.check()
    return each.results


def _down(nodes: Iterable[Object]) -> set[str]:
    """The names of those that are not Ready."""
    return {node["metadata"]["name"] for node in nodes if not kube_client.node_ready(node)[0]}


def _fail(pod: str, timeout: float) -> None:
    raise NpuError("the pod %s did not end within %d s. See kubectl describe pod, then run again" % (pod, timeout))


def _agents(cluster: AnyCluster, namespace: str) -> dict[str | None, str]:
    """The names of the agents' pods by node."""
    return {
        (pod.get("spec") or {}).get("nodeName"): pod["metadata"]["name"]
        for pod in cluster.each("/api/v1/namespaces/%s/pods" % namespace)
        if component_names.daemonset_of(pod["metadata"], namespace) == component_names.AGENT
    }
