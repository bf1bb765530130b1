# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Kubernetes user may do.

A question for each permission would take a request each, and an install needs seventy. The API server lists all rules of a user in
one answer for each namespace (SelfSubjectRulesReview). What they do not grant is asked for one by one (SelfSubjectAccessReview), so
is everything where an authorizer, such as a webhook, cannot list its rules: it may deny what another one grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster

# (verb, resource, such as pods/eviction, group, namespace or None for all, name or None for all)
Permission = tuple[str, str, str, str | None, str | None]

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
# The rules of a namespace contain those that hold in all. No namespace has a name with a dot, so for this one there are no others.
_NO_NAMESPACE = "npuops.ascend"


def missing(cluster: AnyCluster, needed: Iterable[Permission]) -> list[Permission]:
    """Return those permissions that the user of ``cluster`` does not have, in the same order. Raises NpuError."""
    needed = list(needed)
    rules = {where: _rules(cluster, where or _NO_NAMESPACE) for where in {namespace for _v, _r, _g, namespace, _n in needed}}
    return [entry for entry in needed if not granted(rules[entry[3]], entry) and not cluster.may(*entry)]


def told(entries: Iterable[Permission]) -> list[str]:
    """That the user does not have these permissions, in a phrase for each."""
    return ["the Kubernetes user may not %s" % kube_client.describe_permission(*entry) for entry in entries]


def granted(rules: Iterable[Mapping[str, Any]], permission: Permission) -> bool:
    """Whether one of the rules grants it; as RBAC reads them (kubernetes/kubernetes, pkg/apis/rbac/v1/evaluation_helpers.go)."""
    verb, resource, group, _namespace, name = permission
    subresource = resource.partition("/")[2]
    resources = {"*", resource, *(["*/" + subresource] if subresource else [])}
    return any(
        not {"*", verb}.isdisjoint(_texts(rule, "verbs"))
        and not {"*", group}.isdisjoint(_texts(rule, "apiGroups"))
        and not resources.isdisjoint(_texts(rule, "resources"))
        and (not rule.get("resourceNames") or name in _texts(rule, "resourceNames"))
        for rule in rules
    )


def _texts(rule: Mapping[str, Any], key: str) -> list[str]:
    found = rule.get(key)
    return [entry for entry in found if isinstance(entry, str)] if isinstance(found, list) else []


def _rules(cluster: AnyCluster, namespace: str) -> list[Mapping[str, Any]]:
    """The rules that hold in ``namespace``; none where the API server does not tell all of them."""
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    try:
        status = cluster.request("post", _REVIEWS, body=body)["status"]
        return [] if status.get("incomplete") else [rule for rule in status["resourceRules"] if isinstance(rule, dict)]
    except (kube_client.Unreachable, kube_client.Unauthorized):
        raise
    except (NpuError, AttributeError, KeyError, TypeError):  # nothing that can be understood
        return []
