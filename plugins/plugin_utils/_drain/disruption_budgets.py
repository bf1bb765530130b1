# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disruption budgets: which one covers a pod, and whether it allows the pod's eviction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import BUDGET, BUDGETS_OVERLAP, Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import Pod

PATH = "/apis/policy/v1/poddisruptionbudgets"


class Budget:
    """A PodDisruptionBudget."""

    def __init__(self, item: Object) -> None:
        status = item.get("status") or {}
        self.namespace, self.name = item["metadata"]["namespace"], item["metadata"]["name"]
        self.selector = item["spec"].get("selector")
        self.always_evicts_unhealthy = item["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        self.allowed = status.get("disruptionsAllowed", 0)
        self.healthy, self.desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)

    @property
    def label(self) -> str:
        return "%s/%s" % (self.namespace, self.name)

    def covers(self, pod: Pod) -> bool:
        return pod.namespace == self.namespace and kube_selectors.matches_object(self.selector, pod.labels)

    def allows(self, pod: Pod) -> bool:
        """Whether one eviction of the pod is allowed now, by the budget's status."""
        if pod.phase == "Pending":
            return True
        if not pod.ready and (self.always_evicts_unhealthy or 0 < self.desired <= self.healthy):
            return True
        return self.allowed > 0

    def result(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "disruptions_allowed": self.allowed,
            "current_healthy": self.healthy,
            "desired_healthy": self.desired,
        }


class Budgets:
    """All budgets, found by namespace and, where they ask for one, by a label."""

    def __init__(self, items: Iterable[Object]) -> None:
        self._found_by: dict[tuple[str, tuple[str, str] | None], list[Budget]] = {}
        for item in items:
            budget = Budget(item)
            # One label that a pod must have anyway; thousands of pods need not be held against thousands of budgets.
            label = next(iter(((budget.selector or {}).get("matchLabels") or {}).items()), None)
            self._found_by.setdefault((budget.namespace, label), []).append(budget)

    @classmethod
    def read(cls, cluster: AnyCluster) -> Budgets:
        return cls(cluster.each(PATH))

    def of(self, pod: Pod) -> list[Budget]:
        """The budgets that cover the pod."""
        found_by = self._found_by
        candidates = list(found_by.get((pod.namespace, None), ()))
        for label in pod.labels.items():
            candidates += found_by.get((pod.namespace, label), ())
        return [budget for budget in candidates if budget.covers(pod)]

    def objection(self, pod: Pod) -> Blocker | None:
        """The Blocker that the budgets are by what their status says, or None."""
        covering = self.of(pod)
        if len(covering) > 1 and pod.phase != "Pending":
            names = ", ".join(budget.label for budget in covering)
            why = "several PodDisruptionBudgets cover it (%s), which the eviction API rejects; keep only one" % names
            return Blocker(BUDGETS_OVERLAP, pod, why, covering[0].result())
        for budget in covering:
            if not budget.allows(pod):
                return spent(pod, budget)
        return None


def spent(pod: Pod, budget: Budget) -> Blocker:
    """The Blocker that a budget is which allows no disruption now."""
    why = "the PodDisruptionBudget %s allows no disruption now: %d healthy, %d needed" % (
        budget.label,
        budget.healthy,
        budget.desired,
    )
    return Blocker(BUDGET, pod, why, budget.result())
