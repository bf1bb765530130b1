# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import vnpu_pause


class ActionModule(ClusterAction):
    """See the documentation of the module npu_vnpu_pause."""

    ARGUMENTS = {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "state": {"type": "str", "choices": ["paused", "resumed"], "default": "paused"},
        "namespace": NAMESPACE,
        "timeout": {"type": "int", "default": 120},
        "settings": {"type": "dict", "default": {}},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster, nodes = kube_client.connect(params), params["nodes"]
        if params["state"] == "resumed":
            done = vnpu_pause.resume(cluster, nodes, self.check_mode)
        else:
            drivers = drain_policy.DrainPolicy.of(pod_deletion=params["settings"].get("pod_deletion")).dra_drivers
            done = vnpu_pause.pause(cluster, nodes, params["namespace"], drivers, params["timeout"], self.check_mode)
        result: dict[str, Any] = {"changed": bool(done), "done": done, "msg": "; ".join(done) or "the nodes are %(state)s" % params}
        if self.diff_mode:
            result["diff"] = {"before": {}, "after": {"done": done} if done else {}}
        return result
