# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster's optional components: what is in the cluster of each, what it lacks there, and what may be taken away."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.install_permissions import (
    ADMISSION_POLICIES,
    Permission,
    of_named,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_VOLCANO = "Install Volcano, which npu_volcano_enabled: true does"
# Names of objects that keep a CustomResourceDefinition: in a sentence.


@dataclasses.dataclass(frozen=True)
class Found:
    """``component``: ours is where it must be; ``elsewhere``: (namespace, name) of others; ``crds``: the names of its
    CustomResourceDefinitions of which there is none or it is ours; ``missing``: which of its namespaces do not exist."""

    component: mindcluster_stack.Component
    installed: bool = False
    elsewhere: tuple[tuple[str, str], ...] = ()
    crds: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def look(cluster: AnyCluster, namespace: str) -> dict[str, Found]:
    """What exists of each component, by its part. ``namespace``: ours."""
    workloads = {
        kind: cluster.list("/apis/apps/v1/%s" % kind) for kind in sorted({one.resource for one in mindcluster_stack.COMPONENTS})
    }
    return {one.part: _look(cluster, one, namespace, workloads[one.resource]) for one in mindcluster_stack.COMPONENTS}


def _look(cluster: AnyCluster, component: mindcluster_stack.Component, namespace: str, workloads: Iterable[Object]) -> Found:
    there = [item for item in workloads if item["metadata"]["name"] in component.names]
    mine = [item for item in there if item["metadata"]["namespace"] == component.home(namespace) and _is_ours(item)]
    crds = {crd.name: cluster.get("%s/%s" % (_CRDS, crd.name)) for crd in component.crds}
    return Found(
        component,
        bool(mine),
        tuple(sorted((item["metadata"]["namespace"], item["metadata"]["name"]) for item in there if item not in mine)),
        tuple(name for name, crd in crds.items() if crd is None or _is_ours(crd)),
        tuple(name for name in component.namespaces if not _may_exist(cluster, name)),
    )


def _may_exist(cluster: AnyCluster, namespace: str) -> bool:
    """Also true if that may not be asked, which is told where it is needed."""
    try:
        return cluster.get("/api/v1/namespaces/" + namespace) is not None
    except NpuError as exc:
        if "missing" in exc.details:
            return True
        raise


def result(cluster: AnyCluster, found: Mapping[str, Found], enabled: Callable[[str], bool]) -> dict[str, dict[str, Any]]:
    """For the roles, by part: whether there is anything to do, which CustomResourceDefinitions to make, and which ConfigMaps to
    remove with the component."""
    return {
        part: {
            "act": enabled(part) or one.installed,
            "crds": list(one.crds),
            "leftovers": _leftovers(cluster, one.component) if one.installed and not enabled(part) else [],
        }
        for part, one in found.items()
    }


def reasons(
    cluster: AnyCluster, found: Found, settings: Mapping[str, Any], brought: Collection[mindcluster_stack.Crd] = ()
) -> list[str]:
    """Why a component cannot be deployed, as sentences. ``settings``: of its role, by their names without the prefix; ``brought``:
    what other components bring in the same run."""
    component = found.component
    switch = component.role + "_enabled"
    sentences = [
        "another %s is deployed, %s %s in the namespace %s; %s. %sDelete it with its ClusterRole and ClusterRoleBinding, or set"
        " %s: false"
        % (component.title, component.kind, name, namespace, component.harm, component.keep and component.keep + ". ", switch)
        for namespace, name in found.elsewhere
    ]
    kinds = {crd.path for crd in brought}

    def lacks(needs: Iterable[mindcluster_stack.Need]) -> list[str]:
        return [
            need.kind
            for need in needs
            if "%s/%s" % (need.group, need.resource) not in kinds
            and not kube_client.has_resource(cluster, need.group, need.resource)
        ]

    missing = lacks(component.needs)
    if missing:
        return sentences + [
            "%s is true, and the cluster does not have the kind %s: %s ends without it. %s, or set %s: false"
            % (switch, kind, component.title, _VOLCANO, switch)
            for kind in missing
        ]
    for option, needs in component.needs_with:
        setting = "%s_%s" % (component.role, option)
        if _is_on(component.role, settings, option):
            sentences += [
                "%s is true, and the cluster does not have the kind %s. %s, or set %s: false" % (setting, kind, _VOLCANO, setting)
                for kind in lacks(needs)
            ]
    return sentences


