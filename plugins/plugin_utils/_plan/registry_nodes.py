# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which nodes the registry of the driver images runs, where it runs in the cluster that it serves: those go last."""

from __future__ import annotations

import re
import socket
import urllib.parse
from collections.abc import Collection, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import Pod

_SERVICE = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(\.|\Z)")


class RegistryNodes:
    """``nodes``: {name: what tells so}."""

    def __init__(self, cluster: AnyCluster, nodes: Mapping[str, Object], registries: Sequence[str]) -> None:
        self.nodes: dict[str, str] = {}
        self._addresses: set[str] = set()
        self._selectors: list[tuple[str, Labels]] = []
        if not registries:
            return
        names: set[str] = set()
        ports: set[int] = set()
        for registry in registries:
            name, port = _name_and_port(registry)
            names.add(name)
            ports.add(port)
            self._addresses |= {name} | _resolved(name)
        ours = {
            address["address"]: name for name, node in nodes.items() for address in node.get("status", {}).get("addresses") or []
        }
        services = list(cluster.each("/api/v1/services"))
        found = [item for item in services if _serves(item, self._addresses, names, ports, ours)]
        self._selectors = [
            (item["metadata"]["namespace"], item["spec"]["selector"]) for item in found if item["spec"].get("selector")
        ]
        if not found:
            for address in self._addresses & set(ours):
                self.nodes[ours[address]] = "the registry at %s" % address

    def look(self, pod: Pod, item: Object) -> None:
        """Take the Pod object ``item`` into account."""
        if not self._addresses or pod.node is None:
            return
        served = any(
            pod.namespace == namespace and kube_selectors.matches_object({"matchLabels": selector}, pod.labels)
            for namespace, selector in self._selectors
        )
        if served or (item.get("status") or {}).get("podIP") in self._addresses - {None} and not item["spec"].get("hostNetwork"):
            self.nodes[pod.node] = "the registry's pod %s" % pod.label


def _name_and_port(registry: str) -> tuple[str, int]:
    """Of an IPv6 address, without its brackets, as a Node has it."""
    name = registry
    try:
        parts = urllib.parse.urlsplit("//" + registry)
        name = parts.hostname or registry
        return name, parts.port or 443
    except ValueError:
        return name, 443


def _resolved(name: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()


def _serves(
    service: Object, addresses: set[str], names: set[str], ports: Collection[int], node_addresses: Mapping[str, str]
) -> bool:
    """Whether requests to the registry arrive at the Service."""
    spec, metadata = service["spec"], service["metadata"]
    own = set(spec.get("clusterIPs") or [spec.get("clusterIP")]) | set(spec.get("externalIPs") or [])
    for entry in (service.get("status") or {}).get("loadBalancer", {}).get("ingress") or []:
        own |= {entry.get("ip"), entry.get("hostname")}
    if (own - {None, "None"}) & addresses:
        return True
    for name in names:
        match = _SERVICE.match(name)
        if match and match.group(1, 2) == (metadata["name"], metadata["namespace"]):
            return True
    on_nodes = bool(addresses & set(node_addresses))
    return on_nodes and any(port.get("nodePort") in ports for port in spec.get("ports") or [])
