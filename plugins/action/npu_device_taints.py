# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import taints_removal


class ActionModule(ClusterAction):
    """See the documentation of the module npu_device_taints."""

    ARGUMENTS = {"state": {"type": "str", "choices": ["absent"], "required": True}}

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        told = taints_removal.remove(kube_client.connect(params), check_mode=self.check_mode)
        done = [told] if told else []
        result = {"changed": bool(done), "done": done, "msg": told or "there are no DeviceTaintRules of node agents"}
        if self.diff_mode:
            result["diff"] = {"before": {"to_remove": done} if done else {}, "after": {}}
        return result
