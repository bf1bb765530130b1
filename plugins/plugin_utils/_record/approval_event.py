# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Event that asks a person for the reboot of a node."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_events
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_events import EVENTS

# Contract.
EVENT_REASON = "RebootRequired"


def ask(cluster: AnyCluster, node: Object, reason: str, text: str, now: str) -> None:
    """Create or refresh the Event that asks a person for a reboot. ``reason``: upgrade, rollback or recovery."""
    name = node_events.name_of(node, reason, reason, text)
    event = node_events.body(node, name, node_events.NORMAL, EVENT_REASON, "reason=%s %s" % (reason, text), now)
    existing = cluster.get("%s/%s" % (EVENTS, name))
    if existing is None:
        try:
            cluster.request("post", EVENTS, body=event)
            return
        except kube_client.Conflict:
            existing = event
    count = existing.get("count", 1) + 1
    cluster.merge_patch("%s/%s" % (EVENTS, name), {"count": count, "lastTimestamp": now})
