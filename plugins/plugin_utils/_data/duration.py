# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long something takes, for people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """``about`` how long: 40 s, 12 min, 2 h 5 min."""
    if seconds < 90:
        return "%d s" % seconds
    minutes = int(round(seconds / 60.0))
    return "%d min" % minutes if minutes < 90 else "%d h %d min" % divmod(minutes, 60)
