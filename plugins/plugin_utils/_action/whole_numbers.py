# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that have to be whole numbers, before Ansible converts them.

1e999999999 keeps it busy for hours, and inf is a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings


def check(spec: Mapping[str, Any], given: Mapping[str, Any], where: str = "") -> None:
    """``spec``: an argument_spec; ``given``: the arguments. Raises NpuError."""
    for name, option in spec.items():
        value = given.get(name)
        if option.get("type") == "int" and value is not None:
            try:
                valid_settings.whole_number(value)
            except TypeError:
                raise NpuError("%s%s is %s; it must be a whole number" % (where, name, printable(repr(value), 80))) from None
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping):
                check(option.get("options") or {}, inner, "%s%s." % (where, name))
