# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``heal_settings`` of modules: the settings npu_heal_*, under the names they have there without that prefix.

Its documentation is the fragment heal_settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recovery_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.wedged_reboot import Guards
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.unknown_variables import unknown_variables


def guards_of(heal_settings: Mapping[str, Any]) -> Guards:
    """The Guards of the option's value. Raises NpuError when one of them makes no sense."""
    complete = valid_settings.settings("npu_heal", heal_settings)
    return Guards(**{field.name: complete[field.name] for field in dataclasses.fields(Guards)})


def check_variables(hosts: Iterable[AskedHost]) -> None:
    """Raise NpuError for variables of hosts that look like settings and are none."""
    names = {name for host in hosts for name in host["variables"] if name.startswith(("npu_heal", "npu_upgrade"))}
    unknown = unknown_variables(names)
    if unknown:
        raise NpuError("Nothing was done: %s." % "; ".join(unknown))


def plan(params: Mapping[str, Any], nodes: Iterable[Any], now: float) -> recovery_plan.HealPlan:
    """The plan of recoveries for Node objects, with a module's options ``hosts``, ``heal_settings`` and perhaps ``settings``."""
    auto = valid_settings.settings("npu_heal", params["heal_settings"])["auto"]
    upgrade = valid_settings.settings("npu_upgrade", params.get("settings"))
    by_name = {node["metadata"]["name"]: node for node in nodes}
    max_age, max_parallel = upgrade["approval_max_age"], upgrade["max_parallel"]
    return recovery_plan.make(params["hosts"], by_name, guards_of(params["heal_settings"]), now, auto, max_age, max_parallel)
