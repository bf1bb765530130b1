# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server makes of a strategic merge patch of a Node's conditions: their merge key is their type."""

from __future__ import annotations

from typing import Any


def merged(conditions: list[dict[str, Any]], patch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Conditions keep their places, and new ones come last."""
    by_type = {one["type"]: dict(one) for one in conditions}
    for change in patch:
        if change.get("$patch") == "delete":
            by_type.pop(change["type"], None)
        else:
            by_type[change["type"]] = {**by_type.get(change["type"], {}), **change}
    return list(by_type.values())
