# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long something takes, for people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """``about`` how long: 40 s, 12 min, 2 h 5 min, 7 h."""
    if seconds < 90:
        return "%d s" % seconds
    minutes = round(seconds / 60)
    if minutes < 90:
        return "%d min" % minutes
    hours, rest = divmod(minutes, 60)
    # Minutes beside many hours would only look exact.
    return "%d h" % round(minutes / 60) if hours >= 5 or not rest else "%d h %d min" % (hours, rest)
