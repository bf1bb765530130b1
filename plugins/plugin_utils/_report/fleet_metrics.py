# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of the fleet as metrics: what the table says, in numbers and states. Their documentation is docs/metrics.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.halt import Halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import node_state
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.node_state import Row
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.text_format import Gauge

_PREFIX = "npuops_fleet_"
# As many nodes as Kubernetes supports, and more resources of virtual NPUs than a host has templates. The counts are complete.
_MOST_NODES, _MOST_RESOURCES = 5000, 32
_HALTS = (maintenance_record.UPGRADE_REASON, maintenance_record.ROLLBACK_REASON, maintenance_halt.PAUSE)


class Fleet(NamedTuple):
    """What the status found. None: not known, and then there is no metric that says it."""

    rows: Sequence[Row]
    storm: str | None
    halted: Halt | None
    halt_known: bool
    rollouts: Sequence[dict[str, Any]] | None


def text(fleet: Fleet, now: float) -> str:
    """All metrics in the text format. ``now``: seconds since 1970."""
    gauges = [_gauge("status_timestamp_seconds", "Unix time at which npuops.ascend.status looked at the fleet.")]
    gauges[0].set(int(now))
    gauges += [*_of_cluster(fleet), *_of_nodes(_each_once(fleet.rows))]
    return "".join(line + "\n" for gauge in gauges for line in gauge.lines())


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(_PREFIX + name, text)


def _of_cluster(fleet: Fleet) -> Iterable[Gauge]:
    nodes = _gauge("nodes", "Number of hosts and NPU nodes by state, as the table of npuops.ascend.status has them.")
    counts = Counter(row["state"] for row in fleet.rows)
    for state in dict.fromkeys([*node_state.STATES, *counts]):
        nodes.set(counts[state], state=state)
    storm = _gauge("storm", "1 while so many nodes are wedged that none is recovered, 0 otherwise.")
    storm.set(int(fleet.storm is not None))
    halted = _gauge(
        "halted", "1 while no further node is begun with, by what is halted: upgrade, rollback or all (pause); 0 otherwise."
    )
    if fleet.halt_known:
        kinds = _kinds(fleet.halted)
        for kind in _HALTS:
            halted.set(int(kind in kinds), kind=kind)
    rollouts = _gauge("component_rollouts", "Number of rollouts of components that have not ended.")
    if fleet.rollouts is not None:
        rollouts.set(len(fleet.rollouts))
    return nodes, storm, halted, rollouts


def _kinds(halted: Halt | None) -> set[str]:
    """A pause may be there besides a halt by a maintenance that failed."""
    failure = maintenance_halt.of_failure(halted)
    kinds = {maintenance_halt.PAUSE} if maintenance_halt.is_pause(halted) else set()
    if failure:
        rollback = maintenance_halt.of_rollback(failure)
        kinds.add(maintenance_record.ROLLBACK_REASON if rollback else maintenance_record.UPGRADE_REASON)
    return kinds


def _each_once(rows: Sequence[Row]) -> list[Row]:
    """One row of each node, of two that of a host that is not healthy; those that are not healthy first."""
    by_node: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row["healthy"]):
        by_node.setdefault(row["node"], row)
    return list(by_node.values())[:_MOST_NODES]


def _of_nodes(rows: Iterable[Row]) -> Iterable[Gauge]:
    state = _gauge("node_state", "State of each node, as the table of npuops.ascend.status has it; always 1.")
    healthy = _gauge(
        "node_healthy", "1 if nothing is wrong with the node, 0 otherwise; none of nodes that are not in the inventory."
    )
    expected = _gauge("node_devices_expected", "Number of devices that the node should offer, by resource.")
    offered = _gauge("node_devices_allocatable", "Number of allocatable devices of the node, by resource.")
    step = _gauge("node_step", "Step of the upgrade, rollback or recovery that is due on the node; always 1.")
    awaiting = _gauge(
        "node_awaiting_approval", "Nodes that wait for the approval of a reboot, in a rollout or a recovery; always 1."
    )
    for row in rows:
        node = row["node"]
        state.set(1, node=node, state=row["state"])
        if row["host"]:
            healthy.set(int(row["healthy"]), node=node)
        for resource, wanted, there in _devices(row):
            expected.set(wanted, node=node, resource=resource)
            offered.set(there, node=node, resource=resource)
        if row["step"]:
            step.set(1, node=node, step=row["step"])
        if row["awaiting_approval"]:
            awaiting.set(1, node=node, reason=row["awaiting_approval"])
    return state, healthy, expected, offered, step, awaiting


def _devices(row: Row) -> list[tuple[str, int, int]]:
    """(resource, expected, allocatable), as far as the host has said what it has."""
    devices = [] if row["devices_expected"] is None else [(row["resource"], row["devices_expected"], row["allocatable"])]
    parts = sorted(row["vnpus"].items())[:_MOST_RESOURCES]
    return devices + [(resource, count["wanted"], count["allocatable"]) for resource, count in parts]
