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
RULES = {rule["alert"]: rule for group in yaml.safe_load(TEXT)["groups"] for rule in group["rules"]}
PAGE = (CHECKOUT / "docs/metrics.md").read_text(encoding="utf-8")
SOURCE = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text(encoding="utf-8"))["repository"]


@pytest.mark.parametrize("alert", RULES)
def test_its_runbook_is_a_section_of_the_documentation(alert):
    assert RULES[alert]["annotations"]["runbook_url"] == "%s/blob/main/docs/metrics.md#%s" % (SOURCE, alert.lower())
    assert re.search("^### %s$" % alert, PAGE, re.MULTILINE)


@pytest.mark.parametrize("alert", RULES)
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
    listed = {name for row in re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert len(names) > 15 and names == listed & names and listed <= names
