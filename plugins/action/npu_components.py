# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import NAMESPACE
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import component_order, installed_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import component_checks
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import UPGRADE_REASON


class ActionModule(HostsAction):
    """See the documentation of the module npu_components."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "namespace": NAMESPACE,
        **wanted_components.ARGUMENTS,
        "heed_halt": {"type": "bool", "default": False},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        cluster = kube_client.connect(params)
        components = wanted_components.of(params["components"])
        enabled = {part: wanted.enabled for part, wanted in components.items()}
        nodes = cluster.nodes()
        halted = (
            maintenance_slots.Slots(cluster, params["namespace"], cluster.clock).view()["halted"] if params["heed_halt"] else None
        )
        found = installed_components.look(
            cluster, params["hosts"], nodes, params["namespace"], enabled, maintenance_halt.binds(halted, UPGRADE_REASON)
        )
        wanted = [components[name] for name, deploy in found["deploy"].items() if deploy]
        reasons = component_checks.settings_reasons(params["mindcluster_version_line"], wanted)
        if reasons:
            raise NpuError("; ".join(reasons))
        of_mindcluster = any(deployed for name, deployed in found["deploy"].items() if name != "node_agent")
        ours = [node for node in nodes.values() if kube_client.LABEL_PRESENT in kube_client.labels(node)]
        return dict(
            found,
            version_line=params["mindcluster_version_line"] if of_mindcluster else None,
            unfit=component_order.unfit(params["mindcluster_version_line"], ours) if of_mindcluster else [],
        )
