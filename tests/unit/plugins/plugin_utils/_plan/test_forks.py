# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import forks

from support.fleet.hosts import NEW_RELEASE, host
from support.fleet.planning import make


@pytest.mark.parametrize(
    ("max_parallel", "number", "wanted"), [(3, 2, 3), (0, 2, 4), (9, 3, 4), (3, 3, None), (9, 4, None), (1, 1, None)]
)
def test_too_few_are_a_note(max_parallel, number, wanted):
    """What more of them could do, no more: four nodes are due."""
    plan = make([host(name) for name in "abcd"] + [host("e", loaded=NEW_RELEASE)], max_parallel=max_parallel)
    text = (
        "up to %s nodes may be in maintenance at once, but Ansible handles only %d hosts at once: add --forks %s, or set forks in"
    )
    assert forks.notes(plan, number) == ([text % (wanted, number, wanted) + " ansible.cfg"] if wanted else [])
