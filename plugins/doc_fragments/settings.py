# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option with the settings of upgrades."""

    DOCUMENTATION = r"""
options:
  settings:
    description:
      - The settings of the role C(npuops.ascend.npu_upgrade) without their prefix C(npu_upgrade_), such as C(max_parallel), as
        P(npuops.ascend.npu_settings#filter) returns them. Types, choices and defaults are those of the role.
    type: dict
    default: {}
"""
