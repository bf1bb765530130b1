# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time as the report shows it."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import axis as report_axis

TEN = 1795255200  # 2026-11-21T10:00:00Z
NINE_PM = TEN + 11 * 3600


@pytest.mark.parametrize(
    "first, last, interval, labels",
    [
        (TEN, TEN, 1, ["10:00:00", "10:00:01"]),
        (TEN + 3, TEN + 82, 15, ["10:00:00", "10:00:15", "10:00:30", "10:00:45", "10:01:00", "10:01:15", "10:01:30"]),
        (TEN + 61, TEN + 181, 30, ["10:01:00", "10:01:30", "10:02:00", "10:02:30", "10:03:00", "10:03:30"]),
        (TEN, TEN + 1200, 300, ["10:00", "10:05", "10:10", "10:15", "10:20"]),
        (NINE_PM, NINE_PM + 5 * 3600, 3600, ["21:00", "22:00", "23:00", "22 Nov", "01:00", "02:00"]),
        (TEN, TEN + 4 * 86400, 86400, ["21 Nov", "22 Nov", "23 Nov", "24 Nov", "25 Nov", "26 Nov"]),
    ],
)  # fmt: skip
def test_ticks(first, last, interval, labels):
    axis = report_axis.Axis(first, last)
    assert (axis.interval, [label for _when, label in axis.ticks()]) == (interval, labels)


@pytest.mark.parametrize("seconds", [0, 1, 7, 59, 60, 61, 3599, 3601, 50000, 86399, 10**6, 10**8])
@pytest.mark.parametrize("first", [0, TEN, TEN + 1, TEN + 59, TEN + 86399])
def test_everything_has_its_place(first, seconds):
    axis = report_axis.Axis(first, first + seconds)
    assert 1 <= axis.intervals <= 8 and axis.begin % axis.interval == 0
    assert 0 <= axis.place(first) <= axis.place(first + seconds) <= 100
    assert [round(axis.place(when), 6) for when, _label in axis.ticks()][:: axis.intervals] == [0, 100]
    # The smallest that will do: with the next smaller one there were too many.
    assert axis.interval == 1 or seconds > axis.interval


@pytest.mark.parametrize(
    "seconds, short, words",
    [(0, "0:00", "0 s"), (9, "0:09", "9 s"), (82, "1:22", "1 min 22 s"), (120, "2:00", "2 min"), (3600, "1:00:00", "1 h"),
     (3909, "1:05:09", "1 h 5 min"), (90000, "25:00:00", "25 h")],
)  # fmt: skip
def test_durations(seconds, short, words):
    assert (report_axis.short(seconds), report_axis.words(seconds)) == (short, words)


def test_dates():
    assert (report_axis.date(TEN), report_axis.day(TEN), report_axis.clock(TEN + 9)) == ("21 Nov 2026", "21 Nov", "10:00:09")
