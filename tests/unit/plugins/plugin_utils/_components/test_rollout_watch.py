# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When nodes that went down with a new pod are its fault."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_watch import Watch

from support.fleet.fake_fleet import Clock


def watch(lost=(), works=(), proved=0):
    """Of a rollout that lost nodes; others work, and it was proved on so many."""
    made = Watch(Clock(), 60)
    made.lost, made._works = list(lost), dict.fromkeys(works, 0.0)  # noqa: SLF001
    made._proved_on = {"n%d" % number for number in range(proved)}  # noqa: SLF001
    return made


def test_a_node_that_went_down_and_is_back_proves_nothing():
    """If it counted, a rollout in which no other node works would wait for one for ever."""
    assert watch(["a"], ["a"]).takes_hosts_down
    assert not watch(["a"], ["a", "b"]).takes_hosts_down, "b may prove it in some seconds"
    assert not watch([], []).takes_hosts_down


@pytest.mark.parametrize(
    "lost, proved, blamed", [(1, 1, False), (2, 1, True), (2, 99, True), (2, 100, False), (3, 100, True), (3, 250, False)]
)
def test_one_of_a_hundred_goes_down_by_chance(lost, proved, blamed):
    assert watch(["l%d" % number for number in range(lost)], [], proved).takes_hosts_down is blamed
