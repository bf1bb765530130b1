# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The condition of a Node in which its agent says whether the driver works, and which says the same when the agent has gone."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

_NODES = "/api/v1/nodes/"


def of(node: Object) -> Object | None:
    """The condition, if the Node has it."""
    for one in (node.get("status") or {}).get("conditions") or []:
        if one.get("type") == kube_client.CONDITION_DRIVER_READY:
            return one
    return None


def taken_back(node: Object, when: str) -> list[Object]:
    """What a maintenance that has paused the agent makes of a condition that is True: one condition in a list, or none."""
    found = of(node)
    if found is None or found.get("status") != "True":
        return []
    told = {
        "type": kube_client.CONDITION_DRIVER_READY,
        "status": "False",
        "reason": "DriverInMaintenance",
        "message": "A maintenance of this node has paused the node agent, which tells the state of the driver when it is back",
        "lastTransitionTime": when,
        "lastHeartbeatTime": when,
    }
    return [told]


def remove(cluster: AnyCluster, name: str, check_mode: bool = False) -> str | None:
    """Remove it from the Node, whose agent has to be gone; a phrase of what was (or would be) done, or None. Raises NpuError."""
    node = cluster.get(_NODES + name)
    if node is None or of(node) is None:
        return None
    if not check_mode:
        # By its type alone, whatever else changes in the status meanwhile.
        condition = {"type": kube_client.CONDITION_DRIVER_READY, "$patch": "delete"}
        try:
            cluster.request(
                "patch",
                _NODES + name + "/status",
                body={"status": {"conditions": [condition]}},
                content_type="application/strategic-merge-patch+json",
            )
        except kube_client.NotFound:
            return None
    return "remove the condition %s from node %s" % (kube_client.CONDITION_DRIVER_READY, name)
