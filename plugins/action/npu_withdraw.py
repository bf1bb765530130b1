# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import way_back as adopt_way_back
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import stack_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import withdrawal

ADMISSION_POLICIES = ("/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies")


class ActionModule(ClusterAction):
    """See the documentation of the module npu_withdraw."""

    ARGUMENTS = {
        "hosts": {"type": "list", "elements": "dict", "required": True},
        "namespace": NAMESPACE,
        "force": {"type": "bool", "default": False},
        "device_plugin_labels": {"type": "bool", "default": False},
        "timeout": {"type": "int", "default": 120},
        "settings": {"type": "dict", "default": {}},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_client.connect(params)
        nodes = cluster.nodes()
        pods = cluster.list("/api/v1/pods")
        drivers = drain_policy.DrainPolicy.of(pod_deletion=params["settings"].get("pod_deletion")).dra_drivers
        by_claim, unknown = pod_claims.npu_users(cluster, pods, drivers)
        daemonsets = cluster.list(pod_claims.DAEMONSETS)
        held = adopt_way_back.held(daemonsets)
        departures = withdrawal.leaving(params["hosts"], nodes, pods, by_claim, unknown, adopt_way_back.by_node(held, nodes))
        problem = withdrawal.refusal(departures, params["force"])
        if problem:
            raise NpuError(problem)
        remaining = withdrawal.others(departures, nodes)
        theirs = params["device_plugin_labels"]
        left = {} if theirs else withdrawal.left(departures)
        found = stack_checks.look(cluster, params["namespace"])
        stack, kept = (stack_checks.nothing(), []) if remaining else stack_checks.removal(cluster, found)
        if not remaining or any(one.adopted_from for one in departures):
            kept = kept + adopt_way_back.left(held)
        done = withdrawal.take_back(
            cluster,
            params["namespace"],
            departures,
            params["timeout"],
            self.check_mode,
            theirs,
            params["force"],
            noded=found["noded"].installed,
            dra_drivers=drivers,
            served=adopt_way_back.served(
                mindcluster_foreign.device_plugins(daemonsets, params["namespace"]), withdrawal.kept_labels(departures)
            ),
        )
        result = {
            "changed": bool(done),
            "done": done,
            "left": left,
            "left_in_cluster": kept,
            "stack": stack,
            "remaining": remaining,
            "last": not remaining,
            "namespace": params["namespace"],
            "nodes": {one.name: one.node_name for one in departures if one.node is not None},
            "service_monitors": cluster.get("/apis/monitoring.coreos.com/v1") is not None,
            "admission_policies": kube_client.has_resource(cluster, *ADMISSION_POLICIES),
            "msg": "; ".join(done) or "nothing of npuops.ascend is on the nodes",
        }
        if self.diff_mode:
            result["diff"] = {"before": {"to_remove": done} if done else {}, "after": {}}
        return result
