# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.controller import ControllerAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._network.judgement import judge


class ActionModule(ControllerAction):
    """See the documentation of the module npu_network."""

    ARGUMENTS = {
        "hosts": {"type": "list", "elements": "dict", "required": True},
        "most_pings": {"type": "int", "default": 256},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        judgement = judge(params["hosts"], max(0, params["most_pings"]))
        return {
            "findings": [
                {"kind": finding.kind, "hosts": list(finding.hosts), "text": finding.text, "advice": finding.advice}
                for finding in judgement.findings
            ],
            "pings": judgement.pings,
            "lines": judgement.lines,
            "problems": judgement.problems,
        }
