# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_table
short_description: The fleet as aligned lines
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - The table of M(npuops.ascend.npu_status), from what a play has already read.
positional: nodes, came_through
options:
  _input:
    description: The hosts, as P(npuops.ascend.npu_hosts#filter) makes them.
    type: list
    elements: dict
    required: true
  nodes:
    description: RV(npuops.ascend.npu_wait#module:nodes).
    type: dict
    required: true
  came_through:
    description: Inventory names of the hosts on which nothing failed.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show the fleet
  ansible.builtin.debug:
    msg: >-
      {{ ansible_play_hosts_all | npuops.ascend.npu_hosts(hostvars)
         | npuops.ascend.npu_table(rollout.nodes, ansible_play_hosts) }}
  run_once: true
"""

RETURN = r"""
_value:
  description: The heading, then one line per host.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any


def npu_table(hosts: list[Any], nodes: dict[str, Any], came_through: list[str]) -> list[str]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside
    from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status

    failed = "it failed in this run, see its message above"
    hosts = [host if host["name"] in came_through else dict(host, error=host["error"] or failed) for host in hosts]
    return outside(report_status.table(report_status.rows([_without_next_kernel(host) for host in hosts], nodes)))


def _without_next_kernel(host: Any) -> Any:
    """The facts are older than what install staged since; what it could not stage, its plan has told."""
    return dict(host, facts=dict(host["facts"], next_kernel=None)) if host.get("facts") else host


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_table": npu_table}
