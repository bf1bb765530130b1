# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._notify import notices, webhook
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import UP_TO_DATE
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import files as report_files
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import report_table, rollout_report


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
        "components": {
            "type": "dict",
            "default": {},
            "options": {
                "order": {"type": "str"},
                "from": {"type": "list", "elements": "str", "default": []},
                "to": {"type": "str"},
                "changes": {"type": "list", "elements": "str", "default": []},
                "unfit": {"type": "list", "elements": "str", "default": []},
                "left_alone": {"type": "str"},
                "problem": {"type": "str"},
            },
            "apply_defaults": True,
        },
        "namespace": NAMESPACE,
        "directory": {"type": "path"},
        "notify": webhook.ARGUMENT,
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.show)
        clock = cluster.clock
        rows = rollout_report.rows(params["hosts"], params["plan"], _nodes(cluster), params["run"], clock.now())
        halted = maintenance_slots.Slots(cluster, params["namespace"], clock).view()["halted"]
        components = dict(params["components"], checked=self.check_mode)
        report = rollout_report.document(
            rows, params["run"], params["reason"], halted, clock.now(), params["workloads"], components
        )
        if not self.check_mode and any(node["outcome"] != UP_TO_DATE for node in report["nodes"]):
            webhook.notify(params["notify"], notices.end(report), cluster.address, screen.warn)
        files, unwritten = self._write(params["directory"], report)
        problems = [text for text in (report_table.problem(report), unwritten) if text]
        return {
            "changed": bool(files),
            "table": report_table.table(report),
            "problem": "\n".join(problems) or None,
            "halted": halted,
            "files": files,
            "report": report,
        }

    def _write(self, directory: str | None, report: dict[str, Any]) -> tuple[dict[str, str], str | None]:
        """({kind: path}, why it could not be written). People get to see the table in any case."""
        if not directory:
            return {}, None
        try:
            paths = report_files.paths(directory, report)
            if not self.check_mode:
                report_files.write(paths, report)
            return paths, None
        except NpuError as exc:
            return {}, exc.message


def _nodes(cluster: AnyCluster) -> dict[str, Object]:
    return {node["metadata"]["name"]: node for node in cluster.list("/api/v1/nodes")}
