# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import time

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster, _fleet
from ansible_collections.npuops.ascend.plugins.plugin_utils._hosts import HostsAction


class ActionModule(HostsAction):
    """See the documentation of the module npu_fleet_info."""

    ARGUMENTS = {
        "hosts": {"type": "list", "elements": "dict", "required": True},
        "namespace": {"type": "str", "default": "npu-operator"},
        "wait_timeout": {"type": "int", "default": 0},
    }

    def act(self, params):
        look = functools.partial(_look, _cluster.connect(params), params["namespace"], params["hosts"])
        deadline = time.monotonic() + params["wait_timeout"]
        rows = look()
        while time.monotonic() < deadline and _fleet.may_get_better(rows):
            time.sleep(1)
            rows = look()
        return {
            "fleet": rows,
            "table": _fleet.table(rows),
            "problems": [_fleet.line(row) for row in rows if row["host"] and not _fleet.healthy(row)],
        }


def _look(cluster, namespace, hosts):
    selector = "%s=%s" % _fleet.PLUGIN_POD_LABEL
    pods = cluster.list("/api/v1/namespaces/%s/pods" % namespace, label_selector=selector)
    return _fleet.rows(hosts, _fleet.node_views(cluster.nodes(), pods))
