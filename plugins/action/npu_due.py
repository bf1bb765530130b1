# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _due, _knobs
from ansible_collections.npuops.ascend.plugins.plugin_utils._cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """See the documentation of the module npu_due."""

    ARGUMENTS = {
        "due": {"type": "list", "elements": "str", "required": True},
        "settled": {"type": "list", "elements": "str", "default": []},
        "retry": {"type": "raw"},
    }

    def act(self, params):
        retry = _knobs.flag("npu_upgrade_retry", params["retry"], False)
        changes = _due.label(_cluster.connect(params), params["due"], params["settled"], retry, self.check_mode)
        result = {"changed": bool(changes), "nodes": [change["name"] for change in changes]}
        if changes:
            result["msg"] = "driver-upgrade-state of %s" % ", ".join(result["nodes"])
        if self.diff_mode:
            result["diff"] = {key: {change["name"]: change[key] for change in changes} for key in ("before", "after")}
        return result
