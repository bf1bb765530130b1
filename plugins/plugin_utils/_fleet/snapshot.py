# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster at one moment, as small as a plan can do with: thousands of nodes and tens of thousands of pods.

The number of requests grows with the pages of the lists, not with nodes or pods.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import re
import socket

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import budgets as drain_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import pod as drain_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.slots import LEASE

_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
_SERVICE = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(\.|\Z)")


class FleetSnapshot:
    """``nodes``: Node objects by name; ``pods``: lists of _drain.pod.Pod by node name; ``budgets``; ``registry_nodes``: names
    of the nodes that a registry runs on, each with what tells so."""

    def __init__(self, nodes, pods, budgets, registry_nodes=None):
        self.nodes, self.pods, self.budgets = nodes, pods, budgets
        self.registry_nodes = registry_nodes or {}

    @classmethod
    def read(cls, cluster, registries=(), namespace=drain_pod.NAMESPACE):
        """``registries``: host names (with port) of the registries that driver images come from; ``namespace``: ours."""
        with _without_collector():
            return cls._read(cluster, registries, namespace)

    def without(self, goes):
        """The same without the pods for which ``goes(pod)``."""
        pods = {node: [pod for pod in some if not goes(pod)] for node, some in self.pods.items()}
        return FleetSnapshot(self.nodes, pods, self.budgets, self.registry_nodes)

    @classmethod
    def _read(cls, cluster, registries, namespace):
        nodes = {}
        for node in cluster.each("/api/v1/nodes"):
            nodes[node["metadata"]["name"]] = _slim(node)
        registry = _Registry(cluster, nodes, registries)
        pods = collections.defaultdict(list)
        for item in cluster.each("/api/v1/pods", field_selector=_RUNNING):
            pod = drain_pod.Pod(item, namespace)
            if pod.node:
                pods[pod.node].append(pod)
                registry.look(pod, item)
        return cls(nodes, dict(pods), drain_budgets.Budgets.read(cluster), registry.nodes)


@contextlib.contextmanager
def _without_collector():
    """Decoded pages have no cycles; looking for some after every few hundred objects costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _slim(node):
    """The Node without what fills it: images, and who manages which field but approval and cordon."""
    node.get("status", {}).pop("images", None)
    managed = (_slim_entry(entry) for entry in node["metadata"].get("managedFields") or [])
    node["metadata"]["managedFields"] = [entry for entry in managed if entry]
    return node


def _slim_entry(entry):
    """The entry of managedFields with approval and cordon only, None without them."""
    owned, kept = entry.get("fieldsV1", {}), {}
    key = "f:" + maintenance_record.ANNOTATION_APPROVE
    if key in owned.get("f:metadata", {}).get("f:annotations", {}):
        kept["f:metadata"] = {"f:annotations": {key: {}}}
    if "f:unschedulable" in owned.get("f:spec", {}):
        kept["f:spec"] = {"f:unschedulable": {}}
    return dict(entry, fieldsV1=kept) if kept else None


class _Registry:
    """Whether the registry runs in the cluster that it serves, and where: its node goes last."""

    def __init__(self, cluster, nodes, registries):
        self.nodes = {}
        self._addresses, self._selectors = set(), []
        if not registries:
            return
        names, ports = set(), set()
        for registry in registries:
            name, _colon, port = registry.rpartition(":") if ":" in registry else (registry, "", "443")
            names.add(name)
            ports.add(int(port) if port.isdigit() else 443)
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

    def look(self, pod, item):
        if not self._addresses:
            return
        served = any(
            pod.namespace == namespace and kube_selectors.matches_object({"matchLabels": selector}, pod.labels)
            for namespace, selector in self._selectors
        )
        if served or (item.get("status") or {}).get("podIP") in self._addresses - {None} and not item["spec"].get("hostNetwork"):
            self.nodes[pod.node] = "the registry's pod %s" % pod.label


def _resolved(name):
    try:
        return {entry[4][0] for entry in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return set()


def _serves(service, addresses, names, ports, node_addresses):
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


# --- room for what is evicted ---


class Room:
    """Where pods that ask for NPUs could go, by their requests alone."""

    def __init__(self, snapshot):
        self._free = {}  # resource -> node -> free
        self.totals = {}  # resource -> {allocatable, requested, free}, on nodes that take pods
        for name, node in snapshot.nodes.items():
            if maintenance_record.unschedulable(node) or not kube_client.node_ready(node)[0]:
                continue
            if kube_client.ANNOTATION_WEDGED in kube_client.annotations(node):
                continue
            for resource, count in (node.get("status", {}).get("allocatable") or {}).items():
                if resource.startswith(drain_pod.RESOURCE_PREFIX) and str(count).isdigit() and int(count):
                    used = sum(pod.requests.get(resource, 0) for pod in snapshot.pods.get(name, ()))
                    self._free.setdefault(resource, {})[name] = int(count) - used
                    total = self.totals.setdefault(resource, {"allocatable": 0, "requested": 0, "free": 0})
                    for key, value in (("allocatable", int(count)), ("requested", used), ("free", int(count) - used)):
                        total[key] += value
        # How many nodes have that much free: a plan asks for every node of the fleet.
        self._counts = {resource: collections.Counter(free.values()) for resource, free in self._free.items()}

    def homeless(self, node, pods):
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


def check_readable(cluster, namespace):
    """Raise NpuError, all at once, when what a plan reads may not be read."""
    needed = [
        ("list", "nodes", "", None),
        ("list", "pods", "", None),
        ("list", "services", "", None),
        ("list", "poddisruptionbudgets", "policy", None),
        ("get", "leases", "coordination.k8s.io", namespace, LEASE),
    ]
    missing = [permission for permission in needed if not cluster.may(*permission)]
    if missing:
        told = "; ".join("the Kubernetes user may not %s" % kube_client.describe_permission(*entry) for entry in missing)
        raise NpuError("No plan can be made: %s." % told)
