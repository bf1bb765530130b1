# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which components an upgrade may change, and what their definitions need to know of hosts and cluster."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions as host_distributions
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names, wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import lines as plan_lines
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import checks as preflight_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import install_permissions, stack_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import node_checks as preflight_node_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost


def look(
    cluster: kube_client.Cluster,
    hosts: Sequence[AskedHost],
    nodes: Mapping[str, Object],
    namespace: str,
    enabled: Mapping[str, bool],
    halted: bool = False,
) -> dict[str, Any]:
    """{deploy, left_alone, accelerators, driver_path, kubelet_dir, containerd_dir, admission_policies, service_monitors,
    stack, kubelet_pods}, as the module npu_components documents them.

    ``hosts``: of the run; ``nodes``: all Nodes by name; ``enabled``: of all components, which ones the settings ask for;
    ``halted``: whether a halt keeps this run from changing any.
    """
    names = {item["metadata"]["name"] for item in cluster.list("/apis/apps/v1/namespaces/%s/daemonsets" % namespace)}
    stack = stack_checks.look(cluster, namespace)
    accelerators = sorted(name for name, daemonset in component_names.DEVICE_PLUGINS.items() if daemonset in names)
    installed = {
        "device_plugin": bool(accelerators),
        "exporter": component_names.EXPORTER in names,
        "node_agent": component_names.AGENT in names,
    } | {part: found.installed for part, found in stack.items()}
    policies = kube_client.has_resource(cluster, "/apis/admissionregistration.k8s.io/v1", install_permissions.ADMISSION_POLICIES[0])
    checked = [host for host in preflight_checks.inspect(hosts, nodes, None) if host.has_chips]
    distribution = host_distributions.named(checked[0].distribution if checked else "") or host_distributions.PLAIN
    deploy = {name: installed[name] and enabled[name] for name in wanted_components.PARTS}
    left_alone = None
    if any(deploy.values()):
        left_alone = (
            _of_others(nodes, hosts, [host.node_name for host in checked])
            or _no_common_path(checked)
            or _not_allowed(cluster, namespace, deploy, policies, stack)
            or ("the rollout is halted" if halted else None)
        )
    return {
        "deploy": deploy if left_alone is None else dict.fromkeys(wanted_components.PARTS, False),
        "left_alone": left_alone,
        "accelerators": accelerators,
        "driver_path": next((host.driver_path for host in checked if host.driver_path), None),
        "kubelet_dir": distribution.kubelet_dir,
        "containerd_dir": posixpath.dirname(distribution.address),
        "admission_policies": policies,
        "service_monitors": cluster.get("/apis/monitoring.coreos.com/v1") is not None,
        "stack": {part: {"crds": list(found.crds)} for part, found in stack.items()},
        "kubelet_pods": preflight_node_checks.kubelets_tell_pods_apart(nodes.values()),
    }


def _of_others(nodes: Mapping[str, Object], hosts: Sequence[AskedHost], known: Sequence[str]) -> str | None:
    """A component's DaemonSet is one for all nodes; a run with --limit is not to change nodes that it leaves out."""
    if not known:
        return "no NPU host answered"
    mine = {node_name.of_host(host) for host in hosts}
    others = [name for name, node in nodes.items() if name not in mine and kube_client.LABEL_PRESENT in kube_client.labels(node)]
    return "this run leaves out %s, and components change on all nodes or on none" % plan_lines.some(others) if others else None


def _no_common_path(checked: Sequence[CheckedHost]) -> str | None:
    """A definition mounts one driver path on all nodes. A single host, which may say any, does not decide for the others."""
    paths: dict[str, list[str]] = {}
    for host in checked:
        if host.driver_path:
            paths.setdefault(host.driver_path, []).append(host.name)
    if len(paths) > 1:
        told = ("%s on %s" % (one_line(path), plan_lines.some(names)) for path, names in sorted(paths.items()))
        return "the hosts have different driver paths, %s" % "; ".join(told)
    return None if paths else "no NPU host has a driver"


def _not_allowed(
    cluster: kube_client.Cluster,
    namespace: str,
    deploy: Mapping[str, bool],
    policies: bool,
    stack: Mapping[str, stack_checks.Found],
) -> str | None:
    needed = install_permissions.to_install(namespace, deploy["device_plugin"], deploy["exporter"], deploy["node_agent"], policies)
    for part, found in stack.items():
        if deploy[part]:
            needed += stack_checks.permissions(namespace, True, found, policies)
    missing = [kube_client.describe_permission(*entry) for entry in kube_permissions.missing(cluster, dict.fromkeys(needed))]
    return "the Kubernetes user may not %s" % ", nor ".join(missing[:3]) if missing else None
