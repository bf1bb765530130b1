# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods use the NPUs of which nodes: by resource, by CDI name, or by a ResourceClaim."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use

# By the name of the node, phrases that name a pod.
ByNode = dict[str | None, list[str]]


def by_node(
    pods: Iterable[Object], by_claim: Collection[str] = (), unknown: Mapping[str, str] | None = None
) -> tuple[ByNode, ByNode]:
    """(those that use NPUs, those that may). ``by_claim``: namespace/name of those that hold NPUs by a ResourceClaim; ``unknown``:
    of those that may, and why that is unknown."""
    users: ByNode = {}
    maybe: ByNode = {}
    for pod in pods:
        name = "%s/%s" % (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if npu_use.uses_npus(pod) or name in by_claim:
            users.setdefault((pod.get("spec") or {}).get("nodeName"), []).append(name)
        elif unknown and name in unknown:
            maybe.setdefault((pod.get("spec") or {}).get("nodeName"), []).append("%s (%s)" % (name, unknown[name]))
    return users, maybe


def on_nodes(cluster: AnyCluster, names: Iterable[str], dra_drivers: Collection[str]) -> dict[str, list[str]]:
    """Those on the nodes ``names``, by node; who may use NPUs counts. One request for each node, two with claims."""
    found = {}
    for name in names:
        pods = cluster.list("/api/v1/pods", field_selector="spec.nodeName=" + name)
        users, maybe = by_node(pods, *pod_claims.npu_users(cluster, pods, dra_drivers))
        told = users.get(name, []) + maybe.get(name, [])
        if told:
            found[name] = told
    return found
