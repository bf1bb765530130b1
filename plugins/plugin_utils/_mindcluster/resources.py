# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of what device plugins offer to pods: chips, and parts of chips."""

from __future__ import annotations

PREFIX = "huawei.com/"


def is_npu(name: object) -> bool:
    """Whether the resource ``name`` is one of a device plugin for NPUs."""
    return str(name).startswith(PREFIX)
