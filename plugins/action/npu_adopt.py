# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.utils.display import Display
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.at_once import show_lines_at_once
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import survey as adopt_survey
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.adoption import Adoption
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.plan import Plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry

_display = Display()
show_lines_at_once()


class ActionModule(HostsAction):
    """See the documentation of the module npu_adopt."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "state": {"type": "str", "choices": ["adopted", "returned"], "default": "adopted"},
        "act": {"type": "bool", "default": False},
        "components": {"type": "dict", "default": {}},
        "namespace": {"type": "str", "default": "npu-operator"},
        "device_plugin_settings": {"type": "dict", "default": {}},
        "max_unavailable": {"type": "str", "default": "1"},
        "timeout": {"type": "int", "default": 300},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        clock = kube_retry.Clock()
        cluster = kube_retry.RetryingCluster(kube_client.connect(params), _display.warning, clock)
        back, namespace = params["state"] == "returned", params["namespace"]
        pace = Pace(params["max_unavailable"], params["timeout"])
        found = adopt_survey.look(cluster, namespace, params["device_plugin_settings"], back)
        plan = Plan(found, params["hosts"], cluster.nodes(), cluster.list("/api/v1/pods"), back)
        conflicts = plan.conflicts + adopt_survey.refused(cluster, found.found)
        if conflicts and (params["act"]):
            raise NpuError("Nothing was changed:\n%s" % "\n".join("  " + told for told in conflicts), conflicts=conflicts)
        adoption = Adoption(cluster, found, namespace, params["components"], back, pace, _display.display, clock)
        todo = adoption.todo(plan.due)
        result: dict[str, Any] = {
            "changed": False,
            "found": bool(found.found),
            "plan": plan.lines(conflicts),
            "conflicts": conflicts,
            "due": plan.due,
            "todo": todo,
            "done": [],
        }
        if params["act"] and self.check_mode:
            result["changed"] = bool(todo)
        elif params["act"]:
            result["done"] = adoption.carry_out(plan.due)
            result["changed"] = bool(result["done"])
        if self.diff_mode and params["act"]:
            result["diff"] = {"before": {"to_do": todo} if todo else {}, "after": {}}
        return result
