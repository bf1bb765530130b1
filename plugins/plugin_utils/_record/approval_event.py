# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Event that asks a person for the reboot of a node."""

from __future__ import annotations

import hashlib

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

# Contract.
EVENT_REASON = "RebootRequired"
# The API server accepts Events about objects without a namespace only here.
EVENTS = "/api/v1/namespaces/default/events"


def ask(cluster: AnyCluster, node: Object, reason: str, text: str, now: str) -> None:
    """Create or refresh the Event that asks a person for a reboot. ``reason``: upgrade, rollback or recovery."""
    metadata = node["metadata"]
    key = hashlib.sha256(("%s %s %s" % (metadata.get("uid"), reason, text)).encode()).hexdigest()[:12]
    name = "%s.npu-%s.%s" % (metadata["name"][:200], reason, key)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        },
        "reason": EVENT_REASON,
        "message": "reason=%s %s" % (reason, text),
        "type": "Normal",
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "npuops-maintenance", "host": metadata["name"]},
        "reportingComponent": "npuops-maintenance",
        "reportingInstance": metadata["name"],
    }
    existing = cluster.get("%s/%s" % (EVENTS, name))
    if existing is None:
        try:
            cluster.request("post", EVENTS, body=event)
            return
        except kube_client.Conflict:
            existing = event
    count = existing.get("count", 1) + 1
    cluster.merge_patch("%s/%s" % (EVENTS, name), {"count": count, "lastTimestamp": now})
