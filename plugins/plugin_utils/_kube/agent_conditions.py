# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of a Node in which its agent says whether driver, chips and network ports work. They stay when it has gone."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

_NODES = "/api/v1/nodes/"

DRIVER_READY, CHIPS_HEALTHY, NETWORK_READY = ("npuops.ascend/" + name for name in ("DriverReady", "ChipsHealthy", "NetworkReady"))
TYPES = (DRIVER_READY, CHIPS_HEALTHY, NETWORK_READY)

# type: (the status that the agent gives it in a maintenance, what it may have been before)
_IN_MAINTENANCE = {
    # What the agent said of a driver that does not work tells more.
    DRIVER_READY: ("False", ("True",)),
    # Of chips and their ports, nothing is known until they are listed again.
    CHIPS_HEALTHY: ("Unknown", ("True", "False")),
    NETWORK_READY: ("Unknown", ("True", "False")),
}


def of(node: Object) -> list[Object]:
    """Those that the Node has."""
    return [one for one in (node.get("status") or {}).get("conditions") or [] if one.get("type") in TYPES]


def taken_back(node: Object, when: str) -> list[Object]:
    """What a maintenance that has paused the agent makes of its conditions, which are no longer kept up to date."""
    return [
        {
            "type": found["type"],
            "status": status,
            "reason": "DriverInMaintenance",
            "message": "A maintenance of this node has paused the node agent, which tells the state of the driver when it is back",
            "lastTransitionTime": when,
            "lastHeartbeatTime": when,
        }
        for found in of(node)
        for status, before in [_IN_MAINTENANCE[found["type"]]]
        if found.get("status") in before
    ]


def remove(cluster: AnyCluster, name: str, check_mode: bool = False) -> str | None:
    """Remove them from the Node, whose agent has to be gone; a phrase of what was (or would be) done, or None. Raises NpuError."""
    node = cluster.get(_NODES + name)
    there = [one["type"] for one in of(node)] if node is not None else []
    if not there:
        return None
    if not check_mode:
        # By their types alone, whatever else changes in the status meanwhile.
        conditions = [{"type": kind, "$patch": "delete"} for kind in there]
        try:
            cluster.request(
                "patch",
                _NODES + name + "/status",
                body={"status": {"conditions": conditions}},
                content_type="application/strategic-merge-patch+json",
            )
        except kube_client.NotFound:
            return None
    return "remove the condition%s %s from node %s" % ("s" if len(there) > 1 else "", _listed(there), name)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
