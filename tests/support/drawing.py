# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws a dashboard as SVG, about as Grafana would, for the documentation: Grafana itself is not at hand."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

Panel = dict[str, Any]
_COLUMN, _ROW, _GAP = 50, 36, 6  # pixels: of gridPos, and between panels
_COLORS = ("#3274d9", "#e0752d", "#2f9e44", "#b3319a", "#c9a400", "#0f8b8d", "#8c564b", "#5f5f9e")
_LICENSE = (
    "<!-- Copyright (c) 2026, npuops.ascend maintainers\n"
    "     GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)\n"
    "     SPDX-License-Identifier: GPL-3.0-or-later -->"
)
_STATES = {0: "#d8d9da", 1: "#56a64b"}
_MOST = 8  # series in a legend, rows of a table
_HIDDEN = ("Time", "Value", "__name__", "job", "instance", "container", "endpoint", "service", "namespace", "pod")


@dataclass(frozen=True)
class Series:
    """``values``: (seconds since 1970, value) in the order of time; of a query at once, one."""

    labels: dict[str, str]
    legend: str
    values: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.values[-1][1]

    def parts(self, step: float) -> list[list[tuple[float, float]]]:
        """The values without gaps of more than a ``step``, in seconds; of equal ones in a row, the first and the last."""
        found: list[list[tuple[float, float]]] = []
        for when, value in self.values:
            if math.isnan(value):
                continue
            if not found or when - found[-1][-1][0] > 1.5 * step:
                found.append([])
            part = found[-1]
            if len(part) > 1 and part[-2][1] == part[-1][1] == value:
                part.pop()
            part.append((when, value))
        return found


def draw(dashboard: dict[str, Any], data: Callable[[Panel], list[Series]], begin: float, end: float, step: float) -> str:
    """The SVG of what the panels show from ``begin`` to ``end``, seconds since 1970, by values for each ``step`` seconds.
    ``data(panel)``: what its queries answer."""
    panels = dashboard["panels"]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) * _ROW + 50
    body = [_text(_GAP, 28, dashboard["title"], 20, "#111")]
    for panel in panels:
        body.append(_Frame(panel, begin, end, step).drawn(data(panel)))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{24 * _COLUMN}" height="{height}" font-family="sans-serif">'
    return "\n".join([_LICENSE, head, f'<rect width="100%" height="100%" fill="#f4f5f5"/>{body[0]}', *body[1:], "</svg>"]) + "\n"


