# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names for people, of which there may be many."""

from __future__ import annotations

from collections.abc import Sequence


def and_more(names: Sequence[str], most: int = 3, separator: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return separator.join(names[:most]) + (" and %d more" % more if more > 0 else "")
