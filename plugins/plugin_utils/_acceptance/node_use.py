# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node may be loaded with a diagnosis: no pod may use its chips, or come to use them meanwhile."""

from __future__ import annotations

from collections.abc import Collection

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_users_by_node

_MOST_PODS = 4


def reason(cluster: AnyCluster, node: str, dra_drivers: Collection[str]) -> str | None:
    """Why the node must not be loaded, as a clause with what to do; None if it may be, as one that has not joined the cluster.

    Raises NpuError if the cluster does not tell.
    """
    try:
        found = cluster.request("get", "/api/v1/nodes/" + node)
    except kube_client.NotFound:
        return None
    if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(found):
        return "not run, because the node is in maintenance. Run accept again when that has ended"
    if not (found.get("spec") or {}).get("unschedulable") and acceptance_gate.level(found) is None:
        return (
            "not run, because pods can be scheduled onto the node. Run kubectl drain %s --ignore-daemonsets, then run accept "
            "again, and kubectl uncordon %s when it has passed" % (node, node)
        )
    users = npu_users_by_node.on_nodes(cluster, [node], dra_drivers).get(node)
    if users:
        return "not run, because pods on the node use NPUs: %s. Run kubectl drain %s --ignore-daemonsets" % (
            and_more(users, _MOST_PODS),
            node,
        )
    return None
