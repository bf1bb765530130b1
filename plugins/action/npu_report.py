# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _patience, _report, _slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """See the documentation of the module npu_report."""

    ARGUMENTS = {
        "run": {"type": "str", "required": True},
        "reason": {"type": "str", "choices": ["upgrade", "rollback"], "default": "upgrade"},
        "plan": {"type": "dict", "required": True},
        "hosts": {
            "type": "list",
            "elements": "dict",
            "required": True,
            "options": {
                "name": {"type": "str", "required": True},
                "outcome": {"type": "str"},
                "reason": {"type": "str"},
            },
        },
        "workloads": {
            "type": "dict",
            "default": {},
            "options": {
                "parked": {"type": "list", "elements": "dict", "default": []},
                "restored": {"type": "list", "elements": "dict", "default": []},
                "left": {"type": "list", "elements": "dict", "default": []},
                "problem": {"type": "str"},
            },
            "apply_defaults": True,
        },
        "namespace": {"type": "str", "default": "npu-operator"},
    }

    def act(self, params):
        clock = _patience.Clock()
        cluster = _patience.PatientCluster(_cluster.connect(params), self._display.display, clock)
        rows = _report.rows(params["hosts"], params["plan"], _nodes(cluster), params["run"])
        halted = _slots.Slots(cluster, params["namespace"], clock).view()["halted"]
        workloads = dict(params["workloads"])
        problems = (_report.problem(rows, halted, params["reason"]), workloads.pop("problem"))
        problem = "\n".join(text for text in problems if text) or None
        return {
            "table": _report.table(rows) + _report.awaiting(rows),
            "problem": problem,
            "halted": halted,
            "report": {
                "run": params["run"],
                "reason": params["reason"],
                "halted": halted,
                "nodes": [row.result() for row in rows],
                "workloads": workloads,
            },
        }


def _nodes(cluster):
    return {node["metadata"]["name"]: node for node in cluster.list("/api/v1/nodes")}
