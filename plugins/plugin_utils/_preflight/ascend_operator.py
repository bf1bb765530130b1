# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's ascend-operator: what is in the cluster of it, and what it needs there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import components as fleet_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.permissions import Permission, of_named
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import resolve

CRD = "ascendjobs.mindxdl.gitee.com"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_JOBS = "/apis/mindxdl.gitee.com/v1/ascendjobs"
# As the role marks what it makes.
_MANAGED_BY, _OURS = "app.kubernetes.io/managed-by", "npuops.ascend"

# What it uses of Volcano: (group and version, resource, kind). It ends without the first; the others are for gang scheduling.
_JOB_KIND = ("/apis/batch.volcano.sh/v1alpha1", "jobs", "Job of batch.volcano.sh/v1alpha1")
_POD_GROUP_KIND = ("/apis/scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup of scheduling.volcano.sh/v1beta1")
_QUEUE_KIND = ("/apis/scheduling.volcano.sh/v1beta1", "queues", "Queue of scheduling.volcano.sh/v1beta1")


@dataclasses.dataclass(frozen=True)
class Found:
    """``installed``: in our namespace; ``elsewhere``: the namespaces that have another one; ``crd``: whether there is none or it is
    ours."""

    installed: bool
    elsewhere: tuple[str, ...]
    crd: bool

    def result(self, enabled: bool) -> dict[str, bool]:
        """For the role: whether there is anything for it to do, and whether it is to make the kind AscendJob."""
        return {"act": enabled or self.installed, "crd": self.crd}


def look(cluster: AnyCluster, namespace: str) -> Found:
    """What is there. ``namespace``: ours."""
    where = sorted(
        item["metadata"]["namespace"]
        for item in cluster.list("/apis/apps/v1/deployments")
        if item["metadata"]["name"] == fleet_components.OPERATOR
    )
    crd = cluster.get("%s/%s" % (_CRDS, CRD))
    return Found(namespace in where, tuple(name for name in where if name != namespace), crd is None or _is_ours(crd))


def reasons(cluster: AnyCluster, found: Found, settings: Mapping[str, Any]) -> list[str]:
    """Why it cannot be deployed, as sentences. ``settings``: of its role, by their names without the prefix."""
    sentences = [
        "another ascend-operator is deployed, Deployment %s in the namespace %s; two of them disturb each other's jobs. Delete it"
        " with its ClusterRole and ClusterRoleBinding, or set npu_ascend_operator_enabled: false"
        % (fleet_components.OPERATOR, name)
        for name in found.elsewhere
    ]
    try:
        gang = resolve.settings("npu_ascend_operator", settings)["gang_scheduling"]
    except NpuError:
        gang = True  # told already
    if not kube_client.has_resource(cluster, *_JOB_KIND[:2]):
        sentences.append(
            "npu_ascend_operator_enabled is true, and the cluster does not have the kind %s: the operator ends without it. Install"
            " Volcano, or set npu_ascend_operator_enabled: false" % _JOB_KIND[2]
        )
    elif gang:
        sentences += [
            "npu_ascend_operator_gang_scheduling is true, and the cluster does not have the kind %s. Install Volcano, or set"
            " npu_ascend_operator_gang_scheduling: false" % kind
            for group, resource, kind in (_POD_GROUP_KIND, _QUEUE_KIND)
            if not kube_client.has_resource(cluster, group, resource)
        ]
    return sentences


def permissions(namespace: str, enabled: bool, found: Found) -> list[Permission]:
    """What the Kubernetes user must be allowed to, to deploy it or to remove it; [] if there is nothing to do."""
    if not enabled and not found.installed:
        return []
    verbs = ("get", "create", "patch") if enabled else ("get", "delete")
    needed: list[Permission] = [
        (verb, resource, group, namespace, None)
        for resource, group in (("deployments", "apps"), ("serviceaccounts", ""))
        for verb in verbs
    ]
    cluster_wide = [
        ("clusterroles", ["ascend-operator-manager-role"]),
        ("clusterrolebindings", ["ascend-operator-manager-rolebinding"]),
    ]
    if not enabled:
        return needed + [
            (verb, resource, "rbac.authorization.k8s.io", None, name)
            for resource, names in cluster_wide
            for name in names
            for verb in verbs
        ]
    needed += of_named("rbac.authorization.k8s.io", cluster_wide)
    if found.crd:
        needed += of_named("apiextensions.k8s.io", [("customresourcedefinitions", [CRD])])
    return needed


def removal(cluster: AnyCluster, namespace: str) -> tuple[dict[str, bool], list[str]]:
    """(what uninstall is to remove, what it keeps, as sentences).

    The kind AscendJob goes only if it is ours and there is no job: the API server deletes the jobs with it.
    """
    found = look(cluster, namespace)
    crd = cluster.get("%s/%s" % (_CRDS, CRD))
    if crd is None or not _is_ours(crd):
        return {"act": found.installed, "crd": False}, []
    jobs = cluster.list(_JOBS)
    if not jobs:
        return {"act": True, "crd": True}, []
    names = sorted("%(namespace)s/%(name)s" % item["metadata"] for item in jobs)
    told = "the CustomResourceDefinition %s stays, because AscendJobs exist: %s%s" % (
        CRD,
        ", ".join(names[:3]),
        " and %d more" % (len(names) - 3) if len(names) > 3 else "",
    )
    return {"act": found.installed, "crd": False}, [told]


def _is_ours(crd: Mapping[str, Any]) -> bool:
    return (crd["metadata"].get("labels") or {}).get(_MANAGED_BY) == _OURS
