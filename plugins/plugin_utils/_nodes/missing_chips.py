# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host has fewer chips than it is to have."""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import Facts


def missing(facts: Facts, wanted: Any = None) -> str | None:
    """Which chips are missing, as a phrase, or None: also of a host that has not said which it has.

    ``wanted``: npu_chips, as people give it; without it, what was before.
    """
    if not facts:
        return None
    before = facts.get("chips_before") or {"count": 0, "gone": [], "boot": None}
    expected = int(wanted) if re.fullmatch("[0-9]{1,6}", str(wanted or "")) else 0
    return chip_memory.told(facts.get("chip_count") or 0, expected or before["count"], before["gone"], before["boot"])
