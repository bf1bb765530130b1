# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.at_once import show_lines_at_once
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import findings as adopt_findings
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.adoption import Adoption
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.adoption_plan import Plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.turn import Turn
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign

show_lines_at_once()


class ActionModule(HostsAction):
    """See the documentation of the module npu_adopt."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "state": {"type": "str", "choices": ["adopted", "returned"], "default": "adopted"},
        "act": {"type": "bool", "default": False},
        "components": {"type": "dict", "default": {}},
        "namespace": NAMESPACE,
        "device_plugin_settings": {"type": "dict", "default": {}},
        "max_unavailable": {"type": "str", "default": "1"},
        "timeout": {"type": "int", "default": 300},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        clock = cluster.clock
        pace = Pace(params["max_unavailable"], params["timeout"])
        found, plan, adoption = self._look(cluster, cluster.nodes(), params, pace, clock)
        conflicts = plan.conflicts + adopt_findings.refused(cluster, found.found)
        if conflicts and params["act"]:
            raise _refusal(conflicts)
        todo = adoption.todo(plan.due)
        result: dict[str, Any] = {
            "changed": False,
            "found": bool(found.found),
            "plan": plan.lines(conflicts),
            "conflicts": conflicts,
            "due": plan.due,
            "todo": todo,
            "carry_out": mindcluster_foreign.give_back() if params["state"] == "returned" else mindcluster_foreign.adopt(),
            "done": [],
        }
        if params["act"] and self.check_mode:
            result["changed"] = bool(todo)
        elif params["act"] and found.found:
            turn = Turn(cluster, params["namespace"], params["state"], screen.show, clock)
            with turn.taken() as held:
                # Another run may have moved nodes until now.
                _found, plan, adoption = self._look(held, cluster.nodes(), params, pace, clock)
                if plan.conflicts:
                    raise _refusal(plan.conflicts)
                result["done"] = adoption.carry_out(plan.due)
            result["changed"] = bool(result["done"])
        if self.diff_mode and params["act"]:
            result["diff"] = {"before": {"to_do": todo} if todo else {}, "after": {}}
        return result

    @staticmethod
    def _look(
        cluster: AnyCluster, nodes: Mapping[str, Object], params: dict[str, Any], pace: Pace, clock: kube_retry.Clock
    ) -> tuple[adopt_findings.Survey, Plan, Adoption]:
        back, namespace = params["state"] == "returned", params["namespace"]
        found = adopt_findings.look(cluster, namespace, params["device_plugin_settings"], back)
        plan = Plan(found, params["hosts"], nodes, cluster.list("/api/v1/pods"), back)
        return found, plan, Adoption(cluster, found, namespace, params["components"], back, pace, screen.show, clock)


def _refusal(conflicts: Sequence[str]) -> NpuError:
    return NpuError("Nothing was changed:\n%s" % "\n".join("  " + told for told in conflicts), conflicts=list(conflicts))
