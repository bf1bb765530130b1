# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are tested with which for a collective, and which of them is faulty if a pair fails."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._acceptance.verdicts import FAIL, PASS, UNKNOWN
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more

MOST_AT_ONCE = 16
_MOST_TOLD = 4


class Pair(NamedTuple):
    """The nodes of rank 0 and 1."""

    first: str
    second: str


class Tried(NamedTuple):
    """A pair that has ended; ``why``: why it failed, None if it passed."""

    pair: Pair
    why: str | None


def pairs(names: Iterable[str]) -> list[Pair]:
    """Each of the nodes with another one. If their number is odd, the first one by name is in two pairs."""
    nodes = sorted(set(names))
    made = [Pair(*both) for both in zip(nodes[::2], nodes[1::2])]
    if len(nodes) > 1 and len(nodes) % 2:
        made.append(Pair(nodes[0], nodes[-1]))
    return made


def again(tried: Sequence[Tried]) -> list[Pair]:
    """Those that find out which is faulty: each node that has only failed with a node that has passed, if any has."""
    good = passed(tried)
    used: collections.Counter[str] = collections.Counter()
    made: list[Pair] = []
    for pair in (one.pair for one in tried if one.why is not None):
        for node in pair:
            if node in good or any(node in other for other in made):
                continue
            strangers = [other for other in good if not any({node, other} == {*one.pair} for one in tried)]
            if not strangers:
                continue
            partner = min(strangers, key=lambda name: (used[name], name))
            used[partner] += 1
            # With the rank that it has failed with: the ranks use the network differently.
            made.append(Pair(node, partner) if node == pair.first else Pair(partner, node))
    return made


def passed(tried: Iterable[Tried]) -> set[str]:
    """The nodes of pairs that have passed."""
    return {node for one in tried if one.why is None for node in one.pair}


def next_ones(waiting: Sequence[Pair], running: Collection[Pair]) -> list[Pair]:
    """Those of the ``waiting`` pairs that begin now, beside those that run: in order, and no node is in two of them."""
    busy = {node for pair in running for node in pair}
    begun: list[Pair] = []
    for pair in waiting:
        if len(running) + len(begun) >= MOST_AT_ONCE:
            break
        if busy.isdisjoint(pair):
            begun.append(pair)
        # A pair that has to wait goes before later ones with the same nodes.
        busy.update(pair)
    return begun


def judged(node: str, tried: Sequence[Tried]) -> tuple[str, str]:
    """(the verdict on a node, what was seen of it)."""
    its = [one for one in tried if node in one.pair]
    worked = [_other(one.pair, node) for one in its if one.why is None]
    failed = [one for one in its if one.why is not None]
    if worked:
        notes = ["the pair %s and %s failed: %s" % (*one.pair, one.why) for one in failed]
        return PASS, "; ".join(["passed with %s" % and_more(worked, _MOST_TOLD), *notes])
    if not failed:
        return UNKNOWN, "not run"
    whys = "; ".join("%s and %s: %s" % (*one.pair, one.why) for one in reversed(failed))
    if passed(tried) & {_other(one.pair, node) for one in failed}:
        return FAIL, "failed with each of its partners, and one of them passed with another node: %s" % whys
    return FAIL, "the pair failed, and it is not known which of the two nodes is faulty: %s" % whys


def _other(pair: Pair, node: str) -> str:
    return pair.second if node == pair.first else pair.first
