# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option ``recovery``."""

    DOCUMENTATION = r"""
options:
  recovery:
    description:
      - The variables C(npu_heal_*) without that prefix, as P(npuops.ascend.npu_policy#filter) returns them.
    type: dict
    default: {}
    suboptions:
      auto:
        description: Whether a node may be rebooted without the annotation C(npu.openfuyao.com/approve-reboot=true).
        type: bool
        default: false
      old_approvals:
        description: Whether to accept an approval that is older than the node's wedged state.
        type: bool
        default: false
      min_uptime:
        description: Minimum uptime of the host in seconds. A host that has just booted is not rebooted again.
        type: int
        default: 600
      attempts:
        description: Maximum number of recovery reboots of a node within 24 hours, V(0) for no limit.
        type: int
        default: 2
      max_parallel:
        description: Maximum number of nodes in recovery at once, V(0) for no limit.
        type: int
        default: 1
      storm_percent:
        description: If more than this percentage of the NPU nodes wedged within O(recovery.storm_window), no node is rebooted.
        type: int
        default: 30
      storm_window:
        description: Period in seconds for O(recovery.storm_percent).
        type: int
        default: 3600
"""
