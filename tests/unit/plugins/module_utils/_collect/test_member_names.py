# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that a host has for its files, as names in a bundle."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect.member_names import is_member_name, member_name


def test_a_good_name_is_kept():
    assert member_name("logs/npu", ("device-0", "a_1.log"), 7) == "logs/npu/device-0/a_1.log"


@pytest.mark.parametrize("part", ["..", ".", "", "a/b", "a\x1b[2J", "a\nb", "ä", "x" * 101, "-rf", ".x", "a b"])
def test_any_other_is_replaced(part):
    name = member_name("logs/npu", ("device-0", part), 7)
    assert name == ("logs/npu/device-0/a/b" if part == "a/b" else "logs/npu/unnamed-7") and is_member_name(name)
