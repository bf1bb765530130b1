# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DaemonSet of others that nodes move away from, and perhaps back to. It keeps its name, its pods and the rest of its manifest.

A required node affinity keeps it off the nodes that have moved. With the update strategy OnDelete, the other nodes keep their pods,
although the template has changed; only pods on nodes that no longer match are removed by Kubernetes. The previous strategy is in
an annotation. So the way back needs nothing but the DaemonSet itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import selectors as kube_selectors
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.daemonsets import ON_DELETE, strategy_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Labels, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import (
    ANNOTATION_ADOPTION,
    ASIDE,
    LABEL_ADOPTED,
    is_restricted,
    matches_nothing,
    required_terms,
)

__all__ = ["ASIDE", "MOVING"]

# It runs where nodes have not moved; with ASIDE, nowhere.
MOVING: Object = {"key": LABEL_ADOPTED, "operator": "NotIn", "values": ["true"]}

# Every status that Kubernetes writes into the DaemonSet is a conflict.
_ATTEMPTS = 20
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_LONGEST = 4096
_STRATEGY = schema.fields(
    ["type"],
    type=schema.one_of("RollingUpdate", "OnDelete"),
    rollingUpdate=schema.optional(schema.fields((), maxUnavailable=schema.anything, maxSurge=schema.anything)),
)


def path_of(daemonset: Object) -> str:
    return "/apis/apps/v1/namespaces/%(namespace)s/daemonsets/%(name)s" % daemonset["metadata"]


def label_of(daemonset: Object) -> str:
    return "DaemonSet %(namespace)s/%(name)s" % daemonset["metadata"]


def is_held(daemonset: Object, expression: Object) -> bool:
    """Whether it is kept off nodes by ``expression``, MOVING or ASIDE, and Kubernetes replaces none of its pods by itself."""
    return (
        ANNOTATION_ADOPTION in kube_client.annotations(daemonset)
        and strategy_of(daemonset).get("type") == "OnDelete"
        and is_restricted(daemonset, expression)
    )


def holding(daemonset: Object, expression: Object) -> Object:
    """The merge patch that keeps it off nodes by ``expression``."""
    terms = [
        term if matches_nothing(term) else dict(term, matchExpressions=[*_others(term), expression])
        for term in required_terms(daemonset)
    ] or [{"matchExpressions": [expression]}]
    annotations = {}
    if ANNOTATION_ADOPTION not in kube_client.annotations(daemonset):
        annotations[ANNOTATION_ADOPTION] = json.dumps(strategy_of(daemonset))
    return {
        "metadata": {"resourceVersion": daemonset["metadata"]["resourceVersion"], "annotations": annotations},
        "spec": {
            "updateStrategy": ON_DELETE,
            "template": {"spec": {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}}},
        },
    }


def restoring(daemonset: Object) -> Object:
    """The merge patch after which it is as it was. Raises NpuError if the annotation does not tell how that is."""
    terms = [term if matches_nothing(term) else _without_ours(term) for term in required_terms(daemonset)]
    kept = [term for term, before in zip(terms, required_terms(daemonset)) if not matches_nothing(term) or matches_nothing(before)]
    affinity = daemonset["spec"]["template"]["spec"].get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    change: Any = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": kept}}}
    if not kept:
        change = {"nodeAffinity": {_REQUIRED: None}} if set(node_affinity) - {_REQUIRED} else {"nodeAffinity": None}
        change = change if set(affinity) - {"nodeAffinity"} or change["nodeAffinity"] else None
    return {
        "metadata": {
            "resourceVersion": daemonset["metadata"]["resourceVersion"],
            "annotations": {ANNOTATION_ADOPTION: None},
        },
        "spec": {"updateStrategy": _strategy(daemonset), "template": {"spec": {"affinity": change}}},
    }


def write(cluster: AnyCluster, daemonset: Object, patch: Callable[[Object], Object | None], dry_run: bool = False) -> Object:
    """The DaemonSet after ``patch`` of how it is now, None for nothing to do. Raises NpuError."""
    more = {"dry_run": "All"} if dry_run else {}
    for _attempt in range(_ATTEMPTS):
        actual = cluster.get(path_of(daemonset))
        if actual is None or actual["metadata"]["uid"] != daemonset["metadata"]["uid"]:
            raise NpuError("%s was deleted, or replaced by another one. Run this again" % label_of(daemonset))
        body = patch(actual)
        if body is None:
            return actual
        try:
            return cluster.merge_patch(path_of(daemonset), body, field_manager=kube_client.FIELD_MANAGER, **more)
        except kube_client.Conflict:
            continue
    raise NpuError("Another client keeps changing %s. Run this again later" % label_of(daemonset))


def hold(cluster: AnyCluster, daemonset: Object, expression: Object, dry_run: bool = False) -> Object:
    """Keep it off nodes by ``expression``. Returns it as it is then."""
    return write(cluster, daemonset, lambda actual: None if is_held(actual, expression) else holding(actual, expression), dry_run)


def restore(cluster: AnyCluster, daemonset: Object) -> Object:
    """As it was before it was adopted. Returns it as it is then."""

    def patch(actual: Object) -> Object | None:
        return restoring(actual) if ANNOTATION_ADOPTION in kube_client.annotations(actual) else None

    return write(cluster, daemonset, patch)


def selects(daemonset: Object, labels: Labels) -> bool:
    """Whether it is to run on a node with these labels, taints aside, if adoption did not keep it off."""
    spec = daemonset["spec"]["template"]["spec"]
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    terms = required_terms(daemonset)
    return not terms or any(not matches_nothing(term) and _holds(_others(term), labels) for term in terms)


def _holds(expressions: Objects, labels: Labels) -> bool:
    known = [entry for entry in expressions if entry.get("operator") in ("In", "NotIn", "Exists", "DoesNotExist")]
    return kube_selectors.matches_object({"matchExpressions": known}, labels)


def _others(term: Object) -> Objects:
    return [entry for entry in term.get("matchExpressions") or [] if entry.get("key") != LABEL_ADOPTED]


def _without_ours(term: Object) -> Object:
    rest = _others(term)
    kept = {key: value for key, value in term.items() if key != "matchExpressions"}
    return dict(kept, matchExpressions=rest) if rest else kept


def _strategy(daemonset: Object) -> Object:
    try:
        strategy = schema.load(kube_client.annotations(daemonset).get(ANNOTATION_ADOPTION), _LONGEST)
        _STRATEGY(strategy, "")
    except schema.Misfit as exc:
        raise NpuError(
            "The annotation %s of %s does not tell the update strategy that it had: %s. Correct it, for example to"
            ' {"type": "RollingUpdate"}, and run this again' % (ANNOTATION_ADOPTION, label_of(daemonset), exc)
        )
    # A null removes what the API server has put there meanwhile.
    return {"type": strategy["type"], "rollingUpdate": strategy.get("rollingUpdate")}
