# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import collective_pairs
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_pairs import Pair, Tried


def tried(text):
    """Of "ab cd!": the pair a and b passed, c and d failed."""
    return [Tried(Pair(*one[:2]), "it broke" if one.endswith("!") else None) for one in text.split()]


def told(pairs):
    return " ".join(first + second for first, second in pairs)


@pytest.mark.parametrize("names, pairs", [
    ("", ""), ("a", ""), ("ba", "ab"), ("cab", "ab ac"), ("dcba", "ab cd"), ("edcba", "ab cd ae"), ("aab", "ab"),
])  # fmt: skip
def test_neighbours_by_name(names, pairs):
    assert told(collective_pairs.pairs(names)) == pairs


@pytest.mark.parametrize("ended, again", [
    ("ab cd", ""),
    ("ab!", ""),
    ("ab! cd!", ""),
    ("ab! cd", "ac db"),
    ("ab cd! ef!", "ca bd ea bf"),
    ("ab! ac", "cb"),  # a has passed with another one, and b has failed with a already
    ("ab ac!", "bc"),
    ("ab! ac!", ""),
    ("ab! cd ae!", "ac db ce"),
], ids=lambda value: value or "none")  # fmt: skip
def test_who_has_failed_is_tried_with_who_has_passed(ended, again):
    """Each keeps its rank."""
    assert told(collective_pairs.again(tried(ended))) == again


@pytest.mark.parametrize("ended, verdicts", [
    ("ab", "PASS PASS"),
    ("ab!", "FAIL FAIL"),
    ("ab! cd ac db!", "PASS FAIL PASS PASS"),
    ("ab! cd ac! db!", "FAIL FAIL PASS PASS"),
    ("ab! cd ac db", "PASS PASS PASS PASS"),
])  # fmt: skip
def test_the_verdicts(ended, verdicts):
    names = sorted({node for one in tried(ended) for node in one.pair})
    assert " ".join(collective_pairs.judged(name, tried(ended))[0] for name in names) == verdicts


def test_what_is_told():
    ended = tried("ab! cd ac db!")
    assert collective_pairs.judged("a", ended)[1] == "passed with c; the pair a and b failed: it broke"
    assert collective_pairs.judged("b", ended)[1] == (
        "failed with each of its partners, and one of them passed with another node: d and b: it broke; a and b: it broke"
    )
    assert collective_pairs.judged("c", ended)[1] == "passed with d, a"
    assert collective_pairs.judged("b", tried("ab!"))[1] == (
        "the pair failed, and it is not known which of the two nodes is faulty: a and b: it broke"
    )


def test_a_node_without_a_pair():
    assert collective_pairs.judged("x", tried("ab")) == ("UNKNOWN", "not run")


def test_who_begins():
    waiting = collective_pairs.pairs("abcde")
    assert told(collective_pairs.next_ones(waiting, [])) == "ab cd"
    assert told(collective_pairs.next_ones(waiting[2:], waiting[1:2])) == "ae"
    assert told(collective_pairs.next_ones(waiting[2:], waiting[:1])) == ""
    many = [Pair(str(number), str(-number)) for number in range(1, 40)]
    assert len(collective_pairs.next_ones(many, [])) == 16
    assert len(collective_pairs.next_ones(many[16:], many[:9])) == 7
