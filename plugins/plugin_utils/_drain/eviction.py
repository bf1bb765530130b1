# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The eviction API: one pod's eviction, or a dry run of it, and what a refusal means."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import BUDGET, FAILING, REFUSED, Blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.pod_view import Pod


def evict(cluster: AnyCluster, pod: Pod, **params: Any) -> None:
    """Evict the pod: it is told to end. Raises kube_client.Refused."""
    cluster.request(
        "post",
        "/api/v1/namespaces/%s/pods/%s/eviction" % (pod.namespace, pod.name),
        body={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        },
        **params,
    )


def dry_run(cluster: AnyCluster, pod: Pod, budgets: disruption_budgets.Budgets) -> Blocker | None:
    """The Blocker the API server names for an eviction that it only pretends, or None."""
    try:
        evict(cluster, pod, dry_run="All")
    except kube_client.NotFound:
        return None
    except (kube_client.Conflict, kube_client.NamespaceTerminating):
        return None  # another pod of that name by now; or it goes with its namespace
    except kube_client.Refused as exc:
        return refusal(pod, budgets, exc)
    return None


def refusal(pod: Pod, budgets: disruption_budgets.Budgets, exc: kube_client.Refused) -> Blocker:
    """The Blocker for an eviction that the server refused: a budget, or an admission webhook."""
    covering = budgets.of(pod) if isinstance(exc, kube_client.TooManyRequests) else []
    if covering:
        budget = covering[0]
        why = disruption_budgets.spent(pod, budget).why if budget.allowed <= 0 else None
        return Blocker(BUDGET, pod, why or "the PodDisruptionBudget %s: %s" % (budget.label, _said(exc)), budget.result())
    return Blocker(FAILING if isinstance(exc, kube_client.Failing) else REFUSED, pod, _said(exc))


def _said(exc: kube_client.Refused) -> str:
    return "; ".join(getattr(exc, "causes", None) or [exc.message]).rstrip(".")
