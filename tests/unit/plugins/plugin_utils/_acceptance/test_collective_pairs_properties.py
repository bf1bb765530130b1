# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets of any size in which some nodes and some pairs are bad: who is tested with whom, and what becomes of it."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import collective_pairs
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_pairs import Tried
from hypothesis import given
from hypothesis import strategies as st

from support import properties  # noqa: F401  pylint: disable=unused-import

NAMES = st.sets(st.integers(0, 99).map(lambda number: "npu-%02d" % number), max_size=60)


def run(pairs, fails, ended, ends):
    """Run them as collective_runs does; ``ends(n)``: which of n running pairs ends next."""
    waiting, running = list(pairs), []
    while waiting or running:
        begun = collective_pairs.next_ones(waiting, running)
        running += begun
        waiting = [pair for pair in waiting if pair not in begun]
        assert running and len(running) <= collective_pairs.MOST_AT_ONCE
        nodes = [node for pair in running for node in pair]
        assert len(nodes) == len(set(nodes)), "no node is in two pairs at once"
        pair = running.pop(ends(len(running)))
        ended.append(Tried(pair, "it broke" if fails(pair) else None))


@given(st.data(), NAMES)
def test_every_node_is_tested_and_the_faulty_are_named(data, names):
    bad = data.draw(st.sets(st.sampled_from(sorted(names)), max_size=5)) if names else set()
    ended = []

    def ends(number):
        return data.draw(st.integers(0, number - 1))

    run(collective_pairs.pairs(names), lambda pair: bool(bad.intersection(pair)), ended, ends)
    first = list(ended)
    assert {node for one in first for node in one.pair} == (names if len(names) > 1 else set())
    assert all(one.pair.first != one.pair.second for one in first)
    again = collective_pairs.again(ended)
    run(again, lambda pair: bool(bad.intersection(pair)), ended, ends)
    # One more round at most, no pair twice, and the partners share the work.
    assert len({frozenset(one.pair) for one in ended}) == len(ended)
    good = collective_pairs.passed(first)
    suspects = {node for one in first if one.why for node in one.pair} - good
    assert len(again) == (len(suspects) if good else 0)
    for name in names if len(names) > 1 else ():
        verdict, seen = collective_pairs.judged(name, ended)
        if name in bad:
            assert verdict == "FAIL"
        elif good:
            assert verdict == "PASS"
        assert verdict == "PASS" or name in seen
