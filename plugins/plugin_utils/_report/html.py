# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a roll-out as one HTML page that needs nothing else, rendered from its JSON (_report.document).

No script, nothing from the network: it can be mailed, archived and opened anywhere. What hosts and pods said is in it, so
every text goes through ``_tag``, which escapes it; and the page forbids the browser to run or load anything.
"""

from __future__ import annotations

import html
import itertools

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import parking as drain_parking
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import axis as report_axis
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import document as report_document
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.style import STYLE

_KINDS = {"upgrade": "Driver upgrade", "rollback": "Driver rollback"}
_SYMBOLS = {report_document.PASSED: "✓", report_document.FAILED: "✕", report_document.WAITING: "○", report_document.SKIPPED: "–"}
_STATUSES = (report_document.FAILED, report_document.WAITING, report_document.PASSED, report_document.SKIPPED)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# Percent of the axis from which on a segment has room for its duration: on a wide screen, and on a narrow one.
_LABELLED, _WIDE = 9, 18
_LONGEST_NAME = 22  # characters
_DENSE = 40  # nodes from which on rows are lower


def page(report):
    """The file as str."""
    head = _tag(
        "head",
        _tag("meta", charset="utf-8"),
        _tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        _tag("title", "%s: %s" % (" ".join((_kind(report), _way(report))).strip(), _state(report)[1].lower())),
        _tag("style", _Markup(STYLE)),
    )
    taken = [node for node in report["nodes"] if node["timeline"]]
    taken.sort(key=lambda node: node["timeline"][0]["began"])
    rest = [node for node in report["nodes"] if not node["timeline"]]
    below = itertools.chain(_rest(rest), _workloads(report), _approvals(taken))
    main = _tag("main", *_banners(report), _counts(report["nodes"]), _timeline(taken), *below)
    body = _tag("body", _header(report), main, _footer(report))
    return "<!DOCTYPE html>\n%s\n" % _tag("html", head, body, lang="en")


# --- writing HTML ---


class _Markup(str):
    """What is HTML already."""


def _tag(element, /, *content, **attributes):
    """An element. What is not made by this function is text, and is escaped. ``class_`` is class, ``aria_label`` aria-label;
    attributes that are None are left out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    head = element + "".join(' %s="%s"' % (key, _escape(value)) for key, value in given.items())
    if element == "meta":
        return _Markup("<%s/>\n" % head)
    inner = "".join(part if isinstance(part, _Markup) else _escape(part) for part in content)
    return _Markup("<%s>%s</%s>%s" % (head, inner, element, "" if element in ("span", "b", "i", "small", "code") else "\n"))


def _escape(text):
    return html.escape(report_document.printable(text))


def _when(text):
    """A time of the JSON for people, whatever it is."""
    seconds = maintenance_record.seconds_of(text)
    return text if seconds is None else "%s %s UTC" % (report_axis.date(seconds), report_axis.clock(seconds))


def _many(number, what):
    return "%d %s%s" % (number, what, "" if number == 1 else "s")


# --- above the timeline ---


def _kind(report):
    return _KINDS.get(report["reason"], report["reason"])


def _way(report):
    """25.5.0 → 25.5.1; empty when nothing was due."""
    ends = [", ".join(report[key]) for key in ("from", "to")]
    return " → ".join(end or "?" for end in ends) if any(ends) else ""


def _state(report):
    """(class, the run in a word or two)."""
    nodes = report["nodes"]
    if report["halted"]:
        return report_document.FAILED, "Halted"
    if report_document.unfinished(nodes) or report["workloads"]["problem"]:
        return report_document.FAILED, "Unfinished"
    if report_document.awaiting(nodes):
        return report_document.WAITING, "Waits for approval"
    if not any(node["timeline"] for node in nodes):
        return report_document.SKIPPED, "Nothing was due"
    return report_document.PASSED, "Done"


