# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the inventory says, where an extra variable says nothing.

An answer that was left empty in a survey, and -e npu_driver_version= with a shell variable that is not set, are extra variables
with an empty value. They hide what the inventory says, and nothing but the default of a role would be left: another driver
version for the whole fleet, for instance.
"""

from __future__ import annotations

from typing import Any


def is_empty(value: object) -> bool:
    """Whether this value counts as none."""
    return value is None or (isinstance(value, str) and not value.strip())


def empty_answers(hostvars: Any) -> list[str]:
    """Names of the extra variables that begin with npu_ and are empty. ``hostvars``: Ansible's, or a dict without any."""
    return sorted(name for name, value in _extra(hostvars).items() if name.startswith("npu_") and is_empty(value))


def given(hostvars: Any) -> Any:
    """``hostvars`` as they are without the extra variables that are empty."""
    empty = empty_answers(hostvars)
    if not empty:
        return hostvars
    # A view of the same hosts, facts and registered results. By hand: what the module copy makes of it has no loader in 2.18.
    manager = object.__new__(type(hostvars._variable_manager))  # noqa: SLF001
    vars(manager).update(vars(hostvars._variable_manager))  # noqa: SLF001
    manager._extra_vars = {name: value for name, value in _extra(hostvars).items() if name not in empty}  # noqa: SLF001
    return type(hostvars)(hostvars._inventory, manager, hostvars._loader)  # noqa: SLF001


def _extra(hostvars: Any) -> dict[str, Any]:
    manager = getattr(hostvars, "_variable_manager", None)
    return getattr(manager, "_extra_vars", None) or {}
