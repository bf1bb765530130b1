# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``hosts`` of the modules that judge the whole fleet, and the variables of the hosts that it is made from.

The option's documentation is the fragment hosts.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils import _preflight
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError

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

# Read from the hosts as well, by the filter npu_policy.
_SETTINGS = "npu_upgrade_"


def refuse_variables_of_the_play(names):
    """NpuError if one of ``names``, the variables set by the play itself, is one that is read from each host.

    A variable of a play (vars: of import_playbook) is no variable of a host: half of the tasks would go by it, and the
    judgement of the fleet by another value, or none.
    """
    lost = sorted(
        name
        for name in names
        if name.startswith(_SETTINGS) or (name.startswith("npu_") and name[len("npu_") :] in _preflight.CONFIG_DEFAULTS)
    )
    if lost:
        raise NpuError(
            "Set by the play (vars:), where it does not become a variable of the hosts: %s. Set it in "
            "the inventory, for example in group_vars/npu_nodes.yml, or with -e on the command line." % ", ".join(lost)
        )
