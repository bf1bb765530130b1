# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that are present without a value, such as ``npu_driver_root:`` in a file of variables.

Such a variable hides the default of its role. If that is also empty, or is used instead of None, it is as if it were absent.
Any other would be the text None in a path or a manifest, or a Python error.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

# _settings.valid_settings reads them.
_RESOLVED = ("npu_upgrade", "npu_heal")
# The filter npu_hosts leaves them out, and nothing else reads them.
_OF_HOSTS = frozenset({"npu_driver_version"})


@functools.lru_cache(maxsize=None)
def need_value() -> frozenset[str]:
    """The names of the variables that are not to be present without a value."""
    return frozenset(_defaults()) - _OF_HOSTS


# Playbooks for the fleet do not read these, and hosts may have what is costly to look up for them.
OF_OTHERS = ("npu_awx_", "npu_heal_service_")


def check(variables: Mapping[str, Any], fleet: bool = False) -> None:
    """Raise NpuError for the ``variables`` without a value that need one.

    ``variables``: as Ansible gives them to an action, not evaluated; with ``fleet``, hostvars of a host, which evaluate what is
    read: only those that playbooks for the fleet read, as others may be secrets that are looked up.
    """
    names = [name for name in variables if name.startswith("npu_")]
    if fleet:
        names = [name for name in names if name in need_value() and not name.startswith(OF_OTHERS)]
    empty = [name for name in names if variables[name] is None]
    # What needs a value is in files, which an action reads only if a variable has none.
    without = sorted(name for name in empty if name in need_value())
    if without:
        raise NpuError(
            "; ".join(
                "%s has no value. Leave it out for its default%s, or give it a value" % (name, _told(name)) for name in without
            )
        )


def _told(name: str) -> str:
    text = json.dumps(_defaults()[name])
    # What follows from other variables is in its documentation.
    return "" if "{{" in text else " (%s)" % text


@functools.lru_cache(maxsize=None)
def _defaults() -> dict[str, Any]:
    """By name, the defaults that are not empty."""
    found = {}
    for role in spec_defaults.roles():
        if role not in _RESOLVED:
            found.update({name: value for name, value in spec_defaults.role_defaults(role).items() if _is_something(value)})
    return found


def _is_something(value: Any) -> bool:
    """Whether None would be something else where it is read."""
    return value not in ("", None, False) and value not in ([], {})
