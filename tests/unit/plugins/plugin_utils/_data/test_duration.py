# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (100, "2 min"), (2100, "35 min"), (7500, "2 h 5 min"), (7200, "2 h"), (18600, "5 h")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text
