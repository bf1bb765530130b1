# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The check "collective" of all nodes of a run: those of one kind in pairs, and those of pairs that failed with others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import PASS, finding
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import (
    collective_nodes,
    collective_pairs,
    collective_runs,
    node_use,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective import Collective
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_nodes import LEVEL, NAME, Findings, Group
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_pairs import Pair, Tried
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.waiting_acceptances import WaitingAcceptance
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster

_ALONE = "Run accept with a second node of the same kind that may be loaded and passes everything else"
_MENDED = "Run accept again when that is mended"
_FAILED = "Compare the network ports of both nodes with npuops.ascend.validate, and see docs/accept.md"


def findings(cluster: AnyCluster, acceptances: Sequence[WaitingAcceptance], say: Callable[[str], None], clock: Clock) -> Findings:
    """By node. A node that has not joined the cluster has none.

    What keeps the API server from responding is the finding of all nodes that it keeps from being tested.
    """
    found: Findings = {}
    groups: list[Group] = []
    tried: list[Tried] = []
    blocked: dict[str, str] = {}
    obstacle = None
    try:
        groups, found = collective_nodes.of(cluster, acceptances)
        _run(cluster, groups, tried, blocked, say, clock)
    except NpuError as exc:
        obstacle = exc.message
    if obstacle and not groups:
        return not_run(acceptances, obstacle)
    for group in groups:
        found.update(_of_group(group, tried, blocked, obstacle))
    return found


def not_run(acceptances: Iterable[WaitingAcceptance], why: str) -> Findings:
    """Those of nodes none of which could be tested."""
    return {acceptance["document"]["node"]: collective_nodes.unknown(why, _MENDED) for acceptance in acceptances}


def _run(
    cluster: AnyCluster,
    groups: Iterable[Group],
    tried: list[Tried],
    blocked: dict[str, str],
    say: Callable[[str], None],
    clock: Clock,
) -> None:
    """Adds to ``blocked`` the nodes that must not be loaded any more when their turn comes, and why."""
    group_of = {name: group for group in groups for name in group.timeouts}

    def collective(pair: Pair) -> Collective | None:
        group = group_of[pair.first]
        # Those before it may have taken hours.
        reasons = {name: node_use.reason(cluster, name, group.dra_drivers[name]) for name in pair}
        found = {name: why for name, why in reasons.items() if why}
        if found:
            blocked.update(found)
            return None
        limits = [group.timeouts[name] for name in pair]
        say("%s and %s: run the collective" % pair)
        return Collective(cluster, pair, group.manifest, max(limits) if all(limits) else 0, say, clock)

    collective_runs.run([pair for group in groups for pair in collective_pairs.pairs(group.timeouts)], collective, tried, clock)
    again = [pair for group in groups for pair in collective_pairs.again(_of(group, tried))]
    collective_runs.run(again, collective, tried, clock)


def _of(group: Group, tried: Iterable[Tried]) -> list[Tried]:
    return [one for one in tried if one.pair.first in group.timeouts]


def _of_group(group: Group, tried: Iterable[Tried], blocked: Mapping[str, str], obstacle: str | None) -> Findings:
    its, found = _of(group, tried), Findings()
    for name in group.timeouts:
        if len(group.timeouts) == 1:
            found[name] = collective_nodes.unknown("not run, because no other node of this run can be its partner", _ALONE)
        elif name in blocked and not any(name in one.pair for one in its):
            found[name] = collective_nodes.unknown(blocked[name])
        elif not any(name in one.pair for one in its):
            found[name] = collective_nodes.unknown(obstacle or "not run, because its partner must not be loaded any more", _MENDED)
        else:
            verdict, seen = collective_pairs.judged(name, its)
            found[name] = finding(NAME, LEVEL, verdict, seen, None if verdict == PASS else _FAILED)
    return found
