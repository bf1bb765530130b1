# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When maintenances may begin."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.window import Window
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings


def window(*entries):
    return Window.of(valid_settings.settings("npu_upgrade", {"window": list(entries)})["window"])


def at(text):
    """Of a time in UTC."""
    return datetime.datetime.fromisoformat(text + "+00:00").timestamp()


def state(told, text):
    return told.state(at(text))


def times(told, text):
    """(open, opens, closes), as the plan has them."""
    found = state(told, text).result()
    return found["open"], found["opens"], found["closes"]


WEEKENDS = {"days": ["sat", "sun"], "from": "22:00", "to": "06:00", "timezone": "Asia/Shanghai"}
# 2026-11-28 is a Saturday. 22:00 there is 14:00 UTC.


@pytest.mark.parametrize(
    ("now", "open_"),
    [
        ("2026-11-28T13:59:59", False),
        ("2026-11-28T14:00:00", True),
        ("2026-11-28T16:30:00", True),  # after midnight it is Sunday there
        ("2026-11-28T21:59:59", True),
        ("2026-11-28T22:00:00", False),
        ("2026-11-29T14:00:00", True),  # Sunday
        ("2026-11-29T21:59:59", True),  # Monday there: it began on Sunday
        ("2026-11-30T14:00:00", False),  # Monday
        ("2026-11-27T18:00:00", False),  # Saturday 02:00 there: no window began on Friday
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins(now, open_):
    assert state(window(WEEKENDS), now).open is open_


def test_it_names_when_it_opens_and_closes():
    assert times(window(WEEKENDS), "2026-11-26T12:00:00") == (False, "2026-11-28T14:00:00Z", "2026-11-28T22:00:00Z")
    assert times(window(WEEKENDS), "2026-11-28T15:00:00") == (True, "2026-11-29T14:00:00Z", "2026-11-28T22:00:00Z")
    closed, opened = state(window(WEEKENDS), "2026-11-26T12:00:00"), state(window(WEEKENDS), "2026-11-28T15:00:00")
    assert closed.refusal == (
        "The maintenance window (npu_upgrade_window) is closed: it opens at Sat 2026-11-28 22:00 Asia/Shanghai. Run again then."
    )
    assert closed.told() == (
        "the maintenance window is closed: it opens at Sat 2026-11-28 22:00 Asia/Shanghai and closes at Sun 2026-11-29 06:00"
        " Asia/Shanghai. No maintenance begins before"
    )
    assert opened.told() == (
        "the maintenance window is open until Sun 2026-11-29 06:00 Asia/Shanghai, and opens again at Sun 2026-11-29 22:00"
        " Asia/Shanghai"
    )
    assert opened.told(at("2026-11-28T22:00:00")) == opened.told()
    assert opened.told(at("2026-11-28T22:00:01")).endswith("longer, and nodes that have not begun by then are deferred")


def test_without_an_entry_it_is_always_open():
    assert window().state(0.0) is None and window().refusal(0.0) is None


def test_an_entry_alone_is_each_day_in_utc():
    told = window({"from": "22:00"})
    assert times(told, "2026-11-26T12:00:00") == (False, "2026-11-26T22:00:00Z", "2026-11-27T00:00:00Z")
    assert window({"days": "sat, sun"}) == window({"days": ["sat", "sun"], "from": "00:00", "to": "24:00", "timezone": "UTC"})


def test_what_follows_without_a_pause_is_one():
    told = window({"days": ["fri"], "from": "20:00"}, {"days": ["sat", "sun"]}, {"days": ["sat"], "from": "03:00", "to": "04:00"})
    assert times(told, "2026-11-27T21:00:00") == (True, "2026-12-04T20:00:00Z", "2026-11-30T00:00:00Z")
    assert times(told, "2026-11-28T03:30:00") == times(told, "2026-11-27T21:00:00")


def test_each_of_several_entries_opens_it_in_its_own_time_zone():
    told = window(
        {"from": "08:00", "to": "09:00", "timezone": "America/New_York"},
        {"from": "22:00", "to": "23:00", "timezone": "Asia/Shanghai"},
    )
    assert [state(told, "2026-11-26T%02d:30:00" % hour).open for hour in (12, 13, 14, 15)] == [False, True, True, False]
    assert state(told, "2026-11-26T00:00:00").refusal.count("opens at Thu 2026-11-26 08:00 America/New_York.") == 1


def test_one_that_never_closes_says_so():
    found = state(window({}), "2026-11-26T12:00:00")
    assert (found.open, found.opens, found.closes) == (True, None, None)
    assert found.told(at("2027-11-26T12:00:00")) == "the maintenance window is open, and does not close within two weeks"


NEW_YORK = (
    "America/New_York"  # clocks go from 02:00 to 03:00 on 2027-03-14, and from 02:00 to 01:00 on 2026-11-01: both are Sundays
)


@pytest.mark.parametrize(
    ("begin", "end", "opens", "closes"),
    [
        ("01:00", "04:00", "2027-03-14T06:00:00Z", "2027-03-14T08:00:00Z"),  # an hour shorter
        ("02:30", "04:00", "2027-03-14T07:00:00Z", "2027-03-14T08:00:00Z"),  # from the moment of the change
        ("01:00", "02:30", "2027-03-14T06:00:00Z", "2027-03-14T07:00:00Z"),
        ("22:00", "02:30", "2027-03-15T02:00:00Z", "2027-03-15T06:30:00Z"),  # begins on that Sunday, ends on Monday
        ("02:15", "02:45", "2027-03-21T06:15:00Z", "2027-03-21T06:45:00Z"),  # a week later: that day it does not open
    ],
)
def test_times_that_daylight_saving_skips(begin, end, opens, closes):
    told = window({"days": ["sun"], "from": begin, "to": end, "timezone": NEW_YORK})
    assert times(told, "2027-03-13T12:00:00") == (False, opens, closes)


@pytest.mark.parametrize(
    ("begin", "end", "opens", "closes"),
    [
        ("00:30", "01:30", "2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z"),  # the first 01:30
        ("01:30", "03:00", "2026-11-01T05:30:00Z", "2026-11-01T08:00:00Z"),  # an hour longer
        ("01:15", "01:45", "2026-11-01T05:15:00Z", "2026-11-01T05:45:00Z"),  # once
    ],
)
def test_times_that_come_twice_count_once(begin, end, opens, closes):
    told = window({"days": ["sun"], "from": begin, "to": end, "timezone": NEW_YORK})
    assert times(told, "2026-10-31T12:00:00") == (False, opens, closes)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"from": "25:00"},
            r"npu_upgrade_window\[0\].from is '25:00'; it must be a time from 00:00 to 24:00 with two digits each\.",
        ),
        ({"to": "6:00"}, r"npu_upgrade_window\[0\].to is '6:00'; it must be a time from 00:00 to 24:00 with two digits each\."),
        (
            {"from": 1320},
            r"npu_upgrade_window\[0\].from is '1320'; .*, in quotes: YAML takes 22:00 for the number 1320. Write \"22:00\"",
        ),
        ({"from": "24:00", "to": "06:00"}, r"npu_upgrade_window\[0\].from is '24:00', the end of a day"),
        ({"from": "06:00", "to": "06:00"}, "are both 06:00: for the whole day, give neither of them"),
        (
            {"timezone": "Asia/Shangai"},
            r"npu_upgrade_window\[0\].timezone is 'Asia/Shangai', which this machine does not know: .* tzdata",
        ),
        ({"timezone": "../etc/passwd"}, "which this machine does not know"),
        ({"timezone": "Asia"}, "which this machine does not know"),
        (
            {"days": ["saturday"]},
            r"npu_upgrade_window\[0\].days is \['saturday'\]; it must be a list of mon, tue, wed, thu, fri, sat, sun",
        ),
        ({"days": {"sat": True}}, r"npu_upgrade_window\[0\].days is .*; it must be a list of mon, "),
        ({"zone": "UTC"}, r"npu_upgrade_window\[0\] has no 'zone'; it has days, from, to, timezone"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(entry, message):
    with pytest.raises(NpuError, match=message):
        window(entry)


def test_it_may_be_json_from_a_command_line():
    assert Window.of(
        valid_settings.settings(
            "npu_upgrade", {"window": '[{"days": ["sat", "sun"], "from": "22:00", "to": "06:00", "timezone": "Asia/Shanghai"}]'}
        )["window"]
    ) == window(WEEKENDS)
    assert valid_settings.settings("npu_upgrade", {"window": "[]"})["window"] == []
    with pytest.raises(
        NpuError, match="npu_upgrade_window is 'nights'; it must be a list of mappings with days, from, to, timezone"
    ):
        valid_settings.settings("npu_upgrade", {"window": "nights"})