def _header(report):
    status, state = _state(report)
    facts = [("Run", [report["run"]])]
    if report["started"]:
        facts += [
            ("Began", [_when(report["started"])]),
            ("Until", [_when(report["ended"])]),
            ("Took", [report_axis.words(report["seconds"])]),
        ]
    facts.append(("Nodes", [str(len(report["nodes"]))]))
    return _tag(
        "header",
        _tag("p", _kind(report), class_="kind"),
        _tag("h1", _way(report) or state, _tag("span", state, class_="state " + status) if _way(report) else ""),
        _tag("dl", *(_tag("div", _tag("dt", name), _tag("dd", *value)) for name, value in facts), class_="facts"),
    )


def _banners(report):
    """What somebody has to do."""
    halted, bad = report["halted"], report_document.unfinished(report["nodes"])
    if halted:
        yield _banner(
            report_document.FAILED,
            "The roll-out is halted: no run starts another node.",
            _tag("p", halted.get("why")),
            _tag("p", "By %s, %s." % (halted.get("who"), _when(halted.get("when"))), class_="who"),
            *_command(report_document.how_to_go_on(report), report["go_on"]),
        )
    elif bad:
        text = "%d of %s did not succeed." % (len(bad), _many(len(report["nodes"]), "node"))
        yield _banner(report_document.FAILED, text, *_command(report_document.how_to_go_on(report), report["go_on"]))
    if report["workloads"]["problem"]:
        title, *lines = report["workloads"]["problem"].splitlines()
        yield _banner(report_document.FAILED, title, _tag("pre", "\n".join(line.strip() for line in lines)))
    if report["approve"]:
        waiting = report_document.awaiting(report["nodes"])
        text = "%s for approval." % ("1 node waits" if len(waiting) == 1 else "%d nodes wait" % len(waiting))
        yield _banner(report_document.WAITING, text, *_command("To approve, then run again:", report["approve"]))


def _banner(status, title, *content):
    return _tag("section", _tag("h2", title), *content, class_="banner " + status)


def _command(text, command):
    return _tag("p", text), _tag("pre", _tag("code", command))


def _counts(nodes):
    tiles = []
    for status in _STATUSES:
        outcomes = [node["outcome"] for node in nodes if node["status"] == status]
        for outcome in dict.fromkeys(outcomes):
            number = _tag("b", str(outcomes.count(outcome)), class_=status)
            tiles.append(_tag("li", number, _tag("span", outcome)))
    return _tag("ul", *tiles, class_="counts", aria_label="Nodes by outcome") if tiles else ""


# --- the timeline ---


def _timeline(nodes):
    """``nodes``: those that were taken, in that order."""
    if not nodes:
        text = _tag("p", "No node was taken into maintenance.", class_="empty")
        return _tag("section", _tag("div", _tag("h2", "Timeline"), class_="title"), text)
    axis = report_axis.Axis(
        min(_seconds(node["timeline"][0]["began"]) for node in nodes),
        max(_seconds(node["timeline"][-1]["ended"]) for node in nodes),
    )
    parts = [name for name, _steps in report_document.PARTS if any(name in node["seconds"] for node in nodes)]
    # In a column of its own only where not all went the same way.
    ways = len({(node["from"], node["to"]) for node in nodes}) > 1
    head = _tag("div", _tag("h2", "Timeline"), _legend(parts), class_="title")
    longest = max(node["seconds"]["TOTAL"] for node in nodes) or 1
    body = itertools.chain.from_iterable(_rows(node, axis, parts, ways, longest) for node in nodes)
    body = _tag("tbody", *body, role="rowgroup")
    columns = _columns(axis, parts, ways)
    kind = "dense" if len(nodes) >= _DENSE else None
    # A name is one line, unless it is so long that it would be at the bars' cost.
    style = "--name:%dch" % min(_LONGEST_NAME, max(len(node["node"]) for node in nodes) + 1)
    return _tag("section", head, _tag("table", columns, body, class_=kind, style=style, role="table", aria_label="Timeline"))


def _legend(parts):
    return _tag("ul", *(_tag("li", _tag("i", class_=part.lower()), part.capitalize()) for part in parts), class_="legend")


