# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Kubernetes user must be allowed to do, to install."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.permissions import Permission
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import mindcluster

# What install creates in our namespace: (resource, group).
_DAEMONSET = ("daemonsets", "apps")
_SERVICE_ACCOUNT = ("serviceaccounts", "")
_NETWORK_POLICY = ("networkpolicies", "networking.k8s.io")

# And elsewhere, where rights may be limited to names: (resource, names).
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_SUFFIXES = [family["suffix"] for family in mindcluster.table()["families"].values()]
_PLUGIN_RIGHTS = [
    ("clusterroles", ["npuops-device-plugin-" + end for end in _SUFFIXES]),
    ("clusterrolebindings", ["npuops-device-plugin-" + end for end in _SUFFIXES]),
]
_AGENT_RIGHTS = [("clusterroles", ["npuops-node-agent"]), ("clusterrolebindings", ["npuops-node-agent"])]
_AGENT_EVENTS = [("roles", ["npuops-node-agent"]), ("rolebindings", ["npuops-node-agent"])]
ADMISSION_POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
_AGENT_POLICIES = ["npuops-node-agent-" + what for what in ("nodes", "events", "taints")]
# What the node agent needs to taint chips: an account can grant only rights that it has.
TO_TAINT_CHIPS: list[Permission] = [
    (verb, resource, "resource.k8s.io", None, None)
    for resource, verbs in (("resourceslices", ["list"]), ("devicetaintrules", ["list", "create", "patch", "delete"]))
    for verb in verbs
]
_PLUGIN_POLICIES = ["npuops-device-plugin-" + what for what in ("nodes", "pods", "configmaps", "events")]


def to_install(
    namespace: str,
    device_plugin: bool,
    exporter: bool,
    node_agent: bool = False,
    admission_policies: bool = False,
    namespace_exists: bool = True,
) -> list[Permission]:
    """What the Kubernetes user must be allowed to.

    What has the verb list, preflight itself cannot do without.
    """
    needed: list[Permission] = [
        ("list", "nodes", "", None, None),
        ("list", "daemonsets", "apps", None, None),
        # Whether the cluster has optional components of MindCluster, and their kinds.
        ("list", "deployments", "apps", None, None),
        ("list", "customresourcedefinitions", "apiextensions.k8s.io", None, None),
        ("list", "customresourcedefinitions", "apiextensions.k8s.io", None, None),
        ("patch", "nodes", "", None, None),
    ]
    components = device_plugin or exporter or node_agent
    if components:
        needed += [(verb, "namespaces", "", None, namespace) for verb in ("get", "patch")]
        # To replace the pods of a component that changes, and to restore its previous template.
        needed += [
            ("list", "pods", "", None, None),
            ("delete", "pods", "", namespace, None),
            ("list", "controllerrevisions", "apps", namespace, None),
        ]
        if not namespace_exists:
            needed.append(("create", "namespaces", "", None, None))
    for kind, wanted in (
        (_DAEMONSET, components),
        (_SERVICE_ACCOUNT, device_plugin or node_agent),
        (_NETWORK_POLICY, exporter or node_agent),
    ):
        if wanted:
            needed += [(verb, *kind, namespace, None) for verb in ("get", "create", "patch")]
    policies: list[str] = []
    if device_plugin:
        needed += of_named(_RBAC, _PLUGIN_RIGHTS)
        policies += _PLUGIN_POLICIES
    if node_agent:
        needed += of_named(_RBAC, _AGENT_RIGHTS) + of_named(_RBAC, _AGENT_EVENTS, "default")
        policies += _AGENT_POLICIES
    if admission_policies and policies:
        needed += of_named(_ADMISSION, [(resource, policies) for resource in ADMISSION_POLICIES])
    return list(dict.fromkeys(needed))


def of_named(group: str, objects: Iterable[tuple[str, Sequence[str]]], namespace: str | None = None) -> list[Permission]:
    """What applying ``objects`` needs; that creates something cannot be limited to a name."""
    needed: list[Permission] = []
    for resource, names in objects:
        needed.append(("create", resource, group, namespace, None))
        needed += [(verb, resource, group, namespace, name) for name in names for verb in ("get", "patch")]
    return needed
