# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the plan of a rollout before the first node is touched: the verdict on each node, then order and time.

Pure decisions on what hosts, cluster and registry said; only dry-run evictions ask anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import (
    component_order,
    node_verdict,
    planned_evictions,
    vnpu_changes,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import estimate as rollout_estimate
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import order as rollout_order
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import rollback as rollout_rollback
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.domains import Domains
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.driver_contents import DriverContents
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.plan_context import PlanContext
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_plan import RolloutPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_settings import Lookups, RolloutSettings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.room import Room
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.snapshot import FleetSnapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import checks as preflight_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_image
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.max_parallel import MaxParallel
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import AWAITING, IN_FLIGHT, ON_TRIAL, READY
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.unknown_variables import unknown_variables


def make(
    hosts: Sequence[AskedHost],
    snapshot: FleetSnapshot,
    slots: dict[str, Any],
    settings: RolloutSettings,
    lookups: Lookups,
    components: Mapping[str, Any] | None = None,
) -> RolloutPlan:
    """The RolloutPlan.

    ``hosts``: as the filter npu_hosts makes them, facts with ``upgrade``; ``snapshot``: _plan.snapshot.FleetSnapshot;
    ``slots``: {max, halted, holders} of the Lease; ``components``: {version_line, changes, left_alone, problem, device_plugin},
    what
    is to become of them; ``device_plugin``: {share_count, hot_reset}.
    """
    answers = (
        driver_image.Answers(lookups.resolve, lookups.package) if settings.reason == maintenance_record.UPGRADE_REASON else None
    )
    explicit = settings.reason == maintenance_record.UPGRADE_REASON
    checked = preflight_checks.inspect(hosts, snapshot.nodes, answers, explicit=explicit)
    cluster_reasons = _unknown_variables(checked)
    entries = [PlannedNode(verdict, snapshot.nodes.get(verdict.node_name)) for verdict in checked]
    held = maintenance_halt.holds(slots["halted"], settings.reason, settings.clear_halt)
    component_plan = component_order.decide(entries, snapshot.version_lines, components or {}, held)
    cluster_reasons += component_plan.reasons
    if component_plan.order == component_order.BEFORE and component_plan.version_line:
        snapshot = snapshot.with_version_lines(snapshot.version_lines.replaced_by(component_plan.version_line))
    wave = rollout_rollback.last_wave(entries) if settings.reason == maintenance_record.ROLLBACK_REASON else None
    context = PlanContext(settings, lookups, snapshot, DriverContents(lookups), slots["holders"], answers, wave)
    for entry in entries:
        node_verdict.judge(entry, context)
    device_plugin = (components or {}).get("device_plugin")
    if device_plugin and settings.reason == maintenance_record.UPGRADE_REASON:
        cluster_reasons += vnpu_changes.excluded(entries, device_plugin)
    room = Room(snapshot)
    planned_evictions.simulate([entry for entry in entries if entry.verdict in (READY, AWAITING)], room, context)
    domains = Domains(settings.domain["label"], settings.domain["max_parallel"], settings.domain["together"])
    rollout_order.arrange(entries, settings.canary, domains)
    reasons, domain_notes = domains.judge(entries)
    cluster_reasons += reasons
    max_parallel = MaxParallel.of(settings.max_parallel, snapshot.nodes.values())
    at_once = domains.at_once(entries, max_parallel.number)
    least, due = settings.min_available, [entry.node_name for entry in entries if entry.due]
    if due and least:
        fleet = {name: node for name, node in snapshot.nodes.items() if kube_client.LABEL_PRESENT in kube_client.labels(node)}
        cluster_reasons += least.impossible(fleet, due)
        domain_notes += least.told()
        at_once = least.at_once(fleet, due, at_once)
    estimate = rollout_estimate.total(entries, at_once, settings.node_soak if explicit else 0)
    notes = _cluster_notes(entries, snapshot, slots, max_parallel.number) + domain_notes + component_plan.notes
    window = settings.window.state(lookups.now)
    if window:
        notes.append(window.told(None if estimate is None else lookups.now + estimate))
    plan = RolloutPlan(
        entries, cluster_reasons, notes, slots["halted"], estimate, settings, max_parallel, room.totals, component_plan, window
    )
    if plan.held and plan.of(IN_FLIGHT, ON_TRIAL):
        notes.append("while it is halted, this run only continues nodes already in maintenance")
    elif plan.halted and plan.held:
        cluster_reasons.append(maintenance_halt.text(plan.halted))
    return plan


def _unknown_variables(checked: Sequence[CheckedHost]) -> list[str]:
    """A mistyped variable is in the way of everything, also where nothing is due."""
    found: dict[str, list[str]] = {}
    for verdict in checked:
        for sentence in unknown_variables(verdict.host.get("variables") or []):
            if sentence in verdict.reasons:
                verdict.reasons.remove(sentence)
            found.setdefault(sentence, []).append(verdict.name)
    return ["%s (%s)" % (sentence, ", ".join(names[:3])) for sentence, names in found.items()]


def _cluster_notes(entries: Sequence[PlannedNode], snapshot: FleetSnapshot, slots: dict[str, Any], max_parallel: int) -> list[str]:
    notes = []
    mine = {entry.node_name for entry in entries}
    # With --limit, for instance.
    others = [
        name for name, node in snapshot.nodes.items() if name not in mine and kube_client.LABEL_PRESENT in kube_client.labels(node)
    ]
    if others:
        notes.append("not among the hosts of this run: %s" % plan_lines.some(others))
    if snapshot.version_lines.unknown():
        notes.append(
            "the tags of MindCluster's images name no release (%s); whether it supports the driver was not checked there"
            % plan_lines.some(snapshot.version_lines.unknown())
        )
    if snapshot.claims.problem:
        notes.append(snapshot.claims.problem)
    if slots["holders"]:
        notes.append("in maintenance now: %s" % ", ".join(sorted(slots["holders"])))
        if slots["max"] != max_parallel:
            notes.append("another run works with npu_upgrade_max_parallel=%d" % slots["max"])
    return notes
