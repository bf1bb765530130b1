# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The virtual NPUs that a host gets with an upgrade, in the same drain: those of npu_vnpu."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import wanted_vnpus
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record


def look(entry: PlannedNode, settings: RolloutSettings) -> None:
    """Set which virtual NPUs the host is to have. A rollback does not change them."""
    given = entry.checked.config["vnpu"]
    if given is None or settings.reason != maintenance_record.UPGRADE_REASON or not entry.facts.get("family"):
        return
    try:
        wanted = wanted_vnpus.Wanted(given, entry.facts)
    except NpuError as exc:
        entry.vnpu_problem = "npu_vnpu: " + exc.message
        return
    if wanted.problem:
        entry.vnpu_problem = "npu_vnpu: " + wanted.problem
    else:
        entry.vnpus = wanted


def check(entry: PlannedNode) -> None:
    """Adds a reason or a note to a node that is due."""
    if entry.vnpu_problem:
        entry.reasons.append(entry.vnpu_problem)
    elif entry.vnpus and entry.vnpus.changed:
        entry.notes.append("its virtual NPUs change in the same drain: %s" % entry.vnpus.way)


def excluded(entries: Iterable[PlannedNode], device_plugin: Mapping[str, Any]) -> list[str]:
    """Why the device plugin cannot have these settings, {share_count, hot_reset}: it changes with this run, on all nodes."""
    told: dict[str, list[str]] = {}
    for entry in entries:
        for reason in wanted_vnpus.excluded(entry.vnpus, entry.facts, device_plugin["share_count"], device_plugin["hot_reset"]):
            told.setdefault(reason, []).append(entry.name)
    return ["%s: %s" % (plan_lines.some(names), reason) for reason, names in told.items()]


def tell(entry: PlannedNode) -> None:
    """Adds a note to a node that is not due."""
    different = wanted_vnpus.difference(entry.checked.config["vnpu"], entry.facts)
    entry.notes += [different] if different else []
