# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order the nodes go, and which of each pool goes first."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.domains import Domains
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import (
    AWAITING,
    FAILED,
    IN_FLIGHT,
    ON_TRIAL,
    READY,
    UP_TO_DATE,
)


def arrange(entries: Sequence[PlannedNode], canaries_only: bool, domains: Domains) -> None:
    """In flight first, then one node of each pool where none has the driver yet, then the wedged, then the rest; registry nodes and
    those that were deferred before last. Sets ``canary``, and ``order`` (from 1) or ``later``. Canaries alone leave also what is
    blocked by pods or failed before for later: it tells nothing of how they did. Within each of
    these, the domains take turns, as few nodes of one may be in maintenance at once, or come one after the other."""
    due = [entry for entry in entries if entry.due]
    proved = {entry.pool for entry in entries if entry.verdict == UP_TO_DATE}
    seen = proved | {entry.pool for entry in entries if entry.verdict in (IN_FLIGHT, ON_TRIAL)}
    for entry in sorted(due, key=lambda entry: (entry.verdict == AWAITING, entry.evictions["npu"] + entry.evictions["other"])):
        plain = entry.verdict in (READY, AWAITING) and not (entry.wedged or entry.registry or entry.deferred_before)
        if plain and entry.pool not in seen:
            seen.add(entry.pool)
            entry.canary = True
    for entry in due:
        entry.proved = entry.pool in proved
        entry.later = canaries_only and not entry.canary and entry.verdict not in (IN_FLIGHT, ON_TRIAL)
    for entry in entries if canaries_only else ():
        entry.later = entry.later or entry.deferrable or entry.verdict == FAILED

    def rank(entry: PlannedNode) -> int:
        if entry.verdict in (IN_FLIGHT, ON_TRIAL):
            return 0
        if entry.registry:
            return 5
        if entry.deferred_before:
            return 4
        return 1 if entry.canary else 2 if entry.wedged else 3

    counts: collections.Counter[tuple[int, str | None]] = collections.Counter()
    now = sorted((entry for entry in due if not entry.later), key=rank)
    numbers: dict[str | None, int] = {}  # of the domains, as they come first
    for entry in now:
        numbers.setdefault(domains.of(entry), len(numbers))

    def place(entry: PlannedNode) -> tuple[int, int]:
        """Its rank, and in that the number of its domain, or how many of its domain come before it."""
        value = domains.of(entry)
        if domains.together:
            return rank(entry), numbers[value]
        counts[rank(entry), value] += value is not None
        return rank(entry), counts[rank(entry), value]

    # Sorting is stable: beside that, it is the order of the inventory.
    for number, entry in enumerate(sorted(now, key=place), 1):
        entry.order = number
