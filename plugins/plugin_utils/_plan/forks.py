# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether Ansible itself handles as many nodes at once as the plan wants."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._plan.rollout_plan import RolloutPlan


def notes(plan: RolloutPlan, forks: int) -> list[str]:
    """The note about too few of them, if there is one."""
    due = len(plan.ordered)
    wanted = min(plan.max_parallel.number or due, due)
    if forks >= wanted:
        return []
    text = "up to %d nodes may be in maintenance at once, but Ansible handles only %d hosts at once: add --forks %d, or set forks"
    return [text % (wanted, forks, wanted) + " in ansible.cfg"]
