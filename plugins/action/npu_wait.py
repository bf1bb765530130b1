# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status


class ActionModule(ClusterAction):
    """See the documentation of the module npu_wait."""

    ARGUMENTS = {
        "daemonsets": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "namespace": {"type": "str", "required": True},
                "name": {"type": "str", "required": True},
                "nodes": {"type": "list", "elements": "str"},
            },
        },
        "nodes": {
            "type": "list",
            "elements": "dict",
            "default": [],
            "options": {
                "name": {"type": "str", "required": True},
                "resource": {"type": "str", "required": True},
                "count": {"type": "int", "required": True},
                "least": {"type": "int"},
            },
        },
        "timeout": {"type": "int", "default": 300},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.check_mode:
            # What the tasks before would have changed is not there to be waited for.
            return {"msg": "Would wait for the rollout"}
        cluster = kube_client.connect(params)
        snapshot = kube_daemonsets.wait(cluster, params["daemonsets"], params["nodes"], params["timeout"])
        views = report_status.node_views(snapshot.nodes, snapshot.all_pods(), cluster.clock.now())
        return {"daemonsets": snapshot.summary(), "nodes": views}
