# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from support.fleet.hosts import host
from support.fleet.planning import (
    ended,
    make,
    nodes_of,
)


@pytest.mark.parametrize(("max_parallel", "seconds"), [(1, 1800), (2, 1200), (0, 600)])
def test_estimate_from_the_past(max_parallel, seconds):
    nodes = nodes_of("a", "b", "c", annotations=ended(minutes=10))
    nodes["c"] = nodes_of("c")["c"]  # without a past: what is usual
    plan = make([host("a"), host("b"), host("c")], nodes=nodes, max_parallel=max_parallel)
    assert plan.estimate == seconds
    assert plan.summary == "3 of 3 nodes are due; about %d min." % (seconds / 60)


@pytest.mark.parametrize(("max_parallel", "seconds"), [(1, 1800 + 2 * 300), (2, 1200 + 300), (0, 600)])
def test_each_node_serves_before_the_next_one_begins(max_parallel, seconds):
    nodes = nodes_of("a", "b", "c", annotations=ended(minutes=10))
    assert make([host("a"), host("b"), host("c")], nodes=nodes, max_parallel=max_parallel, node_soak=300).estimate == seconds


def test_failures_are_no_measure():
    assert make([host()], nodes=nodes_of("a", annotations=ended("rolled-back"))).estimate is None
