# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the collection, as the argument specs of its roles and options_without_role.yml beside this file document them.

What may be set, its type, default and choices stand there and nowhere else.
"""

from __future__ import annotations

import copy
import functools
import os
from typing import Any

import yaml

# Argument specs have no ranges. A whole number is 0 or more, unless it or its dictionary stands here: (least, most or None).
_RANGES: dict[str, tuple[int, int | None]] = {
    "npu_component_log_levels": (-1, 3),
    "npu_component_log_max_age": (7, 700),
    "npu_component_log_max_backups": (1, 180),
    "npu_device_plugin_share_count": (1, 100),
    "npu_heal_storm_percent": (0, 100),
    "npu_heal_watch_interval": (1, None),
    "npu_volcano_log_level": (0, 5),
    "npu_validate_network_pings": (0, 4096),
    "npu_upgrade_heartbeat_limit": (1, None),
    "npu_upgrade_domain.max_parallel": (1, None),
    "npu_accept_level": (1, 3),
    "npu_install_gate": (0, 3),
}

# Nor have they a type for a number or a percentage: a whole number of 0 or more, or 1% to 100%. Their type is raw.
NUMBERS_OR_PERCENTAGES = frozenset({"npu_upgrade_max_parallel"})

# An option as Ansible documents it: type, description, default, choices, elements, options.
Option = dict[str, Any]

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROLES = os.path.join(_HERE, *[os.pardir] * 3, "roles")


@functools.lru_cache(maxsize=None)
def role_options(role: str) -> dict[str, Option]:
    """By name, the options of the role; of npu_component, those that the roles of the components share."""
    specs = _read(os.path.join(_ROLES, role, "meta", "argument_specs.yml"))["argument_specs"]
    return (specs.get("main") or specs["common"])["options"]


def own_options(role: str) -> dict[str, Option]:
    """The options with the role's prefix, by their names without it. Those of others belong to several roles."""
    prefix = role + "_"
    return {name[len(prefix) :]: option for name, option in role_options(role).items() if name.startswith(prefix)}


@functools.lru_cache(maxsize=None)
def role_defaults(role: str) -> dict[str, Any]:
    """By name, the defaults that the role has, where those that its documentation says in words have a value."""
    return _read(os.path.join(_ROLES, role, "defaults", "main.yml"))


@functools.lru_cache(maxsize=None)
def options_of_playbooks() -> dict[str, Option]:
    """By name, the options that belong to playbooks and to no role."""
    return _read(os.path.join(_HERE, "options_without_role.yml"))["options"]


@functools.lru_cache(maxsize=None)
def roles() -> tuple[str, ...]:
    """The names of the roles that have settings."""
    return tuple(sorted(role for role in os.listdir(_ROLES) if os.path.isdir(os.path.join(_ROLES, role, "defaults"))))


@functools.lru_cache(maxsize=None)
def known_variables() -> frozenset[str]:
    """The names of all variables that a user may set. Anything else that begins with npu_ is a mistake."""
    return frozenset(options_of_playbooks()).union(*(role_options(role) for role in roles()))


def option(variable: str) -> Option:
    """The option that documents the variable. Raises KeyError for one that is not documented."""
    if variable in options_of_playbooks():
        return options_of_playbooks()[variable]
    for role in roles():  # not read in advance: most modules ask for one that the first role has
        if variable in role_options(role):
            return role_options(role)[variable]
    raise KeyError(variable)


def range_of(variable: str) -> tuple[int, int | None]:
    """(least, most or None) of a variable that is a whole number."""
    return _RANGES.get(variable) or _RANGES.get(variable.partition(".")[0], (0, None))


def default(variable: str) -> Any:
    """The variable's default; of a dictionary with all its keys. None if it has none."""
    return default_of(option(variable))


def default_of(documented: Option) -> Any:
    """The default of an option; of a dictionary with all its keys. None if it has none."""
    if "options" in documented and "default" not in documented:
        return {key: default_of(inner) for key, inner in documented["options"].items()}
    return copy.deepcopy(documented.get("default"))


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as stream:
        # The C loader takes a tenth of the time, where PyYAML has it.
        return yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
