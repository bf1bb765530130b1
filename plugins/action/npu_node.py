# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import LEVELS
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import LabelChanges
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate


class ActionModule(ClusterAction):
    """See the documentation of the module npu_node."""

    ARGUMENTS = {
        "nodes": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "labels": {"type": "dict", "default": {}},
                "annotations": {"type": "dict", "default": {}},
                "boot_id": {"type": "str"},
                "gate": {"type": "int", "default": 0, "choices": [0, *LEVELS]},
            },
        },
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = [
            {
                "name": entry["name"],
                "labels": _as_text(entry["labels"]),
                "annotations": _as_text(entry["annotations"]),
                "boot_id": entry["boot_id"],
                "spec": functools.partial(acceptance_gate.closing, wanted=entry["gate"]),
            }
            for entry in params["nodes"]
        ]
        changes = kube_client.apply_metadata(kube_client.connect(params), wanted, self.check_mode)
        result: dict[str, Any] = {"changed": bool(changes), "nodes": [change["name"] for change in changes]}
        if changes:
            result["msg"] = "Labels of %s" % ", ".join(result["nodes"])
        if self.diff_mode:
            result["diff"] = {
                "before": {change["name"]: change["before"] for change in changes},
                "after": {change["name"]: change["after"] for change in changes},
            }
        return result


def _as_text(values: dict[str, Any]) -> LabelChanges:
    """Label values are strings; YAML may have made 25.5 a number or yes a boolean."""
    return {key: None if value is None else str(value) for key, value in values.items()}
