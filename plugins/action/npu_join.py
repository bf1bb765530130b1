# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import joined as node_joined
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import node_name

_MOST_TOLD = 20


class ActionModule(HostsAction):
    """See the documentation of the module npu_join."""

    ARGUMENTS = {"hosts": HOSTS}

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        hosts = [(host["name"], node_name.of_host(host)) for host in params["hosts"]]
        found = node_joined.of(hosts, kube_client.connect(params).nodes())
        accept = [{"host": host, "level": level} for host, level in found.accept.items()]
        return {"install": found.install, "accept": accept, "lines": _lines(found)}


def _lines(found: node_joined.Joined) -> list[str]:
    told = ["To be set up: %s" % and_more(found.install, _MOST_TOLD)] if found.install else []
    told += ["To be accepted: %s" % and_more(list(found.accept), _MOST_TOLD)] if found.accept else []
    told += ["Left for now: %s" % and_more(found.waiting, _MOST_TOLD)] if found.waiting else []
    return told or ["All nodes of the inventory that are in the cluster are set up."]
