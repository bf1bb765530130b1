# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules that judge the whole fleet have in common: the option ``hosts``, and that it is made from variables.

The option's documentation is the fragment hosts.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import host_config
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import empty_answers, given, is_empty

HOSTS = {
    "type": "list",
    "elements": "dict",
    "required": True,
    "options": {
        "name": {"type": "str", "required": True},
        "facts": {"type": "dict"},
        "error": {"type": "str"},
        "pending": {"type": "str"},
        "unreachable": {"type": "bool", "default": False},
        "variables": {"type": "list", "elements": "str", "default": []},
        "validation": {"type": "dict"},
        "config": {"type": "dict", "default": {}, "options": host_config.argument_spec()},
    },
}

# The filter npu_settings also reads these from the hosts.
_SETTINGS = ("npu_upgrade_", "npu_heal_")
# Only the modules that judge the hosts read these.
_FALL_BACK = (
    "npu_driver_version",
    "npu_driver_repository",
    "npu_driver_image",
    "npu_driver_profile",
    "npu_firmware_policy",
    "npu_firmware_version",
    "npu_node_name",
)


class HostsAction(ClusterAction):
    """It judges hosts by their variables."""

    _hostvars: Any = None

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._hostvars = (task_vars or {}).get("hostvars")
        return super().run(tmp, task_vars)

    def check_play(self) -> None:
        """Refuse variables that half of the tasks would go by, and the judgement of the fleet by another value, or none."""
        self._check_vars()
        self._check_answers()

    def _check_answers(self) -> None:
        """Refuse empty extra variables that hide what the inventory says, where tasks read them by themselves."""
        names = [name for name in empty_answers(self._hostvars) if not falls_back(name)]
        if not names:
            return
        below = given(self._hostvars)
        for host in list(self._hostvars):
            for name in names:
                # None of these holds a secret that is worth hiding here: only whether there is a value is asked.
                if name in below[host] and not is_empty(below[host][name]):
                    raise NpuError(
                        "%s is empty (-e on the command line, or an answer in a survey), and in the inventory it has a value."
                        " Leave the variable out, or give it that value" % name
                    )

    def _check_vars(self) -> None:
        """Refuse variables set by the play itself that are read from each host.

        A variable of a play (vars: of import_playbook) is no variable of a host: half of the tasks would go by it, and
        the judgement of the fleet by another value, or none.
        """
        play = self._task.play
        lost = sorted(name for name in (play.vars if play is not None else ()) if _is_of_hosts(name))
        if lost:
            raise NpuError(
                "Set by the play (vars:), where it does not become a variable of the hosts: %s. Set it in the inventory,"
                " for example in group_vars/npu_nodes.yml, or with -e on the command line." % ", ".join(lost)
            )


def falls_back(name: str) -> bool:
    """Whether the variable ``name`` is read from the inventory wherever an empty extra variable hides it."""
    return name.startswith(_SETTINGS) or name in _FALL_BACK


def _is_of_hosts(name: str) -> bool:
    if not name.startswith("npu_"):
        return False
    return name.startswith(_SETTINGS) or name[len("npu_") :] in host_config.NAMES or wanted_components.is_variable(name)