def _columns(axis, parts, ways):
    names = [("Node", None), ("Outcome", "outcome")] + ([("Driver", "driver")] if ways else [])
    cells = [_column(name, kind) for name, kind in names]
    cells.append(_column(_ticks(axis), "time"))
    cells += [_column(part.capitalize(), "number part") for part in parts]
    cells.append(_column("Total", "number"))
    return _tag("thead", _tag("tr", *cells, role="row"), role="rowgroup")


def _column(content, kind):
    return _tag("th", content, class_=kind, scope="col", role="columnheader")


def _ticks(axis):
    marks = (_tag("span", label, style="left:%.3f%%" % axis.place(when)) for when, label in axis.ticks())
    day = _tag("div", "%s, UTC" % report_axis.date(axis.begin))
    # An even number of intervals lets every other label go on a narrow screen.
    return _Markup(day + _tag("div", *marks, class_="axis odd" if axis.intervals % 2 else "axis"))


def _rows(node, axis, parts, ways, longest):
    """The node's row, and one with the reason where there is one. ``longest``: seconds, that of the slowest node."""
    bad = " bad" if node["status"] == report_document.FAILED else ""
    cells = [_name(node), _outcome(node)]
    if ways:
        cells.append(_cell("%s → %s" % (node["from"] or "?", node["to"] or "?"), "driver"))
    cells.append(_cell(_track(node, axis), "time"))
    cells += [_cell(_taken(node, part), "number part") for part in parts]
    share = "--share:%.1f%%" % (100.0 * node["seconds"]["TOTAL"] / longest)
    cells.append(_cell(_tag("span", _taken(node, "TOTAL"), class_="meter", style=share), "number total"))
    yield _tag("tr", *cells, class_="taken" + bad, role="row")
    if report_document.needs_telling(node):
        why = _tag("td", node["reason"], colspan=str(len(cells)), role="cell")
        yield _tag("tr", why, class_="why" + bad, role="row")


def _cell(content, kind):
    return _tag("td", content, class_=kind, role="cell")


def _name(node):
    host = [_tag("small", "host " + node["host"])] if node["host"] != node["node"] else []
    return _tag("th", node["node"], *host, scope="row", role="rowheader")


def _outcome(node):
    symbol = _tag("span", _SYMBOLS[node["status"]] + " ", aria_hidden="true")
    return _cell(_tag("span", symbol, node["outcome"], class_=node["status"]), "outcome")


def _taken(node, part):
    return report_axis.short(node["seconds"][part]) if part in node["seconds"] else ""


def _track(node, axis):
    """The node's bar at its place on the axis. For those who cannot see it, it says the same."""
    segments = _segments(node["timeline"])
    begin, end = segments[0][1], segments[-1][2]
    total = end - begin
    spans = []
    for part, began, ended, steps in segments:
        if ended > began:
            share = axis.percent(ended - began)
            label = report_axis.short(ended - began) if share >= _LABELLED else ""
            kind = part.lower() + (" wide" if share >= _WIDE else "")
            style = "width:%.3f%%" % (100.0 * (ended - began) / total)
            spans.append(_tag("span", label, class_=kind, style=style, title=_told(part, began, ended, steps)))
    drawn = _tag(
        "div",
        *spans,
        class_="bar" if node["ended"] else "bar open",
        role="img",
        aria_label=_spoken(node, segments),
        style="left:%.3f%%;width:%.3f%%" % (axis.place(begin), axis.percent(total)),
    )
    return _tag("div", drawn, class_="track", style="--intervals:%d" % axis.intervals)


def _segments(timeline):
    """[(part, began, ended, [step, ...])]: steps of one part that follow each other are one segment."""
    found = []
    for part, steps in itertools.groupby(timeline, key=lambda step: step["part"]):
        steps = list(steps)
        found.append((part, _seconds(steps[0]["began"]), _seconds(steps[-1]["ended"]), steps))
    return found


