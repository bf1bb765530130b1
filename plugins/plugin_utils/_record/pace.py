# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the nodes are maintained one at a time, or side by side."""

from __future__ import annotations


def pace(max_parallel: int) -> dict[str, int | str]:
    """The keywords ``serial`` and ``strategy`` of the play that takes the nodes through their maintenance.

    ``max_parallel``: how many slots there are, 0 = any number. Side by side, each node begins as soon as a slot is free.
    """
    if max_parallel == 1:
        return {"serial": 1, "strategy": "ansible.builtin.linear"}
    return {"serial": "100%", "strategy": "ansible.builtin.host_pinned"}
