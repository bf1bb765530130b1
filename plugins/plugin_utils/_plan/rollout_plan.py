# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a rollout: what is done with which node, whether it may begin, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.window import WindowState
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.component_order import ComponentPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.max_parallel import MaxParallel
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import (
    AWAITING,
    BLOCKED,
    DUE,
    FAILED,
    IN_FLIGHT,
    ON_TRIAL,
    READY,
    SKIPPED,
    UNREACHABLE,
    UP_TO_DATE,
    VERDICTS,
)


class RolloutPlan:
    """The whole of it. ``entries``: in the order of the inventory; ``cluster_reasons``: what stops every node."""

    def __init__(
        self,
        entries: Sequence[PlannedNode],
        cluster_reasons: list[str],
        cluster_notes: list[str],
        halted: dict[str, Any] | None,
        estimate: int | None,
        settings: RolloutSettings,
        max_parallel: MaxParallel,
        capacity: dict[str, dict[str, int]],
        components: ComponentPlan | None = None,
        window: WindowState | None = None,
    ) -> None:
        self.entries, self.cluster_reasons, self.cluster_notes = entries, cluster_reasons, cluster_notes
        self.halted, self.estimate, self.settings, self.capacity = halted, estimate, settings, capacity
        self.window = window  # None: it is always open
        self.max_parallel, self.components = max_parallel, components or ComponentPlan()

    def of(self, *verdicts: str) -> list[PlannedNode]:
        return [entry for entry in self.entries if entry.verdict in verdicts]

    @property
    def ordered(self) -> list[PlannedNode]:
        """Those that something is done with, the first one first."""
        return sorted((entry for entry in self.entries if entry.order is not None), key=lambda entry: entry.order or 0)

    @property
    def held(self) -> bool:
        """Whether a halt keeps this run from beginning with a node. What is in maintenance already, it finishes."""
        return maintenance_halt.holds(self.halted, self.settings.reason, self.settings.clear_halt)

    @property
    def closed(self) -> bool:
        """Whether the window keeps this run from beginning with a node. What is in maintenance already, it finishes."""
        return self.window is not None and not self.window.open

    @property
    def deferred(self) -> list[PlannedNode]:
        return [entry for entry in self.entries if entry.deferrable and not self.settings.canary]

    @property
    def green(self) -> bool:
        return not self.cluster_reasons and not self.of(BLOCKED, UNREACHABLE)

    def result(self) -> dict[str, Any]:
        ordered = [entry.name for entry in self.ordered]
        return {
            "reason": self.settings.reason,
            "green": self.green,
            "summary": self.summary,
            "cluster_reasons": self.cluster_reasons,
            "cluster_notes": self.cluster_notes,
            "halted": self.halted,
            "counts": {verdict: len(self.of(verdict)) for verdict in VERDICTS},
            "order": ordered,
            "in_flight": [entry.node_name for entry in self.of(IN_FLIGHT, ON_TRIAL)],
            "deferred": [entry.name for entry in self.deferred],
            "max_parallel": self.max_parallel.number,
            "pace": pace(self.max_parallel.number),
            "window": self.window and self.window.result(),
            "park": self.park,
            "estimate_seconds": self.estimate,
            "capacity": self.capacity,
            "components": self.components.result(),
            "hosts": {entry.name: entry.result() for entry in self.entries},
        }

    @property
    def due_nodes(self) -> list[str]:
        """Names of the Nodes that get the label upgrade-required: also those that are deferred."""
        return [entry.node_name for entry in self._due]

    @property
    def due_versions(self) -> dict[str, str]:
        """The version of the driver that each of these is due for."""
        return {entry.node_name: entry.target["version"] for entry in self._due if entry.target}

    @property
    def _due(self) -> list[PlannedNode]:
        return [entry for entry in self.entries if entry.verdict in (READY, AWAITING) or entry.deferrable]

    @property
    def settled_nodes(self) -> list[str]:
        """Names of the Nodes that are not due, whatever an earlier run thought."""
        return [entry.node_name for entry in self.of(UP_TO_DATE, SKIPPED) if entry.node is not None]

    @property
    def park(self) -> list[str]:
        """The resources whose workloads are to be parked: those of the nodes that begin without waiting for people."""
        barred = self.held or self.closed
        verdicts = (IN_FLIGHT,) if barred else (IN_FLIGHT, READY)
        begin = [entry for entry in self.of(*verdicts) if not entry.later] if self.settings.park else []
        begin += self.deferred if self.settings.park and self.settings.auto and not barred else []
        return node_offers.resources(entry.facts for entry in begin)

    @property
    def summary(self) -> str:
        """One sentence. A host that is to have no chip does not count."""
        due, stuck = self.of(*DUE), self.of(BLOCKED, UNREACHABLE)
        total = sum(bool(entry.checked.has_chips or entry.checked.missing_chips or not entry.facts) for entry in self.entries)
        nodes = "%d node%s" % (total, "" if total == 1 else "s")
        if due:
            text = "%d of %s %s due" % (len(due), nodes, "is" if len(due) == 1 else "are")
        else:
            text = ("Nothing can be done on %s now" if stuck else "Nothing is due on %s") % nodes
        if self.components.order:
            text += ", components change %s the drivers" % self.components.order if due else "; components change"
        later = sum(entry.later for entry in due)
        if later:
            text += ", %d of them later: this run takes only the first of each pool" % later
        words = (
            (IN_FLIGHT, "in maintenance already"),
            (ON_TRIAL, "on an unconfirmed trial"),
            (AWAITING, "awaiting approval"),
            (BLOCKED, "blocked"),
            (UNREACHABLE, "unreachable"),
            (FAILED, "failed before"),
        )
        parts = ["%d %s" % (len(self.of(verdict)), word) for verdict, word in words if self.of(verdict)]
        text = ", ".join([text] + parts)
        if due and self.max_parallel.told:
            text += ", " + self.max_parallel.told
        if due and self.closed:
            text += ", none begins before the maintenance window opens"
        if due and self.estimate is not None:
            text += "; about %s" % duration(self.estimate)
        elif due:
            text += "; duration unknown before the first one is done"
        return text + "."

    @property
    def problem(self) -> str | None:
        """Why the plan is not green, as readable text; None when it is."""
        if self.green:
            return None
        lines = ["Nothing was changed: the plan is not green. %s" % self.summary]
        lines += ["  cluster: %s" % reason for reason in self.cluster_reasons]
        lines += ["  " + line for line in plan_lines.shared((entry.name, entry.why) for entry in self.of(BLOCKED, UNREACHABLE))]
        if self.of(UNREACHABLE):
            lines.append("To continue without a host, exclude it: %s." % this_run.limit_without("<host>"))
        if any(entry.deferrable for entry in self.entries) and not self.cluster_reasons:
            lines.append("To start with the others and try the blocked ones last: -e npu_upgrade_on_blocked=defer.")
        return "\n".join(lines)
