# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards of monitoring/dashboards, and what they ask for."""

from __future__ import annotations

import json
import pathlib
import runpy

from support.paths import CHECKOUT

_DIRECTORY = CHECKOUT / "monitoring" / "dashboards"
NAMES = sorted(path.stem for path in _DIRECTORY.glob("*.json"))


def file(name: str) -> pathlib.Path:
    return _DIRECTORY / f"{name}.json"


def written(name: str) -> str:
    """What dev/dashboards writes now."""
    return runpy.run_path(str(CHECKOUT / "dev" / "dashboards.py"))["text"](name)


def panels(name: str) -> list[tuple[str, list[str]]]:
    """(title, expressions) of each panel."""
    dashboard = json.loads(file(name).read_text(encoding="utf-8"))
    return [(panel["title"], [target["expr"] for target in panel["targets"]]) for panel in dashboard["panels"]]


def queries(name: str) -> list[str]:
    return [query for _title, of_panel in panels(name) for query in of_panel]


def as_prometheus_takes_it(query: str, node: str = ".*") -> str:
    """With what Grafana puts in for its variables."""
    return query.replace("$node", node).replace("$__rate_interval", "1m").replace("$__range", "5m")
