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
      - The variables C(npu_heal_*), under the names they have there without that prefix, as
        P(npuops.ascend.npu_policy#filter) collects them.
    type: dict
    default: {}
    suboptions:
      auto:
        description: Whether a node may be rebooted without the annotation C(npu.openfuyao.com/approve-reboot=true).
        type: bool
        default: false
      old_approvals:
        description: Whether an approval counts that is older than the wedge.
        type: bool
        default: false
      min_uptime:
        description: Seconds that the host must have been up.
        type: int
        default: 600
      attempts:
        description: How often a node is rebooted within 24 hours to recover it, V(0) for any number.
        type: int
        default: 2
      max_parallel:
        description: How many nodes may be in recovery at once, V(0) for any number.
        type: int
        default: 1
      storm_percent:
        description: With more than this share of the NPU nodes wedged within O(recovery.storm_window), none is touched.
        type: int
        default: 30
      storm_window:
        description: Seconds.
        type: int
        default: 3600
"""
