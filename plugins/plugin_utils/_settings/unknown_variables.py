# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt variables: those that begin like ours, and that this collection does not read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.spec_defaults import known_variables

RENAMED = {
    "npu_daemonset_max_unavailable": "npu_rollout_max_unavailable",
    **{
        "npu_%s_%s" % (part, old): new % part if "%s" in new else new
        for part in ("device_plugin", "exporter", "clusterd", "noded", "ascend_operator")
        for old, new in (
            ("log_level", "npu_component_log_levels.%s"),
            ("log_max_age", "npu_component_log_max_age"),
            ("log_max_backups", "npu_component_log_max_backups"),
        )
    },
}


def unknown_variables(names: Iterable[str]) -> list[str]:
    """A sentence for each of the variables ``names`` that this collection does not know."""
    sentences = []
    for name in sorted(set(names) - known_variables()):
        if name in RENAMED:
            sentences.append("unknown variable %s: it is now called %s" % (name, RENAMED[name]))
            continue
        near = difflib.get_close_matches(name, known_variables(), 1, 0.75)
        sentences.append("unknown variable %s%s" % (name, ": did you mean %s?" % near[0] if near else ""))
    return sentences
