# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a pod does not go, by name: its budget, its owner, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import NPU, Pod

# Kinds of blocker.
BUDGET, BUDGETS_OVERLAP, NO_CONTROLLER, EMPTY_DIR, NPU_DAEMONSET = (
    "budget",
    "several-budgets",
    "no-controller",
    "empty-dir",
    "npu-daemonset",
)
OWN_RUN, REFUSED, TERMINATING, RETURNING = "own-run", "refused", "terminating", "returning"
STATIC = "static-pod"  # it uses NPUs, and only its kubelet can end it
NO_DRA_PLUGIN = "no-dra-plugin"  # who would have to unprepare its ResourceClaim is not there
FAILING = "failing"  # its eviction has no proper answer, most likely because of an admission webhook that is down

# Whose pods stay where they are when their node is cordoned. Of other kinds, an operator may then move what a budget protects.
# Operators of databases also have StatefulSets, but not with NPUs.
_HEEDLESS = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "Job"})
_HEEDLESS_WITH_NPUS = _HEEDLESS | {"StatefulSet"}


class Blocker:
    """Why one pod does not go."""

    def __init__(self, kind: str, pod: Pod, why: str, budget: dict[str, Any] | None = None) -> None:
        """``why``: a clause that says what keeps the pod, and what to do when that is not plain; ``budget``: the one that
        keeps it, as Budget.result() has it."""
        self.kind, self.pod, self.why, self.budget = kind, pod, why, budget

    @property
    def may_give_way(self) -> bool:
        """Whether a drain may get past it, once the node is cordoned and the pod's real eviction is asked for: a budget that an
        operator adapts to the cordon, and a refusal by which a webhook hears of the eviction."""
        if self.kind == BUDGET:
            heedless = _HEEDLESS_WITH_NPUS if self.pod.kind == NPU else _HEEDLESS
            return self.pod.owner is not None and self.pod.owner[0] not in heedless
        return self.kind == REFUSED

    @property
    def text(self) -> str:
        owner = self.pod.owner_text
        return "the pod %s%s cannot be evicted: %s" % (self.pod.label, " (%s)" % owner if owner else "", self.why)

    def result(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "pod": self.pod.label,
            "node": self.pod.node,
            "owner": self.pod.owner_text,
            "budget": self.budget,
            "text": self.text,
        }


def told(blockers: Iterable[Blocker]) -> str:
    """The blockers as one sentence part: those with the same cause together, three pods at most by name.

    ``blockers``: Blocker objects.
    """
    causes: dict[tuple[str, str | None], list[str]] = {}
    for blocker in blockers:
        causes.setdefault((blocker.why, blocker.pod.owner_text), []).append(blocker.pod.label)
    parts = []
    for (why, owner), names in causes.items():
        plural = "s" if len(names) > 1 else ""
        parts.append("the pod%s %s%s cannot be evicted: %s" % (plural, and_more(names), " (%s)" % owner if owner else "", why))
    return "; ".join(parts)


class Blocked(NpuError):
    """Pods that do not go. ``blockers``: list of dicts, see Blocker.result(); they are also in the result."""

    def __init__(self, message: str, blockers: Sequence[Blocker]) -> None:
        super().__init__(message, blockers=[blocker.result() for blocker in blockers])
        self.blockers = self.details["blockers"]
