# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a rollout takes, by what the last maintenance of each node took."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record


def total(entries: Sequence[PlannedNode], max_parallel: int, node_soak: int = 0) -> int | None:
    """Seconds until the last one is done, or None without any past. Sets each entry's own estimate. ``node_soak``: seconds that a
    node serves before another one begins."""
    taken = {entry.name: _took(entry) for entry in entries}
    known = [seconds for seconds in taken.values() if seconds is not None]
    due = sorted((entry for entry in entries if entry.order is not None), key=lambda entry: entry.order or 0)
    if not due or not known:
        return None
    typical = statistics.median(known)
    slots = [0.0] * (min(max_parallel, len(due)) if max_parallel else len(due))
    for entry in due:
        seconds = taken[entry.name]
        entry.estimate = int(typical if seconds is None else seconds)
        heapq.heappush(slots, heapq.heappop(slots) + entry.estimate + node_soak)
    # Nothing waits for the last one.
    return int(max(slots)) - node_soak


def _took(entry: PlannedNode) -> float | None:
    """Seconds the node's last maintenance took, or None."""
    last = maintenance_record.last(entry.node) if entry.node is not None else {}
    begun, over = maintenance_record.seconds_of(last.get("started")), maintenance_record.seconds_of(last.get("ended"))
    if last.get("outcome") != "success" or begun is None or over is None or over < begun:
        return None
    return over - begun
