# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible import constants, context
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text
from ansible_collections.npuops.ascend.plugins.module_utils._image.mirrored import mirrored
from ansible_collections.npuops.ascend.plugins.module_utils._image.reference import parse_reference
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Facts
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction_dry_run, smoke_pod_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import image_white_list
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.firing_alerts import FiringAlerts
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import support as mindcluster_support
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import offers as node_offers
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import declared_kinds, workload_search
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking as workload_parking
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import forks as rollout_forks
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table, rollout_permissions, rollout_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_plan import RolloutPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import component_checks, driver_image
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import hook_files, host_config, valid_settings

_CONTROLLER_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class ActionModule(HostsAction):
    """See the documentation of the module npu_plan."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "namespace": NAMESPACE,
        "reason": {"type": "str", "choices": list(rollout_settings.REASONS), "default": "upgrade"},
        "settings": {"type": "dict", "default": {}},
        "enforce": {"type": "bool", "default": False},
        "components": {
            "type": "dict",
            "default": {},
            "options": {
                "version_line": {"type": "str"},
                "changes": {"type": "list", "elements": "str", "default": []},
                "left_alone": {"type": "str"},
                "problem": {"type": "str"},
                "device_plugin_settings": {"type": "dict"},
            },
        },
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        given = valid_settings.settings("npu_upgrade", params["settings"])
        settings = rollout_settings.RolloutSettings.of(given, params["reason"])
        alerts = FiringAlerts.of(given["alerts"])
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        rollout_permissions.check_readable(cluster, params["namespace"])
        missing = kube_permissions.missing(cluster, rollout_permissions.to_carry_out(params["namespace"]))
        snapshot = fleet_snapshot.FleetSnapshot.read(
            cluster, _registries(params["hosts"]), params["namespace"], settings.policy.dra_drivers
        )
        slots = maintenance_slots.Slots(cluster, params["namespace"], cluster.clock).view()
        may_evict = not any(resource == "pods/eviction" for _verb, resource, *_where in missing)
        found = None
        if settings.park:
            # What is parked needs no eviction, and no room elsewhere.
            declared, policy = declared_kinds.parse(given["workload_kinds"]), settings.policy
            resources = node_offers.resources(host.get("facts") or Facts() for host in params["hosts"])
            found = workload_search.find(cluster, resources, params["namespace"], policy.jobs, declared, policy.dra_drivers)
            missing += workload_search.missing_permissions(cluster, found.workloads)
            snapshot = snapshot.without(found.takes_away)
        lookups = _lookups(cluster, snapshot, may_evict)
        components = dict(params["components"], device_plugin=_device_plugin(params["components"]))
        plan = rollout_planner.make(params["hosts"], snapshot, slots, settings, lookups, components)
        if found:
            plan.cluster_notes += workload_parking.notes(found, plan.park)
        plan.cluster_notes += rollout_forks.notes(plan, context.CLIARGS.get("forks") or constants.DEFAULT_FORKS)
        plan.cluster_reasons += kube_permissions.told(missing) + hook_files.problems(given)
        if plan.ordered:
            plan.cluster_reasons += smoke_pod_dry_run.problems(cluster, given["smoke_pod"], plan.ordered[0].node_name)
        if alerts:
            notes, reasons = alerts.in_plan()
            plan.cluster_notes += notes
            plan.cluster_reasons += reasons
        return _result(plan, given["on_blocked"] if params["enforce"] else None)


def _lookups(
    cluster: kube_retry.RetryingCluster, snapshot: fleet_snapshot.FleetSnapshot, may_evict: bool
) -> rollout_settings.Lookups:
    white_list = image_white_list.WhiteList.find(cluster)
    return rollout_settings.Lookups(
        resolve=driver_image.resolve,
        size=driver_image.size,
        firmware=driver_image.firmware,
        support=mindcluster_support.judge,
        confirm=lambda pods: eviction_dry_run.confirm(cluster, pods, snapshot.budgets) if may_evict else [],
        now=cluster.clock.now(),
        own_boot_id=(read_text(_CONTROLLER_BOOT_ID) or "").strip() or None,
        own_pod=pod_view.own_pod_name(),
        white_list=white_list.why_not if white_list else None,
    )


def _device_plugin(components: dict[str, Any]) -> dict[str, Any] | None:
    """What of its settings the chips may exclude; None if it is not deployed."""
    settings = components.get("device_plugin_settings")
    if settings is None or not wanted_components.of({"device_plugin": settings})["device_plugin"].enabled:
        return None
    return {"share_count": component_checks.share_count(settings), "hot_reset": component_checks.hot_reset(settings)}


def _registries(hosts: list[AskedHost]) -> list[str]:
    """The registries that the hosts' driver images come from."""
    found = set()
    for host in hosts:
        config = host_config.complete(host["config"])
        text = config["driver_image"] or config["driver_repository"]
        if text and config["driver_source"] == "image":
            try:
                found.add(parse_reference(mirrored(text, config["registry_mirror"])).registry)
            except NpuError:
                pass  # told with the host's verdict
    return sorted(found)


def _result(plan: RolloutPlan, on_blocked: str | None) -> dict[str, Any]:
    """The plan as a result. What stops the run is ``refusal``: a failed task would bury the table under all of the data."""
    result = dict(
        plan.result(),
        table=plan_table.table(plan),
        due_nodes=plan.due_nodes,
        due_versions=plan.due_versions,
        settled_nodes=plan.settled_nodes,
        problem=plan.problem,
        refusal=None,
    )
    if (on_blocked == "refuse" and not plan.green) or (on_blocked == "defer" and plan.cluster_reasons):
        result["refusal"] = plan.problem
    result["msg"] = result["summary"]
    return result
