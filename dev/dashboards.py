# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the dashboards of monitoring/dashboards from dev/dashboards.yml: what Grafana wants around each expression."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parents[1]
PANELS = HERE / "dev" / "dashboards.yml"
TARGET = HERE / "monitoring" / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
WIDTHS = {"stat": 4, "state-timeline": COLUMNS}
HEIGHTS = {"stat": 4}
# Panels that show one value of each series.
AT_ONCE = ("stat", "table", "bargauge")
# Labels of tables that say nothing of a chip or a node.
HIDDEN = ("Time", "Value", "__name__", "job", "container", "endpoint", "service", "namespace", "pod")
VARIABLES = {
    "node": {
        "name": "node",
        "label": "Node",
        "type": "query",
        "datasource": SOURCE,
        "query": "label_values(npuops_node_agent_build_info, node)",
        "refresh": 2,
        "sort": 1,
    },
}


def queries(panel: dict[str, Any]) -> dict[str, str]:
    """{legend: expression}"""
    return panel.get("queries") or {"": panel["query"]}


def text(name: str) -> str:
    """The file of a dashboard."""
    entry = yaml.safe_load(PANELS.read_text(encoding="utf-8"))[name]
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    dashboard = {
        "uid": f"npuops-{name}",
        "title": entry["title"],
        "tags": ["npuops.ascend"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source, *(VARIABLES[variable] for variable in entry.get("variables", []))]},
        "panels": _panels(entry["panels"]),
    }
    return json.dumps(dashboard, indent=2, ensure_ascii=False) + "\n"


def _panels(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In rows, from the left to the right."""
    made, x, y, height = [], 0, 0, 0
    for number, entry in enumerate(entries, 1):
        kind = entry.get("kind", "timeseries")
        width = entry.get("width", WIDTHS.get(kind, COLUMNS // 2))
        if x + width > COLUMNS:
            x, y = 0, y + height
        height = HEIGHTS.get(kind, 8)
        made.append(_panel(number, entry, kind, {"x": x, "y": y, "w": width, "h": height}))
        x += width
    return made


def _panel(number: int, entry: dict[str, Any], kind: str, place: dict[str, int]) -> dict[str, Any]:
    panel = {
        "id": number,
        "type": kind,
        "title": entry["title"],
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": entry.get("unit", "short")}, "overrides": []},
        "options": {},
        "targets": [_target(index, legend, query, kind) for index, (legend, query) in enumerate(queries(entry).items())],
    }
    if "says" in entry:
        panel["description"] = entry["says"]
    if kind == "table":
        panel["transformations"] = [{"id": "organize", "options": {"excludeByName": dict.fromkeys(HIDDEN, True)}}]
    return panel


def _target(number: int, legend: str, query: str, kind: str) -> dict[str, Any]:
    shape = {"format": "table"} if kind == "table" else {"legendFormat": legend}
    return {
        "refId": chr(ord("A") + number),
        "datasource": SOURCE,
        "expr": query,
        **shape,
        "instant": kind in AT_ONCE,
        "range": kind not in AT_ONCE,
    }


def main() -> None:
    for name in yaml.safe_load(PANELS.read_text(encoding="utf-8")):
        (TARGET / f"{name}.json").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
