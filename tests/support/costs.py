# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU seconds that were used for this process by processes that are not its children."""

from __future__ import annotations

_elsewhere = 0.0


def add(seconds: float) -> None:
    global _elsewhere
    _elsewhere += seconds


def elsewhere() -> float:
    return _elsewhere
