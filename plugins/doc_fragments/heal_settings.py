# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The option with the settings of recoveries."""

    DOCUMENTATION = r"""
options:
  heal_settings:
    description:
      - The settings of the role C(npuops.ascend.npu_heal) without their prefix C(npu_heal_), such as C(min_uptime), as
        P(npuops.ascend.npu_settings#filter) returns them. Types, choices and defaults are those of the role.
    type: dict
    default: {}
"""
