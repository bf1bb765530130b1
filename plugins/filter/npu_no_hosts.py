# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_no_hosts
short_description: Why a playbook has no host to work on
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Ansible takes a play without hosts for a success. This filter lets a playbook fail instead, with what to correct.
positional: pattern, groups, play_hosts
options:
  _input:
    description: The hosts of the inventory that the pattern selects.
    type: list
    elements: str
    required: true
  pattern:
    description: The pattern, as in C(hosts) of a play.
    type: str
    required: true
  groups:
    description: Ansible's C(groups).
    type: dict
    required: true
  play_hosts:
    description: All hosts that C(--limit) leaves.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Fail if there is no host to work on
  ansible.builtin.fail:
    msg: "{{ problem }}"
  vars:
    problem: >-
      {{ query('ansible.builtin.inventory_hostnames', 'npu_nodes')
         | npuops.ascend.npu_no_hosts('npu_nodes', groups, ansible_play_hosts_all) }}
  when: problem | length > 0
"""

RETURN = r"""
_value:
  description: What is wrong and what to do. Empty if there is a host to work on.
  type: str
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_SHOWN = 20


def npu_no_hosts(selected: Iterable[str], pattern: str, groups: Mapping[str, list[str]], play_hosts: Iterable[str]) -> str:
    """See DOCUMENTATION."""
    selected = list(selected)
    if set(selected) & set(play_hosts):
        return ""
    if selected:
        return f"--limit leaves none of the hosts of '{pattern}', which are {_some(selected)}. Correct --limit, or remove it."
    # Without an inventory, Ansible adds localhost.
    if set(groups.get("all", ())) <= {"localhost"}:
        return (
            "The inventory has no hosts. Name yours with -i, such as -i inventory.yml; in AWX, add the hosts to the inventory of"
            " the job template, or synchronize its source."
        )
    names = sorted(
        name for name, hosts in groups.items() if hosts and name not in ("all", "ungrouped") and not name.startswith("__")
    )
    there = f"The groups that have hosts are {_some(names)}" if names else "It has no group with hosts"
    return (
        f"No host of the inventory matches '{pattern}'. {there}. Correct the inventory (-i), or name the group of the hosts:"
        f" -e npu_hosts={names[0] if len(names) == 1 else 'GROUP'}"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_no_hosts": npu_no_hosts}
