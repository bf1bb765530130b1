# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import acceptance_document, collective_check, publication
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_nodes import Findings
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.at_once import show_lines_at_once
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.interruptible import Interruptible
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import waiting_acceptances
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.waiting_acceptances import WaitingAcceptance
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import rfc3339

show_lines_at_once()


class ActionModule(ClusterAction):
    """See the documentation of the module npu_accept_collective."""

    ARGUMENTS = {"acceptances": {"type": "list", "elements": "dict", "required": True}}

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        acceptances = waiting_acceptances.read(params["acceptances"])
        found = {} if self.check_mode else self._findings(params, acceptances)
        return {"acceptances": {one["host"]: self._completed(params, one, found) for one in acceptances}}

    def _findings(self, params: dict[str, Any], acceptances: list[WaitingAcceptance]) -> Findings:
        with Interruptible() as clock:
            try:
                cluster = RetryingCluster(self._connected(params), screen.warn, clock)
            except kube_client.NoCredentials:
                return {}  # hosts can be accepted before there is a cluster
            except NpuError as exc:
                return collective_check.not_run(acceptances, exc.message)
            return collective_check.findings(cluster, acceptances, screen.show, clock)

    def _completed(self, params: dict[str, Any], acceptance: WaitingAcceptance, findings: Findings) -> dict[str, Any]:
        """One acceptance after its end; a document that cannot be written is not the end of the others."""
        document, request = acceptance["document"], acceptance["request"]
        found = findings.get(document["node"])
        if found:
            document = acceptance_document.completed(document, found, request["ignored"], rfc3339(time.time()))
        directory, connect = (None, None) if self.check_mode else (request["directory"], lambda: self._connected(params))
        try:
            return publication.publish(document, directory, connect, acceptance["boot_id"])
        except NpuError as exc:
            lines = [*acceptance_document.lines(document), "  %s" % exc.message]
            return {"document": document, "path": None, "lines": lines, "problem": "%s. %s" % (lines[0], exc.message)}
