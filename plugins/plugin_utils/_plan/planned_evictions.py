# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods leave the nodes that are due, which of them cannot, and which would find no other node."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.plan_context import PlanContext
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.planned_node import PlannedNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.room import Room
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.snapshot import FleetSnapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.verdict import BLOCKED


def simulate(due: Sequence[PlannedNode], room: Room, plan: PlanContext) -> None:
    """Who cannot leave, and who would find no other place. Blocks entries, unless the drain may get past what keeps their pods."""
    policy, snapshot, lookups = plan.settings.policy, plan.snapshot, plan.lookups
    found: dict[str | None, list[pod_blocker.Blocker]] = {}
    open_pods: list[pod_view.Pod] = []
    for entry in due:
        pods = snapshot.pods.get(entry.node_name, [])
        leaving = [pod for pod in pods if policy.goes(pod)]
        entry.evictions = {
            "npu": sum(pod.kind == pod_view.NPU for pod in leaving),
            "other": sum(pod.kind == pod_view.OTHER for pod in leaving),
            "jobs": sum(policy.jobs.matches(pod.labels) for pod in leaving),
        }
        # Jobs are waited for; what their budgets say now does not matter.
        pods = [pod for pod in pods if not policy.jobs.matches(pod.labels)]
        blockers = eviction_dry_run.objections(pods, policy, snapshot.budgets, lookups.own_pod, snapshot.claims)
        found[entry.node_name] = blockers
        blocked = {blocker.pod.uid for blocker in blockers}
        open_pods += [pod for pod in pods if policy.goes(pod) and pod.uid not in blocked and not pod.terminating]
        _note_claims(entry, leaving, snapshot)
        # What asks for a resource that is a claim (KEP-5004) need not find one that a kubelet offers.
        _note_homeless(entry, room, [pod for pod in leaving if pod.requests and pod.owner and not pod.npu_claims])
    for blocker in lookups.confirm(open_pods):
        found[blocker.pod.node].append(blocker)
    for entry in due:
        yielding = [blocker for blocker in found[entry.node_name] if blocker.may_give_way]
        if yielding:
            entry.notes.append("%s; the drain tries it, because an operator may act on the cordon" % pod_blocker.told(yielding))
        blockers = [blocker for blocker in found[entry.node_name] if not blocker.may_give_way]
        if blockers:
            entry.verdict = BLOCKED
            entry.reasons = []  # a missing approval is told when it is the next thing to do
            entry.blockers = [blocker.result() for blocker in blockers]
            entry.blocker_text = pod_blocker.told(blockers)


def _note_claims(entry: PlannedNode, leaving: Sequence[pod_view.Pod], snapshot: FleetSnapshot) -> None:
    holders = pod_claims.holders(leaving, snapshot.claims)
    if not holders:
        return
    using = [pod for pod in leaving if pod.npu_claims]
    unknown = "; whether those that use NPUs fit on another node was not checked"
    entry.notes.append(holders + (unknown if using else ""))


def _note_homeless(entry: PlannedNode, room: Room, pods: Sequence[pod_view.Pod]) -> None:
    homeless = room.homeless(entry.node_name, pods)
    if homeless:
        entry.notes.append(
            "%d of its %d pods that request NPUs fit on no other node now and will wait: %s"
            % (len(homeless), len(pods), _names(homeless))
        )


def _names(pods: Sequence[pod_view.Pod]) -> str:
    return ", ".join(pod.label for pod in pods[:3]) + (" ..." if len(pods) > 3 else "")