def _told(part, began, ended, steps):
    """What a segment says when it is pointed at."""
    text = "%s %s, %s to %s UTC" % (
        part.capitalize(),
        report_axis.words(ended - began),
        report_axis.clock(began),
        report_axis.clock(ended),
    )
    lasted = [(step["step"], report_document.seconds_between(step["began"], step["ended"])) for step in steps]
    details = ["%s %s" % (step.replace("-required", ""), report_axis.words(took)) for step, took in lasted if took]
    return "%s (%s)" % (text, ", ".join(details)) if len(details) > 1 else text


def _spoken(node, segments):
    lasted = [(part.lower(), report_axis.words(ended - began)) for part, began, ended, _steps in segments]
    parts = ", ".join("%s %s" % entry for entry in lasted)
    begin, end = report_axis.clock(segments[0][1]), report_axis.clock(segments[-1][2])
    text = "%s from %s to %s UTC" if node["ended"] else "%s from %s UTC, last heartbeat %s, not ended"
    return text % (parts, begin, end)


def _seconds(text):
    return maintenance_record.seconds_of(text)


# --- below it ---


def _rest(nodes):
    """Nodes without a bar, those with something in common together; what asks for action first."""
    if not nodes:
        return
    nodes = sorted(nodes, key=lambda node: _STATUSES.index(node["status"]))
    columns = [_column("Outcome", "outcome"), _column("Nodes", None)]
    reasons = any(report_document.needs_telling(node) for node in nodes)
    if reasons:
        columns.append(_column("Why", "reason"))
    rows = []
    for group in report_document.alike(nodes):
        first = group[0]
        cells = [_outcome(first), _cell(_names(group), None)]
        if reasons:
            cells.append(_cell(first["reason"] if report_document.needs_telling(first) else "", "reason"))
        rows.append(_tag("tr", *cells, role="row", class_="bad" if first["status"] == report_document.FAILED else None))
    yield _section("Not taken", columns, rows)


def _workloads(report):
    """What was parked, what it was, and what became of it."""
    workloads = report["workloads"]
    left = {entry["object"]: entry["reason"] for entry in workloads["left"]}
    known = {entry["object"]: drain_parking.shown(entry["was"]) for entry in workloads["parked"] + workloads["restored"]}
    restored = {entry["object"] for entry in workloads["restored"]}
    rows = []
    for name in list(known) + [name for name in left if name not in known]:
        status, now = (
            (report_document.PASSED, "restored") if name in restored else (report_document.WAITING, left.get(name, "still parked"))
        )
        state = _tag("span", _tag("span", _SYMBOLS[status] + " ", aria_hidden="true"), now, class_=status)
        cells = _cell(name, None), _cell(known.get(name, ""), None), _cell(state, "reason")
        rows.append(_tag("tr", *cells, role="row"))
    if rows:
        columns = [_column("Workload", None), _column("Before", None), _column("Now", "reason")]
        yield _section("Parked workloads", columns, rows)


def _approvals(nodes):
    """Who let which nodes be rebooted."""
    given = {}
    for node in nodes:
        approval = node["approval"]
        if approval:
            key = tuple(approval.get(name) for name in ("by", "manager", "time", "job"))
            given.setdefault(key, []).append(node)
    rows = []
    for (by, manager, when, job), group in given.items():
        who = (by or "unnamed") + (", with %s" % manager if manager else "") + (", AWX job %s" % job if job else "")
        cells = _cell(who, "by"), _cell(_when(when) if when else "", "when"), _cell(_names(group), None)
        rows.append(_tag("tr", *cells, role="row"))
    if rows:
        yield _section("Approvals", [_column("By", "by"), _column("When", "when"), _column("Nodes", None)], rows)


def _names(nodes):
    return _tag("ul", *(_tag("li", report_document.shown_name(node)) for node in nodes), class_="names")


def _section(title, columns, rows):
    head = _tag("thead", _tag("tr", *columns, role="row"), role="rowgroup")
    table = _tag("table", head, _tag("tbody", *rows, role="rowgroup"), class_="rest", role="table", aria_label=title)
    return _tag("section", _tag("div", _tag("h2", title), class_="title"), table)


def _footer(report):
    text = "Written %s by npuops.ascend. The JSON and JUnit XML reports are in the same directory." % _when(report["written"])
    return _tag("footer", text)
