# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects


class ActionModule(ClusterAction):
    """See the documentation of the module npu_objects."""

    ARGUMENTS = {
        "definitions": {"type": "str", "required": True},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        objects = kube_objects.parse(params["definitions"])
        present = params["state"] == "present"
        changes = kube_objects.bring_about(kube_client.connect(params), objects, present, self.check_mode)
        result = {
            "changed": bool(changes),
            "changes": ["%(action)s %(label)s" % change for change in changes],
        }
        if self.diff_mode:
            result["diff"] = kube_objects.diff(changes)
        return result
