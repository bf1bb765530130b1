# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bundle takes, and what it does not."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect import gathered
from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered


def test_the_size_is_limited():
    part = Gathered(10, 60)
    part.add("one", "12345", "first")
    part.add("two", "1234567890", "second")
    part.add("three", "123", "third")
    assert [file["name"] for file in part.files] == ["one", "three"] and part.room == 2
    assert [(entry["what"], entry["absent"]) for entry in part.left_out] == [("second", False)]


def test_the_number_of_files_is_limited(monkeypatch):
    monkeypatch.setattr(gathered, "MOST_FILES", 2)
    part = Gathered(1000, 60)
    for name in ("a", "b", "c"):
        part.add(name, "", name)
    assert len(part.files) == 2 and part.left_out[0]["what"] == "c"


def test_the_time_is_limited():
    clock = [0]
    part = Gathered(10, 60, now=lambda: clock[0])
    assert part.has_time("first")
    clock[0] = 60
    assert not part.has_time("second") and "time limit" in part.left_out[0]["why"]


def test_no_secret_and_no_control_character_gets_in():
    part = Gathered(1000, 60)
    part.add("log", "token=pl4nted\r\n\x1b[31mred\x9b\x07\ttab\n", "a\x1bb")
    part.leave_out("c\nd", "failed: password=pl4nted \x1b")
    assert part.files == [{"name": "log", "source": "a?b", "cut": False, "text": "token=***\n?[31mred??\ttab\n"}]
    assert part.left_out == [{"what": "c?d", "why": "failed: password=*** ?", "absent": False}]


def test_no_member_takes_the_place_of_another():
    """Neither by its own name, nor as the directory of others."""
    part = Gathered(1000, 60)
    for name in ("a/b.log", "a/b.log", "a", "a/b.log/c", "a/b.log/d", "2-a", "a/b.log"):
        part.add(name, name, "")
    assert [file["name"] for file in part.files] == [
        "a/b.log", "a/2-b.log", "2-a", "a/3-b.log/c", "a/3-b.log/d", "2-2-a", "a/4-b.log",
    ]  # fmt: skip
    longest = "x" * 100
    part.add(longest, "", "")
    part.add(longest, "", "")
    assert part.files[-1]["name"] == "2-" + "x" * 98


def test_the_list_of_what_is_left_out_says_how_much_is_not_in_it(monkeypatch):
    monkeypatch.setattr(gathered, "MOST_LEFT_OUT", 2)
    part = Gathered(10, 60)
    for what in "abcde":
        part.leave_out(what, "why")
    assert [entry["what"] for entry in part.left_out] == ["a", "b"] and part.more_left_out == 3


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../b", "a//b", ".hidden", "a\nb", "a b", "x" * 101, "a/" * 12 + "b", "-x", 1]
)
def test_a_name_that_leads_elsewhere(name):
    with pytest.raises(ValueError):
        Gathered(10, 10).add(name, "", "")
