# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ansible.utils.display import Display
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.person import person
from ansible_collections.npuops.ascend.plugins.plugin_utils._awx.job import job_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.release import OUTCOME, Order, Releasing, run_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
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
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), Display().warning)
        slots = maintenance_slots.Slots(cluster, params["namespace"], cluster.clock)
        names = [node_name.of_host(host) for host in params["hosts"]]
        order = Order(person(job_of(self._task_vars, os.environ)), params["reason"].strip() or "no reason given", params["force"])
        alive = _alive(cluster, params, names)
        seen = slots.view()
        released, lines, problems = [], [], []
        for name in names:
            releasing = Releasing(cluster, slots, name, order, cluster.clock)
            try:
                if releasing.run(alive, seen["holders"].get(name), self.check_mode):
                    released.append(name)
                    lines.append("%s: %s" % (name, releasing.told))
            except NpuError as exc:
                problems.append("%s was not released: %s" % (name, sentence(exc.message)))
        lines = lines or ["No maintenance has left anything on %s." % (", ".join(names) if len(names) <= 4 else "these nodes")]
        if seen["halted"]:
            lines.append(maintenance_halt.line(seen["halted"]))
        return {"changed": bool(released), "released": released, "lines": lines + problems, "problems": problems}


def _alive(cluster: kube_retry.RetryingCluster, params: dict[str, Any], names: Sequence[str]) -> set[str]:
    """The runs that have one of the nodes in maintenance and show that they live, after watching them if there are any."""
    nodes, runs = cluster.nodes(), set()
    for name in names:
        try:
            runs.add(run_of(nodes[name]) if name in nodes else None)
        except NpuError:
            continue  # told when it is to be released
    found = sorted(run for run in runs if run)
    if not found:
        return set()
    life = run_liveness.Life(cluster, params["namespace"], OUTCOME, cluster.clock)
    return run_liveness.living(cluster, found, life, params["heartbeat_limit"], cluster.clock, Display().display)
