# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``hosts`` of the modules that judge the whole fleet; its documentation is the fragment hosts.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import _preflight

_CONFIG = {key: {"type": "str"} for key in _preflight.CONFIG_DEFAULTS}
_CONFIG["registry_password"] = {"type": "str", "no_log": True}
_CONFIG["registry_plain_http"] = {"type": "bool"}
_CONFIG["registry_ca_file"] = {"type": "path"}

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
        "config": {"type": "dict", "default": {}, "options": _CONFIG},
    },
}
