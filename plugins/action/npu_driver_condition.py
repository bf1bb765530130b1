# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import conditions_removal


class ActionModule(ClusterAction):
    """See the documentation of the module npu_driver_condition."""

    ARGUMENTS = {
        "state": {"type": "str", "choices": ["absent"], "required": True},
        "namespace": NAMESPACE,
        "timeout": {"type": "int", "default": 120},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_client.connect(params)
        done = conditions_removal.remove_all(cluster, params["namespace"], params["timeout"], self.check_mode)
        result = {"changed": bool(done), "done": done, "msg": "; ".join(done) or "no node has the conditions"}
        if self.diff_mode:
            result["diff"] = {"before": {"to_remove": done} if done else {}, "after": {}}
        return result
