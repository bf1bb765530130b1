# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of text for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """A line for each row, the columns aligned; those numbered in ``right`` at their right end. All rows have as many cells."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(_cells(row, widths, right)).rstrip() for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> list[str]:
    padded = enumerate(zip(row, widths))
    return [cell.rjust(width) if number in right else cell.ljust(width) for number, (cell, width) in padded]
