# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE, ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._notify import notices, webhook
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import pending as maintenance_pending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings


class ActionModule(ClusterAction):
    """See the documentation of the module npu_pending."""

    ARGUMENTS = {
        "due": {"type": "list", "elements": "str", "required": True},
        "versions": {"type": "dict", "default": {}},
        "settled": {"type": "list", "elements": "str", "default": []},
        "settings": {"type": "dict", "default": {}},
        "namespace": NAMESPACE,
        "run": {"type": "str", "default": ""},
        "reason": {"type": "str", "choices": list(maintenance_record.REASONS), "default": maintenance_record.UPGRADE_REASON},
        "notify": webhook.ARGUMENT,
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        settings = valid_settings.settings("npu_upgrade", params["settings"])
        webhook.Webhook.of(params["notify"])  # one that makes no sense stops the run before anything is changed
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        slots = maintenance_slots.Slots(cluster, params["namespace"], cluster.clock)
        cleared = None
        if settings["clear_halt"]:
            cleared = slots.view()["halted"] if self.check_mode else slots.clear_halt()
        # A run that was killed with its last step to do, giving the slot back, leaves a node on which nothing is due.
        freed = [] if self.check_mode else slots.sweep()
        changes = maintenance_pending.label(
            cluster,
            params["due"],
            params["settled"],
            self.check_mode,
            versions={name: str(version) for name, version in params["versions"].items()},
        )
        result: dict[str, Any] = {
            "changed": bool(changes or cleared or freed),
            "nodes": [change["name"] for change in changes],
            "cleared": cleared,
            "freed": freed,
        }
        told = ["cleared the halt of %(when)s: %(why)s" % cleared] if cleared else []
        if freed:
            told.append("released stale slots of: %s" % ", ".join(freed))
        if changes:
            told.append("labels or annotations of %s" % ", ".join(result["nodes"]))
        if told:
            result["msg"] = "; ".join(told)
        if params["due"] and not self.check_mode:
            notice = notices.begin(params["run"], params["reason"], params["due"], params["versions"])
            webhook.notify(params["notify"], notice, cluster.address, screen.warn)
        if self.diff_mode:
            result["diff"] = {key: {change["name"]: change[key] for change in changes} for key in ("before", "after")}
        return result
