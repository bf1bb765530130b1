# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of variables as people and job templates give them: "false", "2", "" for the default.

Each function raises NpuError naming the variable.
"""

from __future__ import annotations

import json

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def _given(value):
    value = value.strip() if isinstance(value, str) else value
    return None if value == "" else value


def flag(variable, value, default):
    """A bool."""
    value = _given(value)
    try:
        return default if value is None else boolean(value)
    except TypeError:
        raise NpuError("%s is %r; it must be true or false" % (variable, value))


def number(variable, value, default, meaning="a number"):
    """A whole number of 0 or more; ``meaning`` is for the message."""
    value = _given(value)
    if value is None:
        return default
    try:
        result = -1 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError):
        result = -1
    if result < 0:
        raise NpuError("%s is %r; it must be %s, 0 or more" % (variable, value, meaning))
    return result


def choice(variable, value, default, choices):
    """One of ``choices``."""
    value = _given(value)
    if value is None:
        return default
    if value not in choices:
        raise NpuError("%s is %r; it must be %s" % (variable, value, " or ".join(choices)))
    return value


def mapping(variable, value, keys):
    """A dict with some of ``keys``; JSON text is one as well."""
    value = _given(value)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            pass
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NpuError("%s is not a mapping with %s: %r" % (variable, ", ".join(keys), value))
    for key in value:
        if key not in keys:
            raise NpuError("%s has no %r; it has %s" % (variable, key, ", ".join(keys)))
    return value
