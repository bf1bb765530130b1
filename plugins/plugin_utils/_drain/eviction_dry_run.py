# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would keep pods from going, found before anything is evicted: by rule, and by dry-run evictions."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.disruption_budgets import Budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.drain_policy import DrainPolicy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import FAILING, NPU_DAEMONSET, OWN_RUN, STATIC, Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.claims import HeldClaims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import DAEMONSET, MIRROR, Pod

# So many dry runs of one node may fail; each may take as long as a webhook that hangs.
_MOST_FAILING = 3

# So many evictions are tried one by one; beyond that, one pod stands for all with the same budgets and namespace.
_EACH = 200
_THREADS = 8


def objections(
    pods: Iterable[Pod],
    policy: DrainPolicy,
    budgets: Budgets,
    own_pod: str | None = None,
    claims: HeldClaims | None = None,
) -> list[Blocker]:
    """The Blockers of these pods of one node that can be told without asking: policy, budgets' status, chips in use by
    DaemonSets and static pods, the run's own pod, ``claims`` that no plugin would unprepare.

    What a status cannot tell: that a budget which allows one disruption now allows the next once the evicted pod is
    ready elsewhere. Pods of one budget go one after the other, so one that allows any is no blocker.
    """
    found = []
    for pod in pods:
        blocker = _objection(pod, policy, budgets, own_pod, claims or HeldClaims())
        if blocker:
            found.append(blocker)
    return found


def _objection(pod: Pod, policy: DrainPolicy, budgets: Budgets, own_pod: str | None, claims: HeldClaims) -> Blocker | None:
    if pod.kind == DAEMONSET and (pod.uses_npus or pod.npu_claims):
        why = "a DaemonSet recreates it at once, and it uses %s; keep the DaemonSet off this node" % _used(pod)
        return Blocker(NPU_DAEMONSET, pod, why)
    if pod.kind == MIRROR and pod.uses_npus:
        why = "it is a static pod that uses %s, which only the kubelet of its node ends; move its file out of staticPodPath there"
        return Blocker(STATIC, pod, why % _used(pod))
    if not policy.goes(pod):
        return None
    if own_pod and pod.name == own_pod:
        return Blocker(OWN_RUN, pod, "Ansible itself runs in it; run it on another node")
    stuck = claims.objection(pod)
    if stuck or pod.terminating:
        return stuck
    return policy.objection(pod) or budgets.objection(pod)


def _used(pod: Pod) -> str:
    resources = ["%d %s" % (count, name) for name, count in sorted(pod.requests.items())]
    used = resources + ["the ResourceClaim " + claim for claim in pod.npu_claims]
    return ", ".join(used) or "NPUs by their CDI names"


def simulate(
    cluster: AnyCluster,
    pods: Iterable[Pod],
    policy: DrainPolicy,
    budgets: Budgets | None = None,
    own_pod: str | None = None,
    beat: Callable[[], None] | None = None,
    claims: HeldClaims | None = None,
) -> list[Blocker]:
    """The Blockers of one node's pods, confirmed by the API server through dry-run evictions (one request per pod).

    ``budgets``: read when not given; ``beat()`` is called before each request; ``claims``: of the pods. Nothing is changed. Pods of
    jobs that are waited for do not count: they may be gone when it is their turn.
    """
    budgets = Budgets.read(cluster) if budgets is None else budgets
    pods = [pod for pod in pods if not policy.jobs.matches(pod.labels)]
    found = objections(pods, policy, budgets, own_pod, claims)
    blocked = {blocker.pod.uid for blocker in found}
    for pod in pods:
        if sum(blocker.kind == FAILING for blocker in found) >= _MOST_FAILING:
            break
        if policy.goes(pod) and not pod.terminating and pod.uid not in blocked:
            if beat:
                beat()
            blocker = eviction.dry_run(cluster, pod, budgets)
            if blocker:
                found.append(blocker)
    return found


Ask = Callable[[Pod], "Blocker | None"]


def at_once(ask: Ask, pods: Sequence[Pod]) -> list[Blocker | None]:
    """``ask`` for each of the pods, a few at a time; in their order."""
    with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(ask, pods))


def confirm(
    cluster: AnyCluster,
    pods: Sequence[Pod],
    budgets: Budgets,
    each: Callable[[Ask, Sequence[Pod]], Iterable[Blocker | None]] = at_once,
) -> list[Blocker]:
    """Blockers (_pods.blocker.Blocker) that the API server names for pods against which nothing else speaks.

    ``pods``: of all nodes in question. At most 200 requests. ``each``: calls a function for each pod, as map does.
    """
    groups: dict[object, list[Pod]] = {}
    for number, pod in enumerate(pods):
        covering = tuple(budget.label for budget in budgets.of(pod))
        key: object = number if len(pods) <= _EACH else (covering or pod.namespace)
        groups.setdefault(key, []).append(pod)
    samples = [members[0] for members in groups.values()][:_EACH]
    if not samples:
        return []
    answers = each(lambda pod: eviction.dry_run(cluster, pod, budgets), samples)
    found = []
    for blocker, members in zip(answers, groups.values()):
        if blocker is None:
            continue
        # What a budget refuses to one of its pods it refuses to all; a webhook may look at each.
        same = members if blocker.budget is not None else members[:1]
        found += [Blocker(blocker.kind, pod, blocker.why, blocker.budget) for pod in same]
    return found
