# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``recovery`` of modules: the variables npu_heal_*, under the names they have there without that prefix.

Its documentation is the fragment recovery.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import plan as heal_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.guards import Guards
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.unknown_variables import unknown_variables

RECOVERY = {
    "type": "dict",
    "default": {},
    "apply_defaults": True,
    "options": {
        "auto": {"type": "bool", "default": False},
        "old_approvals": {"type": "bool", "default": Guards.old_approvals},
        "min_uptime": {"type": "int", "default": Guards.min_uptime},
        "attempts": {"type": "int", "default": Guards.attempts},
        "max_parallel": {"type": "int", "default": Guards.max_parallel},
        "storm_percent": {"type": "int", "default": Guards.storm_percent},
        "storm_window": {"type": "int", "default": Guards.storm_window},
    },
}


def guards(recovery):
    """The Guards of the option's value. Raises NpuError when one of them makes no sense."""
    return Guards(**{name: value for name, value in recovery.items() if name != "auto"})


def check_variables(hosts):
    """Raise NpuError for variables of hosts that look like settings and are none: npu_heal_atuo would recover nobody."""
    names = {name for host in hosts for name in host["variables"] if name.startswith(("npu_heal", "npu_upgrade"))}
    unknown = unknown_variables(names)
    if unknown:
        raise NpuError("Nothing was done: %s." % "; ".join(unknown))


def plan(params, nodes, now):
    """The _heal.plan.HealPlan for Node objects, with the options ``hosts``, ``recovery`` and, if there is, ``approval_max_age``."""
    recovery = params["recovery"]
    by_name = {node["metadata"]["name"]: node for node in nodes}
    return heal_plan.make(params["hosts"], by_name, guards(recovery), now, recovery["auto"], params.get("approval_max_age", 0))
