# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_acceptances
short_description: What accept has found for each host so far
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Collects, for each host, what the playbook registered as C(__npu_collective), or otherwise as C(__npu_acceptance).
positional: hostvars, waiting, problems
options:
  _input:
    description: Inventory names.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  waiting:
    description:
      - Whether to return only the acceptances that wait for M(npuops.ascend.npu_accept_collective), as that module takes them.
    type: bool
    default: false
  problems:
    description: Whether to return only why hosts were not accepted.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run the collective on pairs of nodes
  npuops.ascend.npu_accept_collective:
    acceptances: "{{ ansible_play_hosts_all | npuops.ascend.npu_acceptances(hostvars, waiting=true) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description:
    - One entry per host, as M(npuops.ascend.npu_accept_node) or M(npuops.ascend.npu_accept_collective) returned it.
    - With O(waiting), the option C(acceptances) of M(npuops.ascend.npu_accept_collective).
    - With O(problems), a text for each host that was not accepted.
  type: list
  elements: raw
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def npu_acceptances(names: Iterable[str], hostvars: Any, waiting: bool = False, problems: bool = False) -> list[Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside

    if waiting:
        found = [_waiting(name, hostvars[name].get("__npu_acceptance") or {}) for name in names]
        return outside([one for one in found if one["request"]])
    newest = [_newest(name, hostvars[name]) for name in names]
    if problems:
        # An acceptance that came to its end has the key, even if there is none.
        found = [one["problem"] if "problem" in one else one["msg"] for one in newest]
        return outside([problem for problem in found if problem is not None])
    return outside(newest)


def _waiting(name: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "host": name,
        "boot_id": answer.get("boot_id"),
        "document": answer.get("document"),
        "request": answer.get("collective"),
    }


def _newest(name: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    completed = (variables.get("__npu_collective") or {}).get("acceptances") or {}
    return completed.get(name) or variables.get("__npu_acceptance") or {}


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_acceptances": npu_acceptances}
