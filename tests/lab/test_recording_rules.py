# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the recording rules make of the series of agents, as Prometheus computes it."""

from __future__ import annotations

import re

import pytest

from support.promtool import program, rules_test

STATES = ("ready", "suspended", "maintenance", "absent")
RATIO = "npuops_node_agent_chips_serving_per_chips_expected:ratio"
RECOVERY, INTERVAL = (f"npuops_node_agent_driver_{name}_seconds:mean30d" for name in ("recovery", "incident_interval"))
RECOVERIES, SUSPENDED = "npuops_node_agent_driver_suspended:resets30d", "npuops_node_agent_driver_suspended"


@pytest.fixture(scope="module")
def promtool():
    return program()


def node(name, *times, instance="10.0.0.1:9461", before=0, chips=2):
    """The series of an agent with ``times``: (state, minutes); "gone" for no samples. ``before``: minutes without samples."""
    target = f'node="{name}", instance="{instance}", job="npu-node-agent"'
    parts = [("gone", before)] * bool(before) + list(times)

    def values(holds):
        return " ".join(
            # The first is stale, as when a scrape fails; xN means N more.
            ("stale" + f" _x{minutes - 1}" * (minutes > 1)) if state == "gone" else f"{int(holds(state))}x{minutes - 1}"
            for state, minutes in parts
        )

    series = {
        f'npuops_node_agent_driver_state{{{target}, state="{state}"}}': values(lambda now, state=state: now == state)
        for state in STATES
    }
    series[f"npuops_node_agent_chips_expected{{{target}}}"] = values(lambda _now: True).replace("1x", f"{chips}x")
    for chip in range(chips):
        health = f'npuops_node_agent_chip_health{{{target}, npu="{chip}", chip="0", health="OK"}}'
        series[health] = " ".join(
            f"1x{minutes - 1}" if state == "ready" else "stale" + f" _x{minutes - 1}" * (minutes > 1) for state, minutes in parts
        )
    return series


def check(promtool, directory, series, at, expected):
    """``expected``: {expression: value, or None for no series}."""
    tests = [
        {"expr": query, "eval_time": at, "exp_samples": [] if value is None else [{"labels": labels(query), "value": value}]}
        for query, value in expected.items()
    ]
    assert any(value is not None for value in expected.values())
    result = rules_test(promtool, directory, series, promql_expr_test=tests)
    assert result.returncode == 0, result.stdout + result.stderr


def labels(query):
    """Those of the series that the query selects, with its name, which a function drops."""
    if not query.startswith("round("):
        return query
    return re.search(r"\{.*\}", query)[0] if "{" in query else "{}"


def of(level, metric):
    return f'node:{metric}{{node="{level}"}}' if level != "cluster" else f"cluster:{metric}"


def grows(query):
    """What grows each minute: promtool evaluates the groups in any order, so one may not have the last minute of another."""
    return f"round({query}, 120)"


TWICE = [("ready", 30), ("suspended", 10), ("ready", 30), ("suspended", 20), ("ready", 30)]


@pytest.mark.core
def test_two_suspensions(promtool, tmp_path):
    """Of 10 and 20 minutes, in two hours."""
    expected = {
        of("npu-a", RECOVERIES): 2,
        of("npu-a", RECOVERY): 15 * 60,
        grows(of("npu-a", INTERVAL)): 60 * 60,
        of("cluster", RECOVERY): 15 * 60,
        grows(of("cluster", INTERVAL)): 60 * 60,
    }
    check(promtool, tmp_path, node("npu-a", *TWICE), "119m", expected)


@pytest.mark.core
def test_another_pod_of_the_agent_is_the_same_node(promtool, tmp_path):
    """The address changes in the second suspension, and between the two."""
    series = {
        **node("npu-a", *TWICE[:2], ("ready", 10), ("gone", 10), instance="10.0.0.1:9461"),
        **node("npu-a", ("ready", 20), ("suspended", 5), ("gone", 5), instance="10.0.0.2:9461", before=50),
        **node("npu-a", ("suspended", 15), ("ready", 30), instance="10.0.0.3:9461", before=75),
    }
    check(promtool, tmp_path, series, "119m", {of("npu-a", RECOVERIES): 2, of("npu-a", RECOVERY): 15 * 60})


