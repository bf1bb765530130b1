# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible.utils.display import Display
from ansible_collections.npuops.ascend.plugins.module_utils import (
    _cluster,
    _knobs,
    _maintenance,
    _parking,
    _patience,
    _run_life,
    _selectors,
    _workloads,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._cluster_action import ClusterAction

_display = Display()


class ActionModule(ClusterAction):
    """See the documentation of the module npu_workloads."""

    ARGUMENTS = {
        "state": {"type": "str", "choices": ["parked", "restored"], "required": True},
        "resources": {"type": "list", "elements": "str", "default": []},
        "run": {"type": "str", "default": "by hand"},
        "namespace": {"type": "str", "default": "npu-operator"},
        "spare": {"type": "str", "default": ""},
        "timeout": {"type": "raw"},
        "heartbeat_limit": {"type": "raw"},
    }

    def act(self, params):
        clock = _patience.Clock()
        cluster = _patience.PatientCluster(_cluster.connect(params), _display.warning, clock)
        parking = _parking.Parking(cluster, params["run"], clock.now(), self.check_mode)
        life = _run_life.Life(cluster, params["namespace"], params["run"], clock)
        waiting = []
        if params["state"] == "parked":
            waiting = self._park(cluster, parking, life, params, clock)
        else:
            limit = _knobs.number(
                "heartbeat_limit", params["heartbeat_limit"], _maintenance.HEARTBEAT_LIMIT, "a number of seconds"
            )
            _parking.restore_all(cluster, parking, life, params["run"], limit, _display.display)
        return self._result(parking.outcome, waiting)

    def _park(self, cluster, parking, life, params, clock):
        """The workloads that still have pods at the limit."""
        timeout = _knobs.number("timeout", params["timeout"], 300, "a number of seconds")
        spared = _selectors.parse(params["spare"], "spare")
        found = _workloads.find(cluster, params["resources"], params["namespace"], spared)
        _workloads.require_permissions(cluster, found.workloads)
        parking.outcome.unseen += found.unseen
        if found.workloads and not self.check_mode:
            life.begin()
        parking.park(found.workloads)
        if self.check_mode:
            return []
        return _parking.wait_until_stopped(cluster, found.workloads, clock, timeout, _display.display, life.beat)

    def _result(self, outcome, waiting):
        lines = outcome.lines()
        lines += ["still has pods: %s" % workload.label for workload in waiting]
        result = {
            "changed": bool(outcome.changes),
            "parked": outcome.parked,
            "restored": outcome.restored,
            "left": outcome.left,
            "unseen": outcome.unseen + outcome.forbidden + outcome.unlisted,
            "waiting": [workload.label for workload in waiting],
            "lines": lines,
            "problem": outcome.problem,
        }
        if outcome.changes:
            counts = [(len(outcome.parked), "parked"), (len(outcome.restored), "restored"), (len(outcome.left), "left")]
            result["msg"] = "workloads: " + ", ".join("%d %s" % entry for entry in counts if entry[0])
        if self.diff_mode:
            result["diff"] = {
                key: {change["object"]: change[key] for change in outcome.changes} for key in ("before", "after")
            }
        return result
