# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text format of Prometheus."""

from __future__ import annotations

import re

from npu_node_agent.metrics import Histogram, Metrics


def test_buckets_of_a_histogram_are_cumulative():
    histogram = Histogram("wait_seconds", "Time.", (0.5, 2))
    for value in (0.25, 0.5, 1, 8):
        histogram.observe(value)
    assert list(histogram.lines()) == [
        "# HELP npuops_node_agent_wait_seconds Time.",
        "# TYPE npuops_node_agent_wait_seconds histogram",
        'npuops_node_agent_wait_seconds_bucket{le="0.5"} 2',
        'npuops_node_agent_wait_seconds_bucket{le="2.0"} 3',
        'npuops_node_agent_wait_seconds_bucket{le="+Inf"} 4',
        "npuops_node_agent_wait_seconds_sum 9.75",
        "npuops_node_agent_wait_seconds_count 4",
    ]


def test_names_are_as_prometheus_wants_them():
    """Counters end with _total, times with their unit; each metric has its words before its type."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", Metrics().render(), re.MULTILINE))
    assert len(kinds) > 15
    for name, kind in kinds.items():
        assert re.fullmatch(r"npuops_node_agent_[a-z_]+", name)
        assert name.endswith("_total") == (kind == "counter"), name
        assert kind != "histogram" or name.endswith("_seconds"), name
