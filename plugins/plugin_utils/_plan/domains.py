# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The domains of npu_upgrade_domain in a plan. That few of their nodes are in maintenance at once, the slots see to."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode


class Domains(NamedTuple):
    """``label``: whose values name the domains, "" without any; ``most``: nodes of a domain in maintenance at once; ``together``:
    instead of that, one domain after the other."""

    label: str = ""
    most: int = 1
    together: bool = False

    def of(self, entry: PlannedNode) -> str | None:
        """The domain of a node, None if it belongs to none."""
        return entry.labels.get(self.label) if self.label else None

    def judge(self, entries: Sequence[PlannedNode]) -> tuple[list[str], list[str]]:
        """(what is wrong with the label, what people should know), as sentences."""
        due = [entry for entry in entries if entry.due]
        without = [entry.node_name for entry in due if self.of(entry) is None]
        if not self.label or not due:
            return [], []
        if len(without) == len(due):
            told = "npu_upgrade_domain.label is %s, and no node that is due has this label. Correct or remove npu_upgrade_domain"
            return [told % self.label], []
        if self.together:
            notes = ["the nodes with the same value of the label %s go together" % self.label]
        else:
            nodes = "node" if self.most == 1 else "nodes"
            notes = ["at most %d %s with the same value of the label %s at once" % (self.most, nodes, self.label)]
        if without:
            notes.append("without the label %s, and so without this limit: %s" % (self.label, plan_lines.some(without)))
        return [], notes

    def at_once(self, entries: Sequence[PlannedNode], maximum: int) -> int:
        """How many of the due nodes can be in maintenance at once, of ``maximum`` slots (0 = unlimited)."""
        if not self.label:
            return maximum
        counts = collections.Counter(self.of(entry) for entry in entries if entry.due)
        room = counts.pop(None, 0)
        if self.together:
            # Those of the largest one; of smaller ones, fewer.
            room += max(counts.values(), default=0)
        else:
            room += sum(min(count, self.most) for count in counts.values())
        return max(1, min(room, maximum) if maximum else room)
