# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.person import person
from ansible_collections.npuops.ascend.plugins.plugin_utils._awx.job import job_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots


class ActionModule(ClusterAction):
    """See the documentation of the module npu_rollout_pause."""

    ARGUMENTS = {
        "state": {"type": "str", "choices": ["paused", "running"], "default": "paused"},
        "reason": {"type": "str", "default": ""},
        "namespace": NAMESPACE,
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        slots = maintenance_slots.Slots(cluster, params["namespace"], cluster.clock)
        before = slots.view()["halted"]
        who = person(job_of(self._task_vars, os.environ))
        if params["state"] == "paused":
            reason = params["reason"].strip() or "no reason given"
            now = maintenance_record.rfc3339(cluster.clock.now())
            after = maintenance_halt.paused(before, who, reason, now) if self.check_mode else slots.pause(who, reason)
            return _result(after != before, after)
        if not self.check_mode:
            slots.resume()
        return _result(maintenance_halt.is_pause(before), maintenance_halt.of_failure(before))


def _result(changed: bool, halted: maintenance_halt.Halt | None) -> dict[str, Any]:
    told = maintenance_halt.text(halted) if halted else "Rollouts are not paused, and not halted."
    return {"changed": changed, "halted": halted, "msg": told}
