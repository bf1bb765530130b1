# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards: they ask for metrics that exist, and Grafana can lay them out. What each shows: tests/lab/test_dashboards.py."""

from __future__ import annotations

import ast
import itertools
import json
import re

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import fleet_metrics

from support import dashboards
from support.fleet.metrics import fleet, row, samples
from support.paths import CHECKOUT

AGENT = CHECKOUT / "images" / "node-agent" / "npu_node_agent" / "metrics.py"
EXPORTER = CHECKOUT / "lab" / "sim" / "go" / "internal" / "exporter" / "testdata"
# Those of kube-state-metrics 2, and Prometheus' own.
OTHERS = {"kube_node_status_condition", "kube_node_labels", "kube_node_spec_unschedulable", "ALERTS"}
PAGE = (CHECKOUT / "docs" / "metrics.md").read_text(encoding="utf-8")
RULES = CHECKOUT / "roles" / "npu_node_agent" / "files" / "alerts.yml"


def names_of_the_agent():
    """First strings of what is made in metrics.py: (kind, name, ...) of a Metric, (name, ...) of a Histogram."""
    for node in ast.walk(ast.parse(AGENT.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Metric", "Histogram"):
            first, second = (argument.value for argument in node.args[:2])
            yield from ["npuops_node_agent_" + second] if node.func.id == "Metric" else [f"npuops_node_agent_{first}_bucket"]


def names_of_the_exporter():
    for path in EXPORTER.glob("npu-exporter-metric-names-*.txt"):
        yield from path.read_text(encoding="utf-8").split()


def names_of_the_fleet():
    full = fleet(row("npu-a", step="upgrade-failed", awaiting_approval="rollout"))
    return {name for name, *_labels in samples(fleet_metrics.text(full, 0))}


@pytest.mark.parametrize("name", dashboards.NAMES)
def test_they_are_written_from_the_list_of_panels(name):
    assert dashboards.written(name) == dashboards.file(name).read_text(encoding="utf-8"), "run make dashboards"


@pytest.mark.parametrize("name", dashboards.NAMES)
def test_each_metric_exists(name):
    known = {*names_of_the_agent(), *names_of_the_exporter(), *names_of_the_fleet(), *OTHERS}
    asked = set()
    for query in dashboards.queries(name):
        asked.update(re.findall(r"\b((?:npu|npuops|machine|container|kube)_\w+|ALERTS)\b(?=[{)\[ ]|$)", query))
    asked -= set(re.findall(r"\blabel_\w+", " ".join(dashboards.queries(name))))
    assert len(asked) > 4 and sorted(asked - known) == []


@pytest.mark.parametrize(("name", "number"), [("fleet", 7), ("node", 0), ("rollout", 0)])
def test_each_recorded_series_exists(name, number):
    recorded = {
        rule.get("record") for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]
    }
    asked = {series for query in dashboards.queries(name) for series in re.findall(r"\b(?:node|cluster):\w+:\w+", query)}
    assert len(asked) == number and asked <= recorded


@pytest.mark.parametrize("name", dashboards.NAMES)
def test_panels_are_side_by_side(name):
    panels = json.loads(dashboards.file(name).read_text(encoding="utf-8"))["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)


def test_the_guide_has_each():
    for name in dashboards.NAMES:
        assert f"monitoring/dashboards/{name}.json" in PAGE