def brought(found: Mapping[str, Found], enabled: Callable[[str], bool]) -> list[mindcluster_stack.Crd]:
    """The CustomResourceDefinitions that the enabled components make."""
    return [crd for part, one in found.items() if enabled(part) for crd in one.component.crds if crd.name in one.crds]


def _is_on(role: str, settings: Mapping[str, Any], option: str) -> bool:
    try:
        return valid_settings.settings(role, settings)[option]
    except NpuError:
        return True  # told already


def permissions(namespace: str, enabled: bool, found: Found, admission_policies: bool = True) -> list[Permission]:
    """What the Kubernetes user must be allowed to, to deploy a component or to remove it; [] if there is nothing to do.

    ``admission_policies``: whether the cluster has that kind.
    """
    if not enabled and not found.installed:
        return []
    component = found.component
    home = component.home(namespace)
    verbs = ("get", "create", "patch") if enabled else ("get", "delete")
    needed: list[Permission] = [(verb, *what, home, None) for what in component.objects for verb in verbs]
    named: list[tuple[str, str, str | None, str]] = [("clusterroles", _RBAC, None, name) for name in component.cluster_roles]
    named += [("clusterrolebindings", _RBAC, None, name) for name in component.cluster_role_bindings]
    named += [(resource, _RBAC, where, name) for where, name in component.roles for resource in ("roles", "rolebindings")]
    if admission_policies:
        named += [(resource, _ADMISSION, None, name) for name in component.policies for resource in ADMISSION_POLICIES]
    if not enabled:
        needed += [(verb, resource, group, where, name) for resource, group, where, name in named for verb in ("get", "delete")]
        return needed + [(verb, "configmaps", "", where, None) for where, _names in component.writes for verb in ("list", "delete")]
    for resource, group, where, name in named:
        needed += of_named(group, [(resource, [name])], where)
    for name in component.namespaces:
        needed += [(verb, "namespaces", "", None, name) for verb in ("get", "patch")]
    if found.missing:
        needed.append(("create", "namespaces", "", None, None))
    if found.crds:
        needed += of_named("apiextensions.k8s.io", [("customresourcedefinitions", list(found.crds))])
    return needed


def removal(cluster: AnyCluster, found: Mapping[str, Found]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """(what uninstall is to remove, by part as in ``result``; what it keeps, as sentences).

    A CustomResourceDefinition goes only if it is ours and has no object: the API server deletes the objects with it.
    """
    kept: list[str] = []
    doing = {}
    for part, one in found.items():
        crds = []
        for crd in one.component.crds:
            removed, told = _crd_to_remove(cluster, crd)
            crds += [crd.name] if removed else []
            kept += told
        leftovers = _leftovers(cluster, one.component) if one.installed else []
        doing[part] = {"act": one.installed or bool(crds), "crds": crds, "leftovers": leftovers}
    return doing, kept


def nothing() -> dict[str, dict[str, Any]]:
    """``removal`` where nodes remain."""
    return {part: {"act": False, "crds": [], "leftovers": []} for part in mindcluster_stack.PARTS}


def _crd_to_remove(cluster: AnyCluster, crd: mindcluster_stack.Crd) -> tuple[bool, list[str]]:
    actual = cluster.get("%s/%s" % (_CRDS, crd.name))
    if actual is None or not _is_ours(actual):
        return False, []
    objects = [item["metadata"] for item in cluster.list(crd.path)]
    names = sorted("/".join(filter(None, (item.get("namespace"), item["name"]))) for item in objects if item["name"] not in crd.own)
    if not names:
        return True, []
    told = "the CustomResourceDefinition %s stays, because %s exist: %s"
    return False, [told % (crd.name, crd.objects, and_more(names))]


def _leftovers(cluster: AnyCluster, component: mindcluster_stack.Component) -> list[dict[str, str]]:
    """The ConfigMaps that a component has written. Of a namespace that may not be read none, which is told by ``permissions``."""
    found = []
    for namespace, beginnings in component.writes:
        try:
            items = cluster.list("/api/v1/namespaces/%s/configmaps" % namespace)
        except NpuError as exc:
            if "missing" not in exc.details:
                raise
            continue
        names = sorted(item["metadata"]["name"] for item in items)
        found += [{"namespace": namespace, "name": name} for name in names if name.startswith(beginnings)]
    return found


def _is_ours(item: Mapping[str, Any]) -> bool:
    return (item["metadata"].get("labels") or {}).get(mindcluster_stack.MANAGED_BY) == mindcluster_stack.OURS
