# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.drain_policy import DrainPolicy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import declared_kinds, workload_kinds, workload_search
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking as workload_parking
from ansible_collections.npuops.ascend.plugins.plugin_utils._park.kind_table import Key, Stop
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings


class ActionModule(ClusterAction):
    """See the documentation of the module npu_workloads."""

    ARGUMENTS = {
        "state": {"type": "str", "choices": ["parked", "restored"], "required": True},
        "resources": {"type": "list", "elements": "str", "default": []},
        "run": {"type": "str", "default": "by hand"},
        "namespace": NAMESPACE,
        "settings": {"type": "dict", "default": {}},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        settings = valid_settings.settings("npu_upgrade", params["settings"])
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        clock = cluster.clock
        parking = workload_parking.Parking(cluster, params["run"], clock.now(), self.check_mode)
        life = run_liveness.Life(cluster, params["namespace"], params["run"], clock)
        waiting = []
        if params["state"] == "parked":
            waiting = self._park(cluster, parking, life, params, settings, clock)
        else:
            self._restore(cluster, parking, life, params, settings)
        return self._result(parking.outcome, waiting)

    def _park(
        self,
        cluster: kube_retry.RetryingCluster,
        parking: workload_parking.Parking,
        life: run_liveness.Life,
        params: dict[str, Any],
        settings: dict[str, Any],
        clock: Clock,
    ) -> list[workload_kinds.Workload]:
        """The workloads that still have pods at the limit."""
        timeout = settings["pod_deletion"]["timeout"]
        declared = declared_kinds.parse(settings["workload_kinds"])
        policy = DrainPolicy.of(settings["wait_for_jobs"], settings["pod_deletion"], settings["drain"])
        found = workload_search.find(cluster, params["resources"], params["namespace"], policy.jobs, declared, policy.dra_drivers)
        workload_search.require_permissions(cluster, found.workloads)
        parking.outcome.unseen += found.unseen
        if found.workloads and not self.check_mode:
            life.begin()
            declared_kinds.remember(cluster, params["namespace"], declared, found.workloads)
        parking.park(found.workloads)
        parking.outcome.left += [
            {"object": label, "reason": "it cannot be parked: " + why, "repair": False, "command": None}
            for label, why in found.unstoppable(params["resources"])
        ]
        if self.check_mode:
            return []
        return workload_parking.wait_until_stopped(cluster, found.workloads, clock, timeout, screen.show, life.beat)

    def _restore(
        self,
        cluster: kube_retry.RetryingCluster,
        parking: workload_parking.Parking,
        life: run_liveness.Life,
        params: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        declared = declared_kinds.parse(settings["workload_kinds"])
        outcome = parking.outcome
        remembered: dict[Key, Stop] = {}
        try:
            remembered = declared_kinds.remembered(cluster, params["namespace"])
            declared.update(remembered)
        except NpuError as exc:
            (outcome.unlisted if exc.details.get("missing") is None else outcome.forbidden).append(exc.message)
        limit = settings["heartbeat_limit"]
        workload_parking.restore_all(cluster, parking, life, params["run"], limit, screen.show, declared)
        doubts = outcome.left or outcome.unseen or outcome.forbidden or outcome.unlisted
        if remembered and not self.check_mode and not doubts:
            declared_kinds.forget(cluster, params["namespace"])

    def _result(self, outcome: workload_parking.Outcome, waiting: list[workload_kinds.Workload]) -> dict[str, Any]:
        lines = outcome.lines()
        lines += ["still has pods: %s" % workload.label for workload in waiting]
        result = {
            "changed": bool(outcome.changes),
            "parked": outcome.parked,
            "restored": outcome.restored,
            "left": outcome.left,
            "unseen": outcome.unseen + outcome.forbidden + outcome.unlisted,
            "waiting": [workload.label for workload in waiting],
            "lines": lines,
            "problem": outcome.problem,
        }
        if outcome.changes:
            counts = [(len(outcome.parked), "parked"), (len(outcome.restored), "restored"), (len(outcome.left), "left")]
            result["msg"] = "workloads: " + ", ".join("%d %s" % entry for entry in counts if entry[0])
        if self.diff_mode:
            result["diff"] = {key: {change["object"]: change[key] for change in outcome.changes} for key in ("before", "after")}
        return result
