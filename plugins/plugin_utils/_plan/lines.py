# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What several nodes have in common, told once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more


def shared(pairs: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """``a, b: clause`` lines; what several hosts have in common is told once. ``pairs``: (name, clauses)."""
    grouped: dict[str, list[str]] = {}
    for name, clauses in pairs:
        for clause in clauses:
            grouped.setdefault(clause, []).append(name)
    lines = []
    for clause, names in grouped.items():
        lines.append("%s: %s" % (some(names), clause))
    return lines


def some(names: Collection[str], most: int = 8) -> str:
    """The first names in their order, and how many more there are."""
    return and_more(sorted(names), most)
