# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.daemonset_rollout import DaemonSetRollout
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.deployment_rollout import DeploymentRollout
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object


class ActionModule(ClusterAction):
    """See the documentation of the module npu_objects."""

    ARGUMENTS = {
        "definitions": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "keep": {"type": "bool", "default": False},
        "rollout": {
            "type": "dict",
            "options": {
                "max_unavailable": {"type": "str", "default": "1"},
                "timeout": {"type": "int", "default": 300},
            },
        },
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        objects = kube_objects.parse(params["definitions"])
        present = params["state"] == "present"
        cluster = kube_client.connect(params)
        rollouts: list[dict[str, Any]] = []
        instead = {}
        if params["rollout"] is not None:
            pace = Pace(params["rollout"]["max_unavailable"], params["rollout"]["timeout"])
            clock = cluster.clock
            retrying = kube_retry.RetryingCluster(cluster, screen.warn, clock)

            def roll_out(definition: Object) -> kube_objects.Change | None:
                rollout = DaemonSetRollout(retrying, definition, pace, screen.show, clock)
                change = rollout.bring_about(self.check_mode)
                rollouts.extend(rollout.told)
                return change

            def deploy(definition: Object) -> kube_objects.Change | None:
                rollout = DeploymentRollout(retrying, definition, pace.timeout, screen.show, clock)
                return rollout.bring_about(self.check_mode)

            instead = {"DaemonSet": roll_out, "Deployment": deploy}
        changes = kube_objects.bring_about(cluster, objects, present, self.check_mode, instead, params["keep"])
        result = {
            "changed": bool(changes),
            "changes": ["%(action)s %(label)s" % change for change in changes],
            "rollouts": rollouts,
        }
        if self.diff_mode:
            result["diff"] = kube_objects.diff(changes)
        return result
