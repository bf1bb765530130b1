# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the components in an upgrade, as part of its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CHANGED, CHECKED, LATER, FAILED = "changed", "checked", "waiting", "failed"


def document(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """{order, from, to, changes, outcome, reason}. ``given``: the plan's, with {unfit, left_alone, problem} of this run, and
    ``checked``: whether it was in check mode."""
    given = given or {}
    order = given.get("order")
    outcome, reason = _outcome(given)
    return {
        "order": order,
        "from": given.get("from") or [],
        "to": given.get("to"),
        "changes": given.get("changes") or [],
        "outcome": outcome if order else None,
        "reason": reason if order else None,
    }


def _outcome(given: Mapping[str, Any]) -> tuple[str, str | None]:
    if given.get("problem"):
        return FAILED, given["problem"]
    if given.get("checked"):
        return CHECKED, None
    waits_for = [*(given.get("unfit") or []), *filter(None, [given.get("left_alone")])]
    return (LATER, "; ".join(waits_for)) if waits_for else (CHANGED, None)


def line(components: Mapping[str, Any]) -> str | None:
    """A sentence for people; None if no component was to change."""
    if not components["order"]:
        return None
    others = [version_line for version_line in components["from"] if version_line != components["to"]]
    text = "Components: "
    if others and components["to"]:
        text += "MindCluster %s -> %s, " % (", ".join(others), components["to"])
    if components["outcome"] == CHANGED:
        return text + "changed %s the drivers." % components["order"]
    if components["outcome"] == CHECKED:
        return text + "would change %s the drivers." % components["order"]
    if components["outcome"] == LATER:
        return text + "not changed yet: %s. Once this is resolved, run the upgrade again." % components["reason"]
    return text + "not changed: %s" % components["reason"]


def problem(components: Mapping[str, Any]) -> str | None:
    """Why the run did not change the components though it should have; None otherwise."""
    return line(components) if components["outcome"] == FAILED else None
