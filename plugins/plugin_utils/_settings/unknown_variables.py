# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt variables: those that begin like ours, and that this collection does not read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.spec_defaults import known_variables, option

RENAMED = {"npu_daemonset_max_unavailable": "npu_rollout_max_unavailable"}
_LOGS = re.compile("npu_(.+)_log_(level|max_age|max_backups)")


def unknown_variables(names: Iterable[str]) -> list[str]:
    """A sentence for each of the variables ``names`` that this collection does not know."""
    sentences = []
    for name in sorted(set(names) - known_variables()):
        renamed = RENAMED.get(name) or _renamed_log_setting(name)
        if renamed:
            sentences.append("unknown variable %s: it is now called %s" % (name, renamed))
            continue
        near = difflib.get_close_matches(name, known_variables(), 1, 0.75)
        sentences.append("unknown variable %s%s" % (name, ": did you mean %s?" % near[0] if near else ""))
    return sentences


def _renamed_log_setting(name: str) -> str | None:
    """What a log setting of one component has become."""
    found = _LOGS.fullmatch(name)
    if not found or found[1] not in option("npu_component_log_levels")["options"]:
        return None
    return "npu_component_log_levels." + found[1] if found[2] == "level" else "npu_component_log_" + found[2]
