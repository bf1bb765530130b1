# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_settings
short_description: The settings of upgrades or recoveries, validated and complete
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Collects the C(npu_upgrade_) or C(npu_heal_) variables of a host into one dictionary, with the types, choices and defaults of
    the argument specs of the role C(npuops.ascend.npu_upgrade) or C(npuops.ascend.npu_heal).
  - Values may be strings, as surveys and the command line give them. An empty string counts as not set. An extra variable that is
    empty, such as an answer that was left out in a survey, does not hide the inventory's value.
  - Fails, naming the variable, when a value makes no sense.
positional: host, role
options:
  _input:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  host:
    description: Inventory name of the host.
    type: str
    required: true
  role:
    description: The role whose settings are wanted.
    type: str
    choices: [npu_upgrade, npu_heal]
    default: npu_upgrade
"""

EXAMPLES = r"""
- name: Run the maintenance of the node
  npuops.ascend.npu_maintenance:
    settings: "{{ hostvars | npuops.ascend.npu_settings(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: All settings of the role, by their names without the prefix. Paths are absolute.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def npu_settings(hostvars: Any, host: str, role: str = "npu_upgrade") -> dict[str, Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import given

    try:
        return outside(valid_settings.of_host(role, given(hostvars)[host]))
    except NpuError as error:
        raise AnsibleFilterError(error.message)


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_settings": npu_settings}
