# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a pause is. What a PatientCluster does is in test_cycle.py."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._patience import pause_after


@pytest.mark.parametrize(("waited", "pause"), [(0, 1), (10, 1), (40, 2), (60, 3), (100, 5), (100000, 5)])
def test_a_pause_grows_with_what_was_waited(waited, pause):
    assert pause_after(waited) == pause


def test_few_looks_at_a_long_wait():
    waited = looks = 0
    while waited < 600:
        waited += pause_after(waited)
        looks += 1
    assert looks < 160
