# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the alerts refer to: pages of the documentation, metrics that it lists, and levels that there are."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._chips import fault_table

from support.paths import CHECKOUT

TEXT = (CHECKOUT / "roles/npu_node_agent/files/alerts.yml").read_text(encoding="utf-8")
ALL = [rule for group in yaml.safe_load(TEXT)["groups"] for rule in group["rules"]]
RULES = {rule["alert"]: rule for rule in ALL if "alert" in rule}
RECORDS = {rule["record"]: rule for rule in ALL if "record" in rule}
# About all nodes at once: they name the nodes, or the machine whose file it is, in another way.
OF_ALL = {"NpuRolloutHalted", "NpuRecoveryStorm", "NpuFleetStatusStale"}
PAGE = (CHECKOUT / "docs/metrics.md").read_text(encoding="utf-8")
SOURCE = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))["repository"]


@pytest.mark.parametrize("alert", RULES)
def test_its_runbook_is_a_section_of_the_documentation(alert):
    assert RULES[alert]["annotations"]["runbook_url"] == "%s/blob/main/docs/metrics.md#%s" % (SOURCE, alert.lower())
    assert re.search("^### %s$" % alert, PAGE, re.MULTILINE)


@pytest.mark.parametrize("alert", sorted(RULES.keys() - OF_ALL))
def test_it_names_the_node(alert):
    """The instance is the address of a pod."""
    assert "{{ or $labels.node $labels.instance }}" in RULES[alert]["annotations"]["summary"]


def test_each_section_is_of_an_alert():
    assert re.findall("^### (.+)$", PAGE, re.MULTILINE) == list(RULES)


def test_chips_that_the_device_plugin_withdraws():
    (levels,) = re.findall(r'level=~"([^"]+)"', RULES["NpuChipFault"]["expr"])
    assert levels.split("|") == [level for level in fault_table.LEVELS if level not in fault_table.KEPT]


def test_each_metric_is_in_the_documentation():
    agents = (CHECKOUT / "images/node-agent/npu_node_agent/metrics.py").read_text(encoding="utf-8")
    names = set(re.findall(r'(?:Metric\(\s*"(?:gauge|counter)"|Histogram\()\s*,?\s*"(\w+)"', agents))
    section = PAGE.partition("\n## Metrics of the node agent\n")[2].partition("\n## ")[0]
    listed = {name for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert len(names) > 15 and names == listed & names and listed <= names


@pytest.mark.parametrize("record", RECORDS)
def test_its_name_has_the_form_that_prometheus_recommends(record):
    """level:metric:operations"""
    level, metric, operations = record.split(":")
    assert level in ("node", "cluster") and metric.startswith("npuops_node_agent_") and operations
    assert ("_per_" in metric) is (operations == "ratio")


def test_what_is_recorded_is_in_the_documentation():
    """What is only a step on the way to another one may be missing."""
    section = PAGE.partition("\n## Recorded series\n")[2].partition("\n## ")[0]
    listed = re.findall(r"`((?:node|cluster):\w+:\w+)`", section)
    assert len(listed) == len(set(listed)) and set(listed) == RECORDS.keys() - {"node:npuops_node_agent_chips_expected:max"}


def test_each_series_of_a_rule_exists():
    """Recorded before: a rule of a group sees what those before it have recorded."""
    before = set()
    for rule in ALL:
        used = set(re.findall(r"\b(?:node|cluster):\w+:\w+", rule["expr"]))
        assert used <= before, rule
        before.add(rule.get("record"))


def test_samples_of_the_first_group_stand_for_a_minute():
    """The rules of 30 days multiply their number by it."""
    groups = {group["name"]: group for group in yaml.safe_load(TEXT)["groups"]}
    assert groups["npuops-node-agent-now"]["interval"] == "1m"
    times = [rule["expr"] for rule in groups["npuops-node-agent-30d"]["rules"] if re.search(r"(sum|count)_over_time", rule["expr"])]
    assert len(times) == 2 and all(expression.endswith("* 60") for expression in times)
