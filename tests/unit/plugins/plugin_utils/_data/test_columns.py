# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.columns import aligned


def test_columns_are_as_wide_as_their_longest_cell():
    assert aligned([("NODE", "STATE"), ("npu-a-long-name", "up"), ("b", "")]) == [
        "NODE             STATE",
        "npu-a-long-name  up",
        "b",
    ]


def test_numbers_end_where_their_heading_ends():
    assert aligned([("NODE", "TOOK", "WHY"), ("a", "5 s", "x")], right=[1]) == ["NODE  TOOK  WHY", "a      5 s  x"]


def test_no_rows():
    assert aligned([]) == []
