# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many chips remain allocatable while nodes are in maintenance: npu_upgrade_min_available."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

_SETTING = "npu_upgrade_min_available"


class MinAvailable:
    """``wanted``: {resource: how many of it}, of nodes with the label that install gives to those with chips."""

    def __init__(self, wanted: Mapping[str, object] | None = None) -> None:
        """Raises NpuError."""
        self._wanted = {resource: _number(resource, count) for resource, count in (wanted or {}).items()}

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def nodes(self, cluster: AnyCluster) -> dict[str, Object]:
        """The Nodes that count. {} without the setting."""
        found = cluster.list("/api/v1/nodes", label_selector=kube_client.LABEL_PRESENT) if self else []
        return {node["metadata"]["name"]: node for node in found}

    def shortage(self, nodes: Mapping[str, Object], name: str, away: Collection[str]) -> str | None:
        """Why the maintenance of the node ``name`` may not begin while those of ``away`` are in maintenance, as a clause, or None.

        A node that serves no pods, or offers none of a resource, takes nothing of it away.
        """
        node = nodes.get(name)
        if node is None or not maintenance_record.serves_pods(node):
            return None
        others = [
            other for key, other in nodes.items() if key != name and key not in away and maintenance_record.serves_pods(other)
        ]
        for resource, wanted in self._wanted.items():
            left = _allocatable(others, resource)
            if left < wanted and kube_client.allocatable(node, resource) > 0:
                told = "without it, %d %s would be allocatable, and %s asks for %d"
                return told % (left, resource, _SETTING, wanted)
        return None

    def impossible(self, nodes: Mapping[str, Object], due: Iterable[str]) -> list[str]:
        """What is wrong with the setting for the nodes that are ``due``, as sentences, even if each node of ``nodes`` served."""
        found = []
        offers = {resource: _allocatable(nodes.values(), resource) for resource in self._wanted}
        ones = [nodes[name] for name in due if name in nodes]
        for resource, wanted in self._wanted.items():
            if not offers[resource]:
                found.append("%s names %s, which no NPU node of the cluster offers. Correct it" % (_SETTING, resource))
                continue
            own = [count for count in (kube_client.allocatable(node, resource) for node in ones) if count > 0]
            if own and offers[resource] - min(own) < wanted:
                told = "%s asks for %d %s, and all nodes together offer %d, so the maintenance of no node could begin. Lower it"
                found.append(told % (_SETTING, wanted, resource, offers[resource]))
        return found

    def at_once(self, nodes: Mapping[str, Object], due: Iterable[str], maximum: int) -> int:
        """How many of the nodes that are ``due`` can be in maintenance at once, of ``maximum`` (0 = unlimited)."""
        ones = [nodes[name] for name in due if name in nodes]
        for resource, wanted in self._wanted.items():
            own = max((kube_client.allocatable(node, resource) for node in ones), default=0)
            if own:
                room = max(1, (_allocatable(filter(maintenance_record.serves_pods, nodes.values()), resource) - wanted) // own)
                maximum = min(room, maximum) if maximum else room
        return maximum

    def told(self) -> list[str]:
        """What people should know of it, as clauses."""
        return ["at least %d %s remain allocatable (%s)" % (count, resource, _SETTING) for resource, count in self._wanted.items()]


def _allocatable(nodes: Iterable[Object], resource: str) -> int:
    return sum(kube_client.allocatable(node, resource) for node in nodes)


def _number(resource: object, count: object) -> int:
    try:
        number = int(str(count))
    except ValueError:
        number = -1
    if not isinstance(resource, str) or not resource.strip() or number < 0 or isinstance(count, (bool, float)):
        raise NpuError(
            "%s is not valid: %r: %r. It is a mapping of names of resources to whole numbers, such as huawei.com/Ascend910: 64"
            % (_SETTING, resource, count)
        )
    return number
