# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.person import person
from ansible_collections.npuops.ascend.plugins.plugin_utils._awx.job import job_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.release import Order, release
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import HEARTBEAT_LIMIT


class ActionModule(HostsAction):
    """See the documentation of the module npu_release."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "reason": {"type": "str", "default": ""},
        "force": {"type": "bool", "default": False},
        "heartbeat_limit": {"type": "int", "default": HEARTBEAT_LIMIT},
        "namespace": NAMESPACE,
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        names = [node_name.of_host(host) for host in params["hosts"]]
        order = Order(person(job_of(self._task_vars, os.environ)), params["reason"].strip() or "no reason given", params["force"])
        done = release(cluster, params["namespace"], names, order, params["heartbeat_limit"], screen.show, self.check_mode)
        lines = done.lines or ["No maintenance has left anything on %s." % (", ".join(names) if len(names) <= 4 else "these nodes")]
        if done.halted:
            lines.append(maintenance_halt.line(done.halted))
        problems = done.problems
        return {"changed": bool(done.names), "released": done.names, "lines": lines + problems, "problems": problems}
