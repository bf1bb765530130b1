# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_outcomes
short_description: What the tasks of a rollout said of each host
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Collects, for each host, what the playbooks registered while staging the driver and in the host's maintenance, as input for
    M(npuops.ascend.npu_report).
positional: hostvars
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
"""

EXAMPLES = r"""
- name: Gather the results from the cluster
  npuops.ascend.npu_report:
    hosts: "{{ ansible_play_hosts_all | npuops.ascend.npu_outcomes(hostvars) }}"
  run_once: true
"""

RETURN = r"""
_value:
  description: One entry per host, with name, outcome and reason. Where no task was run, both are V(none).
  type: list
  elements: dict
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def npu_outcomes(names: Iterable[str], hostvars: Mapping[str, Any]) -> list[dict[str, str | None]]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside

    return outside([dict(_outcome(hostvars[name]), name=name) for name in names])


def _outcome(variables: Mapping[str, Any]) -> dict[str, str | None]:
    from ansible_collections.npuops.ascend.plugins.plugin_utils._record.outcome import told

    for register in ("__npu_staged_kernels", "__npu_staged"):
        staged = variables[register] if register in variables else {}
        if staged.get("failed") or staged.get("unreachable"):
            # That of a loop names no cause, its items do.
            cause = next((item for item in staged.get("results") or [] if item.get("failed")), staged)
            return {"outcome": "failed", "reason": "its driver could not be staged: %s" % cause.get("msg")}
    # The last step of its maintenance; one that is skipped hands on what the one before said.
    return told(variables["__npu_step"] if "__npu_step" in variables else {})


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_outcomes": npu_outcomes}
