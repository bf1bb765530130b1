# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ansible import context
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.at_once import show_lines_at_once
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_list import HOSTS, HostsAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recoveries as heal_recoveries
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import watch as heal_watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import check_variables, plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.recovery_plan import HealPlan
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

show_lines_at_once()


class ActionModule(HostsAction):
    """See the documentation of the module npu_heal_watch."""

    ARGUMENTS = {
        "hosts": HOSTS,
        "settings": {"type": "dict", "default": {}},
        "heal_settings": {"type": "dict", "default": {}},
    }

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        check_variables(params["hosts"])
        # What makes no sense ends this now, not as a line in the watch.
        heal = valid_settings.settings("npu_heal", params["heal_settings"])
        slots = valid_settings.settings("npu_upgrade", params["settings"])["max_parallel"]
        command, clock, parent = heal_recoveries.own_command(), kube_retry.Clock(), os.getppid()
        nodes = heal_watch.Nodes(lambda: kube_client.connect(params))

        def look() -> HealPlan:
            return plan(params, nodes(), nodes.now())

        if self.check_mode:
            return look().result()

        def say(line: str) -> None:
            screen.show("%s  %s" % (maintenance_record.rfc3339(clock.now()), line) if line else "")

        with heal_recoveries.Recoveries() as recoveries:

            def start(excluded: Sequence[str], label: str) -> heal_recoveries.Recovery:
                arguments = heal_recoveries.without(excluded, context.CLIARGS.get("subset"))
                return recoveries.start([*command, *arguments], lambda line: screen.show(label + line))

            # What a percentage of the nodes comes to, each run works out, and waits for its slot.
            slots = 0 if isinstance(slots, str) else slots
            most = min(number or heal_watch.MOST_RUNS for number in (heal["max_parallel"], slots, heal_watch.MOST_RUNS))
            heal_watch.Watch(look, start, say, heal["watch_interval"], clock, most).run(
                # A worker outlives an Ansible that was killed.
                lambda: os.getppid() == parent
            )
        return {}
