# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_given
short_description: A host's variables, where an empty extra variable hides none
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Extra variables win over the inventory, also empty ones, such as an answer that was left out in a survey. With this filter, an
    extra variable that begins with C(npu_) and is empty counts as not given, so that the inventory's value is found.
options:
  _input:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  host:
    description: Inventory name of the host.
    type: str
    required: true
positional: host
"""

EXAMPLES = r"""
- name: Show the version that the host is to have
  ansible.builtin.debug:
    msg: "{{ (hostvars | npuops.ascend.npu_given(inventory_hostname)).npu_driver_version }}"
"""

RETURN = r"""
_value:
  description: The host's variables.
  type: dict
"""

from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.given import given


def npu_given(hostvars, host):
    """See DOCUMENTATION."""
    return given(hostvars)[host]


class FilterModule:
    """The filter above."""

    def filters(self):
        return {"npu_given": npu_given}
