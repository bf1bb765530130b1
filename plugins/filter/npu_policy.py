# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_policy
short_description: The settings of an upgrade or a recovery as the modules take them
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Collects the C(npu_upgrade_) or C(npu_heal_) variables of a host into one dictionary, checked against the role
    C(npuops.ascend.npu_upgrade) or C(npuops.ascend.npu_heal) and with the types it names.
    Settings that are not there or empty strings have their default; so do those inside a setting.
positional: names, role
options:
  _input:
    description: Ansible's C(hostvars) of the host.
    type: dict
    required: true
  names:
    description: The settings that are wanted, without C(npu_upgrade_); by default all that a node's maintenance needs.
    type: list
    elements: str
  role:
    description: Whose settings they are.
    type: str
    choices: [npu_upgrade, npu_heal]
    default: npu_upgrade
"""

EXAMPLES = r"""
- name: Run the maintenance of the node
  npuops.ascend.npu_maintenance:
    policy: "{{ hostvars[inventory_hostname] | npuops.ascend.npu_policy }}"
"""

RETURN = r"""
_value:
  description: The settings by their names without C(npu_upgrade_); C(npu_upgrade_reboot.timeout) is C(reboot_timeout).
  type: dict
"""

import functools
import json
import os
from collections.abc import Mapping

from ansible.errors import AnsibleFilterError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.given import is_empty
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.specs import role_options

# What npu_maintenance takes as its policy.
MAINTENANCE = (
    "auto",
    "approval_wait",
    "approval_max_age",
    "max_parallel",
    "max_failures",
    "wait_for_jobs",
    "pod_deletion",
    "drain",
    "reboot",
    "smoke_pod",
    "smoke_timeout",
)
# What it takes as well, for a recovery.
RECOVERY = (
    "auto",
    "min_uptime",
    "attempts",
    "max_parallel",
    "storm_percent",
    "storm_window",
    "old_approvals",
)


def npu_policy(variables, names=None, role="npu_upgrade"):
    """See DOCUMENTATION."""
    given, prefix = {}, role + "_"
    if names is None:
        names = RECOVERY if role == "npu_heal" else MAINTENANCE
    for name in specs(role):
        value = _plain(variables[name]) if name in variables else None
        if not is_empty(value):
            given[name] = value
    checked = ArgumentSpecValidator(specs(role)).validate(given)
    if checked.error_messages:
        raise AnsibleFilterError("; ".join(checked.error_messages))
    policy = {name: checked.validated_parameters[prefix + name] for name in names}
    for name in policy:
        # Relative to where the command was started, whatever file it is that names them.
        if specs(role)[prefix + name]["type"] == "path" and policy[name]:
            policy[name] = os.path.abspath(policy[name])
    if "reboot" in policy:
        policy.update({"reboot_" + key: value for key, value in policy.pop("reboot").items()})
    return policy


@functools.lru_cache(maxsize=None)
def specs(role="npu_upgrade"):
    """The role's options as an argument_spec."""
    return {name: _spec(option) for name, option in role_options(role).items()}


def _spec(option):
    spec = {key: option[key] for key in ("type", "choices", "default", "options") if key in option}
    if "options" in spec:
        spec["options"] = {name: _spec(inner) for name, inner in spec["options"].items()}
        spec["apply_defaults"] = True
    return spec


def _plain(value):
    """``value`` without the empty strings in it. A dictionary may come as its JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, Mapping):
        return {key: entry for key, entry in value.items() if not is_empty(entry)}
    return value


class FilterModule:
    """The filter above."""

    def filters(self):
        return {"npu_policy": npu_policy}
