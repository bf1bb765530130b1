# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """See the documentation of the module npu_objects."""

    ARGUMENTS = {
        "definitions": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }

    def act(self, params):
        objects = _objects.parse(params["definitions"])
        present = params["state"] == "present"
        changes = _objects.bring_about(_cluster.connect(params), objects, present, self.check_mode)
        result = {
            "changed": bool(changes),
            "changes": ["%(action)s %(label)s" % change for change in changes],
        }
        if self.diff_mode:
            result["diff"] = _objects.diff(changes)
        return result
