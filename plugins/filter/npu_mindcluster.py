# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_mindcluster
short_description: What a train of MindCluster needs of Kubernetes
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Returns the row of a train in the table of trains. A train is the releases with the same first two numbers.
options:
  _input:
    description: The train, such as V(7.3).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show which release a train installs
  ansible.builtin.debug:
    msg: "{{ ('7.3' | npuops.ascend.npu_mindcluster).version }}"
"""

RETURN = r"""
_value:
  description: The train, with its C(name), the C(version) that it installs, and what C(device_plugin) and C(exporter) need.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import mindcluster as fleet_mindcluster


def npu_mindcluster(train: str) -> dict[str, Any]:
    """See DOCUMENTATION."""
    return fleet_mindcluster.train(str(train))


class FilterModule:
    """The filter above."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"npu_mindcluster": npu_mindcluster}
