# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts and groups of an inventory, from the cluster's nodes."""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips.pci import FAMILIES
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import NODE_NAME
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Of what read() returns: a cache of another format is not used.
FORMAT = 1

# Groups (contract: names people write into group_vars and playbooks).
ALL = "npu_nodes"
PRESENT = "npu_present"
WEDGED = "npu_wedged"
NOT_READY = "npu_not_ready"
CHIP, STATE, DRIVER, FIRMWARE, POOL = "npu_chip_", "npu_state_", "npu_driver_", "npu_firmware_", "npu_pool_"
UP_TO_DATE = STATE + "up_to_date"

IP_FAMILIES = {"any": (4, 6), "ipv4": (4,), "ipv6": (6,)}

# Longer annotations are whole objects and records (kubectl's last-applied-configuration), which make no useful groups.
ANNOTATION_LENGTH = 256

_INFO = ("architecture", "containerRuntimeVersion", "kernelVersion", "kubeletVersion", "osImage")
# What ends up on the command line of ssh, and perhaps of a shell (ProxyCommand with %h).
_IP = re.compile(r"[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
_DNS_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?")

_NODE_NAME = re.compile(NODE_NAME)
# Names of Nodes that mean something else to Ansible.
_TAKEN = ("all", "ungrouped", "localhost", "127.0.0.1")


@dataclasses.dataclass(frozen=True)
class InventorySettings:
    """``address_types``: of Node addresses, the best first; ``address_annotation``: one that wins, or None; ``ip_family``: a
    key of IP_FAMILIES; ``pool_label``: the label that tells a node's pool, or None."""

    address_types: tuple[str, ...] = ("InternalIP", "ExternalIP", "Hostname")
    address_annotation: str | None = None
    ip_family: str = "any"
    pool_label: str | None = None


@dataclasses.dataclass(frozen=True)
class InventoryHost:
    """``groups``: children of ALL; ``trouble``: why there is no ansible_host among the ``variables``, or None."""

    name: str
    variables: dict[str, Any]
    groups: tuple[str, ...]
    trouble: str | None = None


# --- the nodes ---


def read(cluster: AnyCluster, label_selector: str | None) -> list[dict[str, Any]]:
    """What an inventory needs of each Node, as plain data for a cache; one page of whole Nodes is in memory at a time."""
    selectors: Selectors = {"label_selector": label_selector} if label_selector else {}
    return [slim(node) for node in cluster.each("/api/v1/nodes", **selectors)]


def slim(node: Object) -> dict[str, Any]:
    annotations, spec = kube_client.annotations(node), node.get("spec") or {}
    info = kube_client.node_info(node)
    return {
        "name": node["metadata"]["name"],
        "labels": kube_client.labels(node),
        "annotations": {name: value for name, value in annotations.items() if len(value) <= ANNOTATION_LENGTH},
        "taints": spec.get("taints") or [],
        "unschedulable": maintenance_record.unschedulable(node),
        "addresses": node.get("status", {}).get("addresses") or [],
        "ready": kube_client.node_ready(node)[0],
        "wedged": kube_client.ANNOTATION_WEDGED in annotations,
        "deleting": "deletionTimestamp" in node["metadata"],
        "info": {name: info[name] for name in _INFO if name in info},
    }


def cache_identity(auth: Mapping[str, Any], label_selector: str | None, environment: Mapping[str, str]) -> str:
    """A digest of which nodes of which API server are asked for, without a request.

    ``auth``: kubernetes.core's options. Credentials are no part of it: it becomes a file name.
    """
    wanted = [FORMAT, label_selector or "", _server(auth, environment)]
    return hashlib.sha256(json.dumps(wanted, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _server(auth: Mapping[str, Any], environment: Mapping[str, str]) -> list[Any]:
    """In the order in which kubernetes.core looks for it."""
    host, given, context = (
        auth.get(name) or environment.get("K8S_AUTH_" + name.upper()) for name in ("host", "kubeconfig", "context")
    )
    if host:
        return ["host", host.rstrip("/")]
    if not given and not context and environment.get("KUBERNETES_SERVICE_HOST"):
        return ["cluster", environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT")]
    if not isinstance(given, dict):
        paths = (given or environment.get("KUBECONFIG") or "~/.kube/config").split(os.pathsep)
        return ["kubeconfig", context, [_servers_of(_kubeconfig(path)) for path in paths]]
    return ["kubeconfig", context, [_servers_of(given)]]


def _kubeconfig(path: str) -> Any:
    """Of one that cannot be read, connect() tells why."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as stream:
            return kube_client.yaml.safe_load(stream)
    except (OSError, ValueError, kube_client.yaml.YAMLError):
        return None


def _servers_of(kubeconfig: Any) -> dict[str, Any] | None:
    if not isinstance(kubeconfig, dict):
        return None
    return {name: kubeconfig.get(name) for name in ("clusters", "contexts", "current-context")}


# --- the hosts ---


def standing_groups() -> list[str]:
    """Names of the groups that are always there, so that a play for one of them never names an unknown group."""
    chips = sorted({CHIP + family.key for family in FAMILIES.values()})
    states = [STATE + _safe(step) for step in maintenance_record.STEPS]
    return [ALL, PRESENT, *chips, UP_TO_DATE, *states, WEDGED, NOT_READY]


def by_name(nodes: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """(the nodes whose name can be that of a host, the names of the others).

    A name gets into patterns, into templates as inventory_hostname, and onto command lines. The API server checks it; what
    answers in its place may not. A node called localhost would get the tasks that are meant for the controller.
    """
    usable, others = [], []
    for node in nodes:
        if _NODE_NAME.fullmatch(node["name"]) and node["name"] not in _TAKEN:
            usable.append(node)
        else:
            others.append(node["name"])
    return usable, others


def hosts(nodes: Iterable[dict[str, Any]], settings: InventorySettings) -> list[InventoryHost]:
    """The InventoryHosts for what read() returned."""
    if settings.ip_family not in IP_FAMILIES:
        raise NpuError("ip_family is %r; choose one of %s." % (settings.ip_family, ", ".join(IP_FAMILIES)))
    return [_host(node, settings) for node in sorted(nodes, key=lambda node: node["name"])]


def _host(node: dict[str, Any], settings: InventorySettings) -> InventoryHost:
    address, trouble = _address(node, settings)
    variables = {
        "node_labels": node["labels"],
        "node_annotations": node["annotations"],
        "node_taints": node["taints"],
        "node_addresses": node["addresses"],
        "node_ready": node["ready"],
        "node_unschedulable": node["unschedulable"],
        "node_deleting": node["deleting"],
        "node_info": node["info"],
    }
    if address:
        variables["ansible_host"] = address
    return InventoryHost(node["name"], variables, tuple(_groups(node, settings)), trouble)


def _groups(node: dict[str, Any], settings: InventorySettings) -> Iterator[str]:
    labels = node["labels"]
    present, state = kube_client.LABEL_PRESENT in labels, labels.get(maintenance_record.LABEL_STATE)
    if present:
        yield PRESENT
    if state:
        yield STATE + _safe(state)
    elif present:
        yield UP_TO_DATE
    if labels.get(kube_client.LABEL_CHIP):
        yield CHIP + _safe(labels[kube_client.LABEL_CHIP]).lower()  # as in the tags of driver images
    if labels.get(kube_client.LABEL_DRIVER_VERSION):
        yield DRIVER + _safe(labels[kube_client.LABEL_DRIVER_VERSION])
    if labels.get(kube_client.LABEL_FIRMWARE_VERSION):
        yield FIRMWARE + _safe(labels[kube_client.LABEL_FIRMWARE_VERSION])
    if settings.pool_label and labels.get(settings.pool_label):
        yield POOL + _safe(labels[settings.pool_label])
    if node["wedged"]:
        yield WEDGED
    if not node["ready"]:
        yield NOT_READY


def _safe(text: str) -> str:
    """As Ansible itself makes group names valid; ours begin with a letter anyway."""
    return re.sub(r"[^A-Za-z0-9_]", "_", text)


def _address(node: dict[str, Any], settings: InventorySettings) -> tuple[str | None, str | None]:
    """(address, None), or (None, why there is none)."""
    told = node["annotations"].get(settings.address_annotation) if settings.address_annotation else None
    if told is not None:
        if _version(told) is None and not _DNS_NAME.fullmatch(told):
            return None, "its annotation %s is not an address: %r" % (settings.address_annotation, told)
        return told, None
    for kind in settings.address_types:
        for entry in node["addresses"]:
            if entry.get("type") == kind and _fits(entry.get("address") or "", settings.ip_family):
                return entry["address"], None
    of_family = "" if settings.ip_family == "any" else " of the family %s" % settings.ip_family
    return None, "it has no address of the types %s%s" % (", ".join(settings.address_types), of_family)


def _fits(text: str, ip_family: str) -> bool:
    """A name fits any family: DNS decides."""
    version = _version(text)
    return version in IP_FAMILIES[ip_family] if version else bool(_DNS_NAME.fullmatch(text))


def _version(text: str) -> int | None:
    """4, 6, or None for what is no IP address."""
    if not _IP.fullmatch(text):
        return None
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return None