class _Frame:
    """One panel, and the room inside of it."""

    def __init__(self, panel: Panel, begin: float, end: float, step: float) -> None:
        place = panel["gridPos"]
        self.panel, self.begin, self.end, self.step = panel, begin, end, step
        self.unit = panel["fieldConfig"]["defaults"]["unit"]
        self.x, self.y = place["x"] * _COLUMN + _GAP // 2, place["y"] * _ROW + 44
        self.width, self.height = place["w"] * _COLUMN - _GAP, place["h"] * _ROW - _GAP
        self.left, self.right, self.top, self.bottom = self.x + 12, self.x + self.width - 12, self.y + 34, self.y + self.height - 12

    def drawn(self, series: list[Series]) -> str:
        box = f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="3" fill="#fff" stroke="#dcdcdd"/>'
        title = _text(self.left, self.y + 20, self.panel["title"], 12, "#222", most=self.width / 6.2)
        kinds = {"stat": self._stat, "table": self._table, "bargauge": self._bars, "state-timeline": self._states}
        inside = kinds.get(self.panel["type"], self._lines)(series) if series else self._nothing()
        return f"<g>{box}{title}{inside}</g>"

    def _nothing(self) -> str:
        return _text((self.left + self.right) / 2, (self.top + self.bottom) / 2, "No data", 13, "#999", anchor="middle")

    def _stat(self, series: list[Series]) -> str:
        shown = ", ".join(f"{one.legend} {shown_as(one.last, self.unit)}".strip() for one in series[:2])
        size = 34 if len(shown) < 9 else 22
        return _text(
            (self.left + self.right) / 2, (self.top + self.bottom) / 2 + size / 3, shown, size, _COLORS[0], anchor="middle"
        )

    def _table(self, series: list[Series]) -> str:
        columns = sorted({name for one in series for name in one.labels if name not in _HIDDEN})
        step = (self.right - self.left) / max(1, len(columns))
        rows = [columns] + [[one.labels.get(name, "") for name in columns] for one in series[:_MOST]]
        return "".join(
            _text(self.left + column * step, self.top + 14 + row * 22, cell, 11, "#222" if row else "#777", most=step / 6.3)
            for row, cells in enumerate(rows)
            for column, cell in enumerate(cells)
        )

    def _bars(self, series: list[Series]) -> str:
        most = max(one.last for one in series) or 1
        return "".join(
            _text(self.left, y + 13, one.legend, 11, "#222", most=20)
            + f'<rect x="{self.left + 130}" y="{y}" width="{max(1, (self.right - self.left - 220) * one.last / most):.0f}" height="16"'
            f' fill="{_COLORS[1]}"/>' + _text(self.right, y + 13, shown_as(one.last, self.unit), 11, "#222", anchor="end")
            for one, y in zip(series[:_MOST], range(self.top, self.bottom - 16, 26))
        )

    def _states(self, series: list[Series]) -> str:
        left, drawn = self.left + 130, [self._hours(self.left + 130)]
        step = min(30, (self.bottom - 18 - self.top) / len(series))
        for number, one in enumerate(series):
            y = self.top + number * step
            drawn.append(_text(self.left, y + step / 2 + 4, one.legend, 11, "#222", most=20))
            for part in one.parts(self.step):
                for (begin, value), (end, _next) in zip(part, [*part[1:], (part[-1][0] + self.step, 0.0)]):
                    x, to = self._x(begin, left), self._x(end, left)
                    color = _STATES.get(int(value), _COLORS[1])
                    drawn.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{to - x:.1f}" height="{step - 4:.1f}" fill="{color}"/>')
        return "".join(drawn)

    def _lines(self, series: list[Series]) -> str:
        columns = max(1, min(4, int((self.right - self.left) / (25 + 6.3 * max(len(one.legend) for one in series)))))
        left, bottom = self.left + 50, self.bottom - 18 - 16 * (1 + (min(len(series), _MOST) - 1) // columns)
        values = [value for one in series for part in one.parts(self.step) for _when, value in part]
        if not values:
            return self._nothing()
        ticks = _ticks(min(0.0, *values), max(values))
        low, high = ticks[0], ticks[-1]
        drawn = [self._hours(left, bottom)]
        for value in ticks:
            y = bottom - (bottom - self.top) * (value - low) / (high - low)
            drawn.append(f'<path d="M{left} {y:.0f}H{self.right}" stroke="#eee"/>')
            drawn.append(_text(left - 6, y + 4, shown_as(value, self.unit), 10, "#777", anchor="end"))
        for number, one in enumerate(series):
            color = _COLORS[number % len(_COLORS)]
            for part in one.parts(self.step):
                points = " ".join(
                    f"{self._x(when, left):.1f},{bottom - (bottom - self.top) * (value - low) / (high - low):.1f}"
                    for when, value in part
                )
                drawn.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>')
            if number < _MOST:
                x = self.left + number % columns * (self.right - self.left) / columns
                y = bottom + 32 + number // columns * 16
                drawn.append(f'<rect x="{x:.0f}" y="{y - 6}" width="12" height="3" fill="{color}"/>')
                drawn.append(_text(x + 17, y, one.legend, 10, "#222", most=(self.right - self.left - 25) / columns / 5.6))
        return "".join(drawn)

    def _x(self, when: float, left: float) -> float:
        return left + (self.right - left) * min(1.0, max(0.0, (when - self.begin) / (self.end - self.begin)))

    def _hours(self, left: float, bottom: float | None = None) -> str:
        moments = [self.begin + (self.end - self.begin) * number / 4 for number in range(5)]
        return "".join(
            _text(self._x(when, left), (bottom or self.bottom - 14) + 14, time.strftime("%H:%M:%S", time.gmtime(when)), 10, "#777",
                  anchor="middle" if 0 < number < 4 else "start" if number == 0 else "end")
            for number, when in enumerate(moments)
        )  # fmt: skip


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers, the first and the last of which enclose both."""
    size = (high - low or 1) / 4
    power = 10.0 ** math.floor(math.log10(size))
    size = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= size)
    first, last = math.floor(low / size), max(math.ceil(high / size), math.floor(low / size) + 1)
    return [number * size for number in range(first, last + 1)]


def shown_as(value: float, unit: str) -> str:
    """As a person reads it; ``unit``: one of Grafana's."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s" and abs(value) >= 60:
        return f"{value / 60:.3g} min" if value < 3600 else f"{value / 3600:.3g} h"
    sign = {"percent": " %", "celsius": " °C", "watt": " W", "mwatt": " mW", "decmbytes": " MB", "pps": " p/s", "s": " s"}.get(
        unit, ""
    )
    return f"{value:.0f}{sign}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}{sign}"


def legend(template: str, labels: dict[str, str]) -> str:
    """The name of a series by the legend of its query, such as ``{{node}} HBM``."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), template).strip()


def _text(x: float, y: float, text: str, size: float, color: str, anchor: str = "start", most: float = 200) -> str:
    text = text if len(text) <= most else text[: max(1, int(most) - 1)] + "…"
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{escape(text)}</text>'
