# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_component_settings
short_description: The settings of the components, before their roles run
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Collects the variables of the roles of all components from a host, for modules that judge the components together.
  - An extra variable that is empty, such as an answer that was left out in a survey, does not hide the inventory's value.
  - A variable that refers to one that is not defined counts as not set.
positional: host
options:
  _input:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  host:
    description: Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Find the components
  npuops.ascend.npu_components:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars) }}"
    components: "{{ hostvars | npuops.ascend.npu_component_settings(inventory_hostname) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - For each component, by the name of its role without C(npu_), the values of its variables, by their names without the prefix of
      that role. What all components share is in C(component), without that prefix by their whole names. What is not
      set is left out. The values are not validated.
  type: dict
  sample: {exporter: {enabled: false}, node_agent: {image: "registry.example.com/npuops/node-agent:0.1.0"}}
"""

from collections.abc import Callable
from typing import Any

from ansible import template


def npu_component_settings(hostvars: Any, host: str) -> dict[str, Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside
    from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
    from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import given

    return outside(wanted_components.given(given(hostvars)[host]))


# From ansible-core 2.19 on, a filter without this fails as soon as it reads a variable that refers to one that is not defined.
_accept_undefined: Callable[..., Any] = getattr(template, "accept_lazy_markers", lambda function: function)


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_component_settings": _accept_undefined(npu_component_settings)}
