# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose pods, budgets and Events come over HTTP, for the tests of what the real drain does to a maintenance."""

from __future__ import annotations

import pytest

from support.fleet.drained_bench import bench_with_drain
from support.kube.eviction_stub import EvictionApi


@pytest.fixture
def api():
    with EvictionApi() as server:
        yield server


@pytest.fixture
def bench(cluster):
    """A Bench with real Drain."""
    return bench_with_drain(cluster)
