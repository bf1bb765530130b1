# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import check_variables, plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import hook_files, valid_settings


class ActionModule(HostsAction):
    """See the documentation of the module npu_heal."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "settings": {"type": "dict", "default": {}},
        "heal_settings": {"type": "dict", "default": {}},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        check_variables(params["hosts"])
        given = valid_settings.settings("npu_upgrade", params["settings"])
        _refuse(hook_files.problems(given, hook_files.OF_A_RECOVERY))
        cluster = kube_retry.RetryingCluster.of(kube_client.connect(params), screen.warn)
        made = plan(params, cluster.list("/api/v1/nodes"), cluster.clock.now())
        if made.due:
            _refuse(smoke_pod_dry_run.problems(cluster, given["smoke_pod"], made.due[0].name))
        return made.result()


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise NpuError("Nothing was done: %s." % "; ".join(wrong))
