# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import time
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import rollout_view
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import isolated_chips, unhealthy_devices
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.halt import Halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import Slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import drift, fleet_metrics, metrics_file
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status


class ActionModule(HostsAction):
    """See the documentation of the module npu_status."""

    ARGUMENTS = {
        "hosts": {"type": "list", "elements": "dict", "required": True},
        "namespace": NAMESPACE,
        "settings": {"type": "dict", "default": {}},
        "heal_settings": {"type": "dict", "default": {}},
        "wait_timeout": {"type": "int", "default": 0},
        "metrics_file": {"type": "path"},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        metrics_file.check(params["metrics_file"])
        cluster = kube_client.connect(params)
        look = functools.partial(_look, cluster, params)
        deadline = time.monotonic() + params["wait_timeout"]
        rows, storm = look()
        while time.monotonic() < deadline and report_status.may_get_better(rows):
            time.sleep(1)
            try:
                rows, storm = look()
            except (kube_client.Unreachable, kube_client.TooManyRequests):
                # The next look may be answered. Nodes that may get better are not healthy yet, so nothing is called so by mistake.
                if time.monotonic() >= deadline:
                    raise
        rollouts, told = rollout_view.read(cluster, params["namespace"], cluster.clock.now())
        halted, unknown = _halt(cluster, params["namespace"])
        fleet = fleet_metrics.Fleet(rows, storm, halted, unknown is None, rollouts)
        table = report_status.table(rows) + (["", "STORM: %s" % storm] if storm else []) + _told(halted, unknown)
        return {
            "fleet": rows,
            "storm": storm,
            "halted": halted,
            "rollouts": rollouts,
            "table": table + (["", "Component rollouts:", *("  " + line for line in told)] if told else []),
            "problems": [report_status.line(row) for row in rows if row["host"] and not report_status.healthy(row)],
            "drift": drift.lines(rows, storm, halted, unknown),
            "unwritten": self._write(params["metrics_file"], fleet),
        }

    def _write(self, path: str | None, fleet: fleet_metrics.Fleet) -> str | None:
        """Why the metrics could not be written, or None. People get to see the table in any case."""
        if path is None or self.check_mode:
            return None
        try:
            metrics_file.write(path, fleet_metrics.text(fleet, time.time()))
        except NpuError as exc:
            return exc.message
        return None


def _halt(cluster: kube_client.Cluster, namespace: str) -> tuple[Halt | None, str | None]:
    """(the halt of the rollouts or None, why it is not known whether there is one)."""
    try:
        return Slots(cluster, namespace, cluster.clock).view()["halted"], None
    except NpuError as exc:
        return None, "Whether rollouts are halted is unknown: %s" % one_line(exc.message)


def _told(halted: Halt | None, unknown: str | None) -> list[str]:
    """Lines for people, an empty one before them."""
    if unknown:
        return ["", unknown]
    return ["", maintenance_halt.line(halted)] if halted else []


def _look(cluster: kube_client.Cluster, params: dict[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
    """(rows, the sentence about a storm or None)."""
    pods = cluster.list("/api/v1/namespaces/%s/pods" % params["namespace"])
    nodes = cluster.nodes()
    now = cluster.clock.now()
    recovery = plan(params, nodes.values(), now)
    views = report_status.node_views(
        nodes, pods, now, recovery, unhealthy_devices.read(cluster, nodes), isolated_chips.read(cluster, nodes)
    )
    return report_status.rows(params["hosts"], views), recovery.storm
