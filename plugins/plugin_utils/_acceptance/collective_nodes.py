# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes take part in a collective, and with which others they may be paired."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import BAD, UNKNOWN, finding
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import (
    collective,
    node_use,
    offered_npus,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AcceptanceFinding
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.waiting_acceptances import WaitingAcceptance
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use

NAME, LEVEL = "collective", 2

Findings = dict[str, AcceptanceFinding]  # by node
Load = Callable[[str], Object]


@dataclass
class Group:
    """Nodes of one kind: they run the same ``manifest``, with the same resources."""

    manifest: Object
    timeouts: dict[str, int] = field(default_factory=dict)  # by node
    dra_drivers: dict[str, list[str]] = field(default_factory=dict)  # by node


def of(cluster: AnyCluster, acceptances: Iterable[WaitingAcceptance], load: Load = collective.load) -> tuple[list[Group], Findings]:
    """(the groups, the findings of those that are in none). A node that has not joined the cluster is in neither.

    Raises NpuError if the API server does not respond.
    """
    groups: dict[tuple[str, ...], Group] = {}
    findings: Findings = {}
    for acceptance in acceptances:
        name, path = acceptance["document"]["node"], acceptance["request"]["pod"]
        node = cluster.get("/api/v1/nodes/" + name)
        # The verdict on another host is not written to the Node, either, which says so.
        if node is None or kube_client.boot_id(node) != acceptance["boot_id"]:
            continue
        if acceptance["document"]["verdict"] in BAD:
            continue
        try:
            manifest = load(path)
        except NpuError as exc:
            findings[name] = unknown(exc.message)
            continue
        asked = npu_use.requests(manifest["spec"])
        lacking = offered_npus.lacking(node, asked)
        blocked = node_use.reason(cluster, name, acceptance["request"]["dra_drivers"])
        if lacking:
            seen = "not run, because the node does not offer what the pod asks for: %s" % lacking
            findings[name] = unknown(seen, offered_npus.ADVICE)
        elif blocked:
            findings[name] = unknown(blocked)
        else:
            group = groups.setdefault((path, *sorted(asked or _offered(node))), Group(manifest))
            group.timeouts[name] = acceptance["request"]["timeout"]
            group.dra_drivers[name] = acceptance["request"]["dra_drivers"]
    return list(groups.values()), findings


def unknown(seen: str, advice: str | None = None) -> AcceptanceFinding:
    """The finding of a node of which nothing is known."""
    return finding(NAME, LEVEL, UNKNOWN, one_line(seen), advice)


def _offered(node: Object) -> list[str]:
    """The NPUs that the node offers: what tells kinds of nodes apart for a pod that asks for none of them."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    return [name for name in offered if npu_resources.is_npu(name) and kube_client.allocatable(node, name)]
