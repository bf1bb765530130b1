# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report of an upgrade says of the components, in each of its forms."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import html as report_html
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import junit as report_junit
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import report_table, rollout_report

PLANNED = {"order": "after", "from": ["26.1"], "to": "7.3", "changes": ["change DaemonSet npu-operator/npu-exporter"]}


def report(**components):
    return rollout_report.document([], "r1", "upgrade", None, 1795264200.0, None, components or None)


@pytest.mark.parametrize(
    ("given", "text", "failed"),
    [
        ({}, None, False),
        ({"order": None, "from": ["7.3"], "to": "7.3", "changes": []}, None, False),
        (PLANNED, "Components: MindCluster 26.1 -> 7.3, changed after the drivers.", False),
        (dict(PLANNED, order="before"), "Components: MindCluster 26.1 -> 7.3, changed before the drivers.", False),
        ({"order": "before", "from": ["26.1"], "to": "26.1"}, "Components: changed before the drivers.", False),
        (
            dict(PLANNED, unfit=["MindCluster 7.3 does not support driver 26.0.0 (npu-b)"]),
            "Components: MindCluster 26.1 -> 7.3, not changed yet: MindCluster 7.3 does not support driver 26.0.0 (npu-b)."
            " Once this is resolved, run the upgrade again.",
            False,
        ),
        (
            dict(PLANNED, left_alone="this run leaves out c, and components change on all nodes or on none"),
            "Components: MindCluster 26.1 -> 7.3, not changed yet: this run leaves out c, and components change on all nodes or on none."
            " Once this is resolved, run the upgrade again.",
            False,
        ),
        (dict(PLANNED, checked=True), "Components: MindCluster 26.1 -> 7.3, would change after the drivers.", False),
        (
            dict(PLANNED, order="before", checked=True),
            "Components: MindCluster 26.1 -> 7.3, would change before the drivers.",
            False,
        ),
        (
            dict(PLANNED, problem="DaemonSet x: it does not work on <npu-a>."),
            "Components: MindCluster 26.1 -> 7.3, not changed: DaemonSet x: it does not work on <npu-a>.",
            True,
        ),
    ],
)
def test_each_form_tells_it(given, text, failed):
    made = report(**given)
    lines = report_table.table(made)
    assert (text in lines) if text else not any("Components" in line for line in lines)
    assert report_table.problem(made) == (text if failed else None)
    suite = ET.fromstring(report_junit.document(made)).find("testsuite")
    assert [case.get("name") for case in suite.findall("testcase[failure]")] == (["components"] if failed else [])
    page = report_html.page(made)
    assert ("Components" in page) == bool(text) and "<npu-a>" not in page and ("&lt;npu-a&gt;" in page) == failed
