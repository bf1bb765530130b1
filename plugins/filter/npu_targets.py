# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_targets
short_description: What the hosts that came through installation ask of the cluster
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Turns the result of M(npuops.ascend.npu_preflight) into the arguments of M(npuops.ascend.npu_node) and
    M(npuops.ascend.npu_wait) and into role variables.
positional: done, hostvars, validations
options:
  _input:
    description: The result of M(npuops.ascend.npu_preflight).
    type: dict
    required: true
  done:
    description: Inventory names of the hosts that came through.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars); the driver version that validated is taken from it.
    type: dict
    required: true
  validations:
    description:
      - What M(npuops.ascend.npu_many_hosts) returned for M(npuops.ascend.npu_validate), for hosts that have registered nothing as
        C(__npu_validation).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Label the nodes
  npuops.ascend.npu_node:
    nodes: "{{ (preflight | npuops.ascend.npu_targets(ansible_play_hosts, hostvars)).labels }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
_value:
  description: With the keys labels, accelerators, driver_path, kubelet_dir, containerd_dir, daemonsets and nodes.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any


def npu_targets(
    preflight: Mapping[str, Any],
    done: list[str],
    hostvars: Mapping[str, Any],
    validations: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """See DOCUMENTATION."""
    from ansible_collections.npuops.ascend.plugins.plugin_utils._data.outside import outside
    from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import targets as preflight_targets

    validated = {}
    for name in done:
        # In check mode the task is skipped, and what it registers says nothing of the host.
        validation = hostvars[name].get("__npu_validation") or (validations or {}).get(name) or {}
        if "firmware_version" in validation:
            validated[name] = validation
    return outside(preflight_targets.targets(preflight["hosts"], done, validated, **preflight["components"]))


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_targets": npu_targets}
