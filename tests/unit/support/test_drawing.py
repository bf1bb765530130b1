# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import math
from xml.etree import ElementTree

import pytest

from support import dashboards, drawing

BEGIN, END = 1_700_000_000, 1_700_003_600


def series(panel):
    """Of hostile names, and of one moment where the panel shows one."""
    moments = [END] if panel["targets"][0]["instant"] else range(BEGIN, END, 60)
    labels = {"node": "</text><script>", "chip": "0", "codes": "&" * 500}
    return [drawing.Series(labels, f"npu-{number} <&>", [(when, abs(math.sin(when))) for when in moments]) for number in range(12)]


@pytest.mark.parametrize("name", dashboards.NAMES)
@pytest.mark.parametrize("data", [series, lambda _panel: []])
def test_each_panel_is_in_the_picture(name, data):
    dashboard = json.loads(dashboards.file(name).read_text(encoding="utf-8"))
    root = ElementTree.fromstring(drawing.draw(dashboard, data, BEGIN, END, 60))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {panel["title"] for panel in dashboard["panels"]} <= set(texts)
    assert ("No data" in texts) is (data is not series)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_values_stand_where_they_belong():
    """The only line of a panel goes from its left to its right, and the higher value is higher."""
    panel = {
        "title": "Power", "type": "timeseries", "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": "watt"}}, "targets": [{"instant": False}],
    }  # fmt: skip
    line = drawing.Series({}, "npu-a", [(BEGIN, 10), ((BEGIN + END) / 2, 20), (END, 5)])
    root = ElementTree.fromstring(drawing.draw({"title": "t", "panels": [panel]}, lambda _panel: [line], BEGIN, END, 3600))
    (polyline,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, point.split(","))) for point in polyline.get("points").split()]
    assert points[0][0] < points[1][0] < points[2][0] < 12 * 50 and points[1][1] < points[0][1] < points[2][1]
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [(0.985, "percentunit", "98.5 %"), (90, "s", "1.5 min"), (7200, "s", "2 h"), (3, "short", "3"), (0.25, "s", "0.25 s"),
     (214.4, "watt", "214 W"), (41.5, "celsius", "41.5 °C")],
)  # fmt: skip
def test_values_are_readable(value, unit, shown):
    assert drawing.shown_as(value, unit) == shown


def test_gaps_stay_gaps_and_a_line_costs_no_more_points_than_it_shows():
    values = [(0, 1), (2, 1), (4, 1), (6, 3), (20, 3), (22, math.nan), (24, 2)]
    parts = drawing.Series({}, "", values).parts(2)
    assert parts == [[(0, 1), (4, 1), (6, 3)], [(20, 3)], [(24, 2)]]


def test_the_legend_is_that_of_the_query():
    assert drawing.legend("{{node}} HBM {{other}}", {"node": "npu-a"}) == "npu-a HBM"
