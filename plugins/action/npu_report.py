# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import (
    _cluster,
    _patience,
    _report,
    _report_files,
    _report_table,
    _slots,
)
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """See the documentation of the module npu_report."""

    ARGUMENTS = {
        "run": {"type": "str", "required": True},
        "reason": {"type": "str", "choices": ["upgrade", "rollback", "recovery"], "default": "upgrade"},
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
        "directory": {"type": "path"},
    }

    def act(self, params):
        clock = _patience.Clock()
        cluster = _patience.PatientCluster(_cluster.connect(params), self._display.display, clock)
        rows = _report.rows(params["hosts"], params["plan"], _nodes(cluster), params["run"], clock.now())
        halted = _slots.Slots(cluster, params["namespace"], clock).view()["halted"]
        report = _report.document(rows, params["run"], params["reason"], halted, clock.now(), params["workloads"])
        files, unwritten = self._write(params["directory"], report)
        problems = [text for text in (_report_table.problem(report), unwritten) if text]
        return {
            "changed": bool(files),
            "table": _report_table.table(report),
            "problem": "\n".join(problems) or None,
            "halted": halted,
            "files": files,
            "report": report,
        }

    def _write(self, directory, report):
        """({kind: path}, why it could not be written). People get to see the table in any case."""
        if not directory:
            return {}, None
        try:
            paths = _report_files.paths(directory, report)
            if not self.check_mode:
                _report_files.write(paths, report)
            return paths, None
        except NpuError as exc:
            return {}, exc.message


def _nodes(cluster):
    return {node["metadata"]["name"]: node for node in cluster.list("/api/v1/nodes")}
