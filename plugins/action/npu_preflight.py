# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import stack as mindcluster_stack
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._mirror.image_list import ImageList
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_users_by_node
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import checks as preflight_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import (
    component_checks,
    driver_image,
    install_permissions,
    node_checks,
    stack_checks,
    volcano_scheduler,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import component_images as preflight_component_images
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import report as preflight_report
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import verdict as maintenance_verdict
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config


class ActionModule(HostsAction):
    """See the documentation of the module npu_preflight."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "namespace": NAMESPACE,
        **wanted_components.ARGUMENTS,
        "image_pull_secrets": {"type": "list", "elements": "str", "default": []},
        "rollout_max_unavailable": {"type": "str", "default": "1"},
        "settings": {"type": "dict", "default": {}},
        "adopting": {"type": "bool", "default": False},
        "leave_out": {"type": "bool", "default": False},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_client.connect(params)
        namespace, version_line = params["namespace"], params["mindcluster_version_line"]
        components = wanted_components.of(params["components"])
        enabled = {part: wanted.enabled for part, wanted in components.items()}
        device_plugin = components["device_plugin"]
        policies = kube_client.has_resource(
            cluster, "/apis/admissionregistration.k8s.io/v1", install_permissions.ADMISSION_POLICIES[0]
        )
        needed = install_permissions.to_install(
            namespace,
            enabled["device_plugin"],
            enabled["exporter"],
            enabled["node_agent"],
            policies,
            _exists(cluster, namespace),
        )
        missing = kube_permissions.missing(cluster, needed)
        if any(verb == "list" for verb, *_resource in missing):
            raise NpuError(preflight_report.report([], kube_permissions.told(missing)))
        found = stack_checks.look(cluster, namespace)
        needed = [
            permission
            for part in mindcluster_stack.PARTS
            for permission in stack_checks.permissions(namespace, enabled[part], found[part], policies)
        ]
        if enabled["node_agent"] and policies and component_checks.device_taints(components["node_agent"].settings):
            needed += install_permissions.TO_TAINT_CHIPS
        missing += kube_permissions.missing(cluster, dict.fromkeys(needed))
        reasons = kube_permissions.told(missing)
        reasons += component_checks.settings_reasons(version_line, [wanted for wanted in components.values() if wanted.enabled])
        brought = stack_checks.brought(found, enabled.__getitem__)
        for part in mindcluster_stack.PARTS:
            if enabled[part]:
                reasons += stack_checks.reasons(cluster, found[part], components[part].settings, brought)
        reasons += component_checks.rollout_reasons(params["rollout_max_unavailable"])
        unable, notes = _pulled(cluster, params, components, bool(reasons))
        reasons += unable
        ours: Objects = []
        if device_plugin.enabled:
            unable, more = volcano_scheduler.judge(cluster, version_line, device_plugin.settings, enabled["volcano"])
            reasons += unable
            notes += more
            daemonsets = cluster.list("/apis/apps/v1/daemonsets")
            ours, foreign = component_checks.device_plugins(daemonsets, namespace, params["adopting"])
            reasons += foreign
        nodes = cluster.nodes()
        shared = component_checks.share_count(device_plugin.settings)
        hot_reset = component_checks.hot_reset(device_plugin.settings)
        drivers = drain_policy.DrainPolicy.of(pod_deletion=params["settings"].get("pod_deletion")).dra_drivers
        verdicts = preflight_checks.judge(
            params["hosts"],
            nodes,
            driver_image.resolve,
            ours,
            version_line if device_plugin.enabled else None,
            shared,
            hot_reset,
            lambda names: npu_users_by_node.on_nodes(cluster, names, drivers),
            adopting=params["adopting"],
        )
        problem = preflight_report.report(verdicts, reasons)
        blocked = [verdict.name for verdict in verdicts if verdict.reasons]
        if problem and (reasons or not params["leave_out"]):
            raise NpuError(problem, blocked=blocked)
        to_do = [verdict for verdict in verdicts if not verdict.reasons]
        problems = preflight_report.problems(verdicts)
        plan = [verdict.line() for verdict in to_do]
        plan += ["left out: " + line for line in problems] + ["cluster: " + note for note in notes]
        return {
            "hosts": {verdict.name: verdict.result() for verdict in verdicts},
            "ready": [verdict.name for verdict in verdicts if verdict.status == maintenance_verdict.READY],
            "look": _look([verdict for verdict in verdicts if verdict.may_be_settled]),
            "no_chip": [verdict.name for verdict in verdicts if verdict.status == maintenance_verdict.SKIPPED],
            "pause": [verdict.node_name for verdict in to_do if verdict.vnpu_pause],
            "plan": plan,
            "blocked": blocked,
            "problems": problems,
            "service_monitors": cluster.get("/apis/monitoring.coreos.com/v1") is not None,
            "admission_policies": policies,
            "kubelet_pods": node_checks.kubelets_tell_pods_apart(nodes.values()),
            "components": {
                "namespace": namespace,
                **{part: enabled[part] for part in ("device_plugin", "exporter", "node_agent", "noded")},
            },
            "stack": stack_checks.result(cluster, found, enabled.__getitem__),
        }


def _pulled(
    cluster: kube_client.Cluster, params: dict[str, Any], components: Mapping[str, wanted_components.Wanted], refused: bool
) -> tuple[list[str], list[str]]:
    """(reasons, notes) about the images of the components. ``refused``: whether it may be unknown already which they are."""
    reasons, notes = preflight_component_images.look_at_secrets(cluster, params["namespace"], params["image_pull_secrets"])
    if refused or not params["hosts"]:
        return reasons, notes
    images = ImageList()
    try:
        images.add_components(params["mindcluster_version_line"], components.values())
    except NpuError as exc:
        return [*reasons, exc.message], notes
    needed_by = {one["image"]: one["needed_by"] for one in images.result()}
    unable, more = preflight_component_images.look(needed_by, host_config.complete(params["hosts"][0]["config"]))
    return reasons + unable, notes + more


def _exists(cluster: kube_client.Cluster, namespace: str) -> bool:
    """Whether the namespace exists; also true without the permission to read it, which is then reported as missing anyway."""
    try:
        return cluster.get("/api/v1/namespaces/" + namespace) is not None
    except NpuError as exc:
        if "missing" in exc.details:
            return True
        raise


def _look(verdicts: list[CheckedHost]) -> dict[str, dict[str, dict[str, Any]]]:
    """The options of single hosts for a look at whether install has anything to do on them: of npu_driver, and of npu_validate."""
    driver, validation = {}, {}
    for verdict in verdicts:
        driver[verdict.name] = {"chip": verdict.family.get("key") or ""}
        if verdict.keep_release:
            driver[verdict.name]["release"] = verdict.keep_release
        version = verdict.expected_version
        validation[verdict.name] = {"version": version} if version else {}
    return {"driver": driver, "validation": validation}
