# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU seconds that processes which are no children of pytest have used for its tests."""

from __future__ import annotations

_elsewhere = 0.0


def add(seconds: float) -> None:
    """Count what another process has done for the test that runs."""
    global _elsewhere  # pylint: disable=global-statement
    _elsewhere += seconds


def elsewhere() -> float:
    """Return the sum so far."""
    return _elsewhere