@pytest.mark.core
def test_a_recovery_lasts_until_the_driver_is_ready(promtool, tmp_path):
    """Not until the maintenance begins, and the reboot belongs to it."""
    times = [("ready", 30), ("suspended", 10), ("maintenance", 5), ("gone", 10), ("maintenance", 5), ("ready", 30)]
    check(promtool, tmp_path, node("npu-a", *times), "89m", {of("npu-a", RECOVERIES): 1, of("npu-a", RECOVERY): 30 * 60})


@pytest.mark.core
def test_an_upgrade_is_no_incident(promtool, tmp_path):
    times = [("ready", 30), ("maintenance", 5), ("gone", 10), ("maintenance", 5), ("ready", 30)]
    expected = {of("npu-a", RECOVERIES): 0, of("npu-a", RECOVERY): None, of("cluster", RECOVERY): None, of("npu-a", INTERVAL): None}
    check(promtool, tmp_path, node("npu-a", *times), "79m", expected)


@pytest.mark.core
def test_an_incident_counts_before_it_has_ended(promtool, tmp_path):
    series = node("npu-a", ("ready", 60), ("suspended", 60))
    expected = {
        of("npu-a", RECOVERIES): 0,
        grows(of("npu-a", RECOVERY)): 30 * 60,
        of("npu-a", SUSPENDED + ":max"): 1,
        of("cluster", SUSPENDED + ":sum"): 1,
    }
    check(promtool, tmp_path, series, "89m", expected)


@pytest.mark.core
def test_the_means_of_the_cluster_are_of_all_incidents(promtool, tmp_path):
    """Not the mean of the means of the nodes."""
    series = {
        **node("npu-a", *TWICE),
        **node("npu-b", ("ready", 30), ("suspended", 60), ("ready", 30), instance="10.0.0.2:9461"),
        **node("npu-c", ("ready", 120), instance="10.0.0.3:9461"),
    }
    expected = {
        of("cluster", RECOVERIES): 3,
        of("cluster", RECOVERY): 30 * 60,
        grows(of("cluster", INTERVAL)): 3 * 120 * 60 / 3,
        of("cluster", SUSPENDED + ":sum"): 0,
    }
    check(promtool, tmp_path, series, "119m", expected)


@pytest.mark.core
@pytest.mark.parametrize(("state", "ratio"), [("ready", 1), ("suspended", 0), ("maintenance", 0), ("absent", 0), ("gone", 0)])
def test_which_chips_serve(promtool, tmp_path, state, ratio):
    """A node whose agent does not answer is expected to serve, and does not."""
    series = {
        **node("npu-a", ("ready", 20), (state, 20)),
        **node("npu-b", ("ready", 40), instance="10.0.0.2:9461", chips=6),
    }
    expected = {of("npu-a", RATIO): ratio, of("npu-b", RATIO): 1, of("cluster", RATIO): (2 * ratio + 6) / 8}
    check(promtool, tmp_path, series, "35m", expected)


@pytest.mark.core
def test_a_chip_that_is_critical_does_not_serve(promtool, tmp_path):
    series = {name.replace('npu="0", chip="0", health="OK"', 'npu="0", chip="0", health="Critical"'): values
              for name, values in node("npu-a", ("ready", 20)).items()}  # fmt: skip
    check(promtool, tmp_path, series, "15m", {of("npu-a", RATIO): 0.5})


@pytest.mark.core
def test_chips_that_are_listed_by_a_driver_that_is_suspended_do_not_serve(promtool, tmp_path):
    """npu-smi lists one of two, for example."""
    target = 'node="npu-a", instance="10.0.0.1:9461", job="npu-node-agent"'
    series = {**node("npu-a", ("ready", 10), ("suspended", 10)),
              f'npuops_node_agent_chip_health{{{target}, npu="7", chip="0", health="OK"}}': "_x9 1x9"}  # fmt: skip
    check(promtool, tmp_path, series, "15m", {of("npu-a", RATIO): 0})


@pytest.mark.core
def test_chips_are_not_counted_twice_while_one_agent_follows_another(promtool, tmp_path):
    series = {**node("npu-a", ("ready", 20)), **node("npu-a", ("ready", 10), instance="10.0.0.2:9461", before=10)}
    check(promtool, tmp_path, series, "15m", {of("npu-a", RATIO): 1, of("cluster", RATIO): 1})
