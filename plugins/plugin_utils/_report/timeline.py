# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of the HTML page: a bar for each node that was taken into maintenance, on one axis of time, as plain values."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import axis as report_axis
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report

# Percent of the axis from which on a segment has room for its duration: on a wide screen, and on a narrow one.
_LABELLED, _WIDE = 9, 18
_LONGEST_NAME = 22  # characters
_DENSE = 40  # nodes from which on rows are lower


class _Segment(NamedTuple):
    """Steps of one part that follow each other. Times are seconds since 1970."""

    part: str
    began: int
    ended: int
    steps: list[dict[str, Any]]


def drawn(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """``nodes``: those that were taken, at least one, in the order in which they began."""
    axis = report_axis.Axis(
        min(_seconds(node["timeline"][0]["began"]) for node in nodes),
        max(_seconds(node["timeline"][-1]["ended"]) for node in nodes),
    )
    parts = [name for name, _steps in rollout_report.PARTS if any(name in node["seconds"] for node in nodes)]
    longest = max(node["seconds"]["TOTAL"] for node in nodes) or 1
    return {
        "day": "%s, UTC" % report_axis.date(axis.begin),
        "ticks": [{"place": _percent(axis.place(when)), "label": label} for when, label in axis.ticks()],
        "intervals": axis.intervals,
        "parts": parts,
        # In a column of its own only where not all went the same way.
        "ways": len({(node["from"], node["to"]) for node in nodes}) > 1,
        "dense": len(nodes) >= _DENSE,
        # A name is one line, unless it is so long that it would be at the bars' cost.
        "name_width": min(_LONGEST_NAME, max(len(node["node"]) for node in nodes) + 1),
        "rows": [_row(node, axis, parts, longest) for node in nodes],
    }


def _row(node: dict[str, Any], axis: report_axis.Axis, parts: list[str], longest: int) -> dict[str, Any]:
    """``longest``: seconds, that of the slowest node."""
    return {
        "name": node["node"],
        "host": node["host"] if node["host"] != node["node"] else None,
        "status": node["status"],
        "outcome": node["outcome"],
        "bad": node["status"] == rollout_report.FAILED,
        "way": "%s → %s" % (node["from"] or "?", node["to"] or "?"),
        "bar": _bar(node, axis),
        "lasted": [report_axis.short(node["seconds"][part]) if part in node["seconds"] else "" for part in parts],
        "total": report_axis.short(node["seconds"]["TOTAL"]),
        "share": "%.1f%%" % (100.0 * node["seconds"]["TOTAL"] / longest),
        "reason": node["reason"] if rollout_report.needs_telling(node) else None,
    }


def _bar(node: dict[str, Any], axis: report_axis.Axis) -> dict[str, Any]:
    """The node's bar at its place on the axis, and what it says to those who cannot see it."""
    segments = _segments(node["timeline"])
    begin, end = segments[0].began, segments[-1].ended
    return {
        "left": _percent(axis.place(begin)),
        "width": _percent(axis.percent(end - begin)),
        "open": not node["ended"],
        "spoken": _spoken(node, segments),
        "segments": [_drawn_segment(segment, axis, end - begin) for segment in segments if segment.ended > segment.began],
    }


def _drawn_segment(segment: _Segment, axis: report_axis.Axis, total: int) -> dict[str, Any]:
    """``total``: the seconds of the bar."""
    lasted = segment.ended - segment.began
    share = axis.percent(lasted)
    return {
        "part": segment.part,
        "width": _percent(100.0 * lasted / total),
        "label": report_axis.short(lasted) if share >= _LABELLED else "",
        "wide": share >= _WIDE,
        "told": _told(segment),
    }


def _segments(timeline: list[dict[str, Any]]) -> list[_Segment]:
    found = []
    for part, group in itertools.groupby(timeline, key=lambda step: step["part"]):
        steps = list(group)
        found.append(_Segment(part, _seconds(steps[0]["began"]), _seconds(steps[-1]["ended"]), steps))
    return found


def _told(segment: _Segment) -> str:
    """What a segment says when it is pointed at."""
    text = "%s %s, %s to %s UTC" % (
        segment.part.capitalize(),
        report_axis.words(segment.ended - segment.began),
        report_axis.clock(segment.began),
        report_axis.clock(segment.ended),
    )
    lasted = [(step["step"], rollout_report.seconds_between(step["began"], step["ended"])) for step in segment.steps]
    details = ["%s %s" % (step.replace("-required", ""), report_axis.words(took)) for step, took in lasted if took]
    return "%s (%s)" % (text, ", ".join(details)) if len(details) > 1 else text


def _spoken(node: dict[str, Any], segments: list[_Segment]) -> str:
    parts = ", ".join("%s %s" % (each.part.lower(), report_axis.words(each.ended - each.began)) for each in segments)
    begin, end = report_axis.clock(segments[0].began), report_axis.clock(segments[-1].ended)
    text = "%s from %s to %s UTC" if node["ended"] else "%s from %s UTC, last heartbeat %s, not ended"
    return text % (parts, begin, end)


def _percent(number: float) -> str:
    return "%.3f%%" % number


def _seconds(text: str) -> int:
    return maintenance_record.seconds_of(text) or 0
