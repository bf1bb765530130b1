# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as a page, read back with parsers: it is also well-formed XML."""

from __future__ import annotations

import html.parser
import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.record import seconds_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import axis as report_axis
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import html as report_html
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import page as report_page

from support.fleet import reports

_VOID = ("meta",)
CASES = {
    "success": lambda: reports.success(12),
    "one": lambda: reports.success(1),
    "many": lambda: reports.success(200),
    "halted": reports.halted,
    "awaiting": reports.awaiting,
    "nothing due": lambda: reports.nothing_due(200),
    "no nodes": lambda: reports.nothing_due(0),
    "hostile": reports.hostile,
}


class Reader(html.parser.HTMLParser):
    """What a browser finds: elements, attributes, text outside of <style>; every element must be closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self._open = [], [], [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in _VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.texts.append(data)


def page(report):
    """The page as an ElementTree."""
    text = report_html.page(report)
    assert text.startswith("<!DOCTYPE html>")
    return ET.fromstring(text)


def texts(element):
    return " ".join(" ".join(element.itertext()).split())


def classed(element, name):
    """All elements below of the class."""
    return [found for found in element.iter() if name in found.get("class", "").split()]


def tables(root):
    return {table.get("aria-label"): table for table in root.iter("table")}


def bars(root):
    """{node: (its row, its bar)} in the order of the page."""
    return {row.find("th").text: (row, classed(row, "bar")[0]) for row in classed(root, "taken")}


def style(element):
    return dict(entry.split(":") for entry in element.get("style").split(";"))


def percent(element, name):
    value = style(element)[name]
    assert value.endswith("%")
    return float(value[:-1])


@pytest.mark.parametrize("case", CASES)
def test_a_page_that_needs_nothing_else(case):
    text = report_html.page(CASES[case]())
    reader = Reader(text)
    assert ET.fromstring(text).tag == "html"
    assert not set(reader.tags) & {"script", "link", "img", "iframe", "object", "embed", "svg", "base", "form", "a"}
    assert {name for name, _value in reader.attributes} <= {
        "class", "style", "title", "role", "scope", "colspan", "lang", "charset", "name", "content", "http-equiv",
        "aria-label", "aria-hidden",
    }  # fmt: skip
    sheet = re.search("<style>(.*)</style>", text, re.DOTALL).group(1)
    assert not re.search(r"url\(|@import|https?:|expression", sheet)
    assert dict(reader.attributes)["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert "http://" not in text.replace("url(http://x)", "")
    styles = [value for name, value in reader.attributes if name == "style"]
    assert all(
        re.fullmatch(r"((left|width|--share):[0-9.]+%|--name:[0-9]+ch|--intervals:[0-9]+)(;|$).*", value) for value in styles
    )


def test_what_others_wrote_stays_text():
    text = report_html.page(reports.hostile())
    reader = Reader(text)
    shown = " ".join("".join(reader.texts).split())
    # host and node, reason, halt (who, why, when), approval, versions: all of it is shown, and all as text.
    assert shown.count(" ".join(reports.HARMLESS.split())) >= 9
    assert "alert(1)" in text and "<script" not in text
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", text)
    text.encode("utf-8")


ATTACKS = (
    "{{ 7 * 7 }}{% raw %}",
    "{# a comment #}{{ ''.__class__.__mro__ }}",
    "<script>alert(1)</script></style><!--",
    "\" onmouseover='alert(1)' style=\"left:0",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_names_and_reasons_are_neither_templates_nor_markup(attack):
    name = "npu-b" + attack
    failed = (name, "failed", attack, reports.planned(name), reports.upgraded(name, 0)[4])
    blocked = (attack, None, None, reports.planned(attack, "blocked", [attack]), None)
    halt = {"who": attack, "why": attack, "when": attack}
    report = reports.document(reports.rows(reports.DONE, failed, blocked), halt)
    root, reader = page(report), Reader(report_html.page(report))
    shown = texts(root.find("body"))
    assert shown.count(attack) >= 6 and name in bars(root)
    assert "49" not in shown and "onmouseover" not in dict(reader.attributes) and "script" not in reader.tags


@pytest.mark.parametrize("case", ["halted", "awaiting", "parked"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_value_leaves_its_place_in_the_template(monkeypatch, attack, case):
    """Whatever of a report comes to be shown where: in text, and between the quotes of an attribute."""

    def attacked(value, key=None):
        if isinstance(value, dict):
            return {name: attacked(entry, name) for name, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [attacked(entry, key) for entry in value]
        return attack if value and isinstance(value, str) and key != "status" else value

    report = reports.parked() if case == "parked" else CASES[case]()
    honest = Reader(report_html.page(report))
    content = attacked(report_page.content(report))
    monkeypatch.setattr(report_page, "content", lambda _report: content)
    read = Reader(report_html.page(report))
    assert read.tags == honest.tags
    assert [name for name, _value in read.attributes] == [name for name, _value in honest.attributes]
    assert attack in "".join(read.texts)


@pytest.mark.parametrize("case", ["success", "one", "many", "halted"])
def test_bars_are_where_and_as_long_as_they_should(case):
    report = CASES[case]()
    root = page(report)
    ends = [seconds_of(step[key]) for node in report["nodes"] for step in node["timeline"] for key in ("began", "ended")]
    axis = report_axis.Axis(min(ends), max(ends))
    found = bars(root)
    for node in report["nodes"]:
        if not node["timeline"]:
            assert node["node"] not in found
            continue
        drawn = found[node["node"]][1]
        began, ended = seconds_of(node["timeline"][0]["began"]), seconds_of(node["timeline"][-1]["ended"])
        width = 100.0 * (ended - began) / (axis.end - axis.begin)
        assert percent(drawn, "left") == pytest.approx(100.0 * (began - axis.begin) / (axis.end - axis.begin), abs=0.001)
        assert percent(drawn, "width") == pytest.approx(width, abs=0.001)
        assert percent(drawn, "left") + percent(drawn, "width") <= 100.001
        # Segments fill the bar, and each has its part's share of it.
        parts = {part: seconds for part, seconds in node["seconds"].items() if seconds and part != "TOTAL"}
        shares = {span.get("class").split()[0].upper(): percent(span, "width") for span in drawn}
        assert len(shares) == len(drawn) == len(parts)
        assert sum(shares.values()) == pytest.approx(100, abs=0.01)
        for part, seconds in parts.items():
            assert shares[part] == pytest.approx(100.0 * seconds / node["seconds"]["TOTAL"], abs=0.001)
    assert len(found) == sum(bool(node["timeline"]) for node in report["nodes"])


def test_ticks_and_grid_are_those_of_the_axis():
    root = page(reports.halted())  # 10:00 to 10:22:40
    ticks = classed(root, "axis")[0]
    assert [tick.text for tick in ticks] == ["10:00", "10:05", "10:10", "10:15", "10:20", "10:25"]
    assert [percent(tick, "left") for tick in ticks] == [0, 20, 40, 60, 80, 100]
    assert {style(track)["--intervals"] for track in classed(root, "track")} == {"5"}
    assert "21 Nov 2026, UTC" in texts(root)


@pytest.mark.parametrize("case", ["success", "many", "halted", "awaiting", "nothing due"])
def test_every_node_is_there_once(case):
    report = CASES[case]()
    root = page(report)
    listed = [text.text for row in tables(root).items() if row[0] == "Not taken" for text in row[1].iter("li")]
    shown = list(bars(root)) + listed
    assert sorted(shown) == sorted(node["node"] for node in report["nodes"])


@pytest.mark.parametrize("case", ["many", "halted"])
def test_in_the_order_in_which_they_were_taken(case):
    report = CASES[case]()
    began = {node["node"]: node["started"] for node in report["nodes"]}
    order = [began[name] for name in bars(page(report))]
    assert order == sorted(order) and None not in order
    if case == "halted":
        assert list(bars(page(report))) == ["npu-a", "npu-d", "npu-b", "npu-c"]  # not the plan's


def test_a_bar_in_words():
    found = bars(page(reports.halted()))
    words = {name: drawn.get("aria-label") for name, (_row, drawn) in found.items()}
    assert words["npu-a"] == "evict 1 min, reboot 4 min, validate 1 min from 10:00:00 to 10:06:00 UTC"
    assert words["npu-b"] == "evict 1 min, reboot 4 min, validate 30 s, back 3 min 20 s from 10:06:00 to 10:14:50 UTC"
    assert words["npu-c"] == "evict 1 min, reboot 15 min from 10:06:40 UTC, last heartbeat 10:22:40, not ended"
    assert {drawn.get("role") for _row, drawn in found.values()} == {"img"}
    assert [name for name, (_row, drawn) in found.items() if "open" in drawn.get("class").split()] == ["npu-c"]
    titles = [span.get("title") for span in found["npu-a"][1]]
    assert titles[0] == "Evict 1 min, 10:00:00 to 10:01:00 UTC (cordon 2 s, drain 58 s)"
    assert titles[1] == "Reboot 4 min, 10:01:00 to 10:05:00 UTC"


def test_the_numbers_are_in_the_table():
    root = page(reports.halted())
    heads = [texts(cell) for cell in tables(root)["Timeline"].find("thead/tr")]
    assert heads[:2] + heads[3:] == ["Node", "Outcome", "Evict", "Reboot", "Validate", "Back", "Total"]
    row = bars(root)["npu-b"][0]
    assert [texts(cell) for cell in row][3:] == ["1:00", "4:00", "0:30", "3:20", "8:50"]
    # The slowest one is the measure.
    shares = {name: style(classed(row, "meter")[0])["--share"] for name, (row, _bar) in bars(root).items()}
    assert (shares["npu-c"], shares["npu-b"]) == ("100.0%", "55.2%")
    assert [texts(entry) for entry in classed(root, "legend")[0]] == ["Evict", "Reboot", "Validate", "Back"]


def test_no_part_that_nobody_had():
    root = page(reports.success(3))
    assert "Back" not in texts(tables(root)["Timeline"]) and "Back" not in texts(classed(root, "legend")[0])


def test_those_that_failed_stand_out_with_their_reason():
    root = page(reports.halted())
    rows = list(tables(root)["Timeline"].find("tbody"))
    assert [row.find("th").text for row in rows if "bad" in row.get("class") and row.find("th") is not None] == [
        "npu-d",
        "npu-b",
        "npu-c",
    ]
    reasons = {rows[number - 1].find("th").text: texts(row) for number, row in enumerate(rows) if "why" in row.get("class").split()}
    assert reasons["npu-b"] == reports.WHY and reasons["npu-c"] == "It did not come back." and "npu-a" not in reasons
    assert {row.find("td").get("colspan") for row in classed(root, "why")} == {"8"}


def test_the_banner_of_a_halt():
    banner = classed(page(reports.halted()), "banner")
    assert len(banner) == 1
    assert "halted" in texts(banner[0].find("h2"))
    assert reports.WHY in texts(banner[0]) and "By the run r1, 21 Nov 2026 10:20:00 UTC." in texts(banner[0])
    assert texts(banner[0].find("pre")) == reports.halted()["go_on"]


def test_the_banner_of_a_run_that_left_something():
    blocked = ("npu-b", None, None, reports.planned("npu-b", "blocked", ["no image"]), None)
    banner = classed(page(reports.document(reports.rows(reports.DONE, blocked))), "banner")
    assert [texts(part) for part in banner[0]][0] == "1 of 2 nodes did not succeed."
    assert texts(banner[0].find("pre")) == "ansible-playbook npuops.ascend.upgrade"


def test_the_banner_of_approvals():
    report = reports.awaiting()
    banner = classed(page(report), "banner")
    assert texts(banner[0]).startswith("2 nodes wait for approval.") and texts(banner[0].find("pre")) == report["approve"]


@pytest.mark.parametrize(
    "case, state",
    [("success", "Done"), ("halted", "Halted"), ("awaiting", "Waits for approval"), ("nothing due", "Nothing was due")],
)
def test_the_run_in_a_word(case, state):
    root = page(CASES[case]())
    assert texts(root.find("body/header/h1")).endswith(state) and root.find("head/title").text.endswith(state.lower())
    assert bool(classed(root, "banner")) == (case in ("halted", "awaiting"))
    assert ("No node was taken" in texts(root)) == (case == "nothing due")


@pytest.mark.parametrize("reason", ["rollback", "recovery"])
def test_a_halt_of_upgrades_is_no_halt_of_what_it_recommends(reason):
    report = reports.document(reports.rows(reports.DONE), halted=reports.halted()["halted"], reason=reason)
    root = page(report)
    assert texts(root.find("body/header/h1")).endswith("Done") and not classed(root, "banner")
    assert (report["halted"], report["go_on"]) == (None, None)


def test_counts():
    counts = [texts(entry) for entry in classed(page(reports.halted()), "counts")[0]]
    assert counts == ["1 rolled back", "1 halted", "1 deferred", "2 not begun", "1 upgraded", "1 up-to-date", "1 skipped"]


def test_who_approved():
    table = tables(page(reports.halted()))["Approvals"]
    assert [texts(cell) for cell in table.find("tbody/tr")] == [
        "chen.wei, with kubectl-annotate, AWX job 12",
        "21 Nov 2026 09:40:11 UTC",
        "npu-a",
    ]
    assert "Approvals" not in tables(page(reports.success(2)))


def test_versions_where_they_differ():
    other = reports.upgraded("npu-b", 400, **{"from": {"version": "25.2.1"}})
    root = page(reports.document(reports.rows(reports.upgraded("npu-a", 0), other)))
    assert [texts(cell) for cell in classed(root, "driver")] == ["Driver", "25.5.0 → 25.5.1", "25.2.1 → 25.5.1"]
    assert texts(root.find("body/header/h1")).startswith("25.2.1, 25.5.0 → 25.5.1")
    assert not classed(page(reports.success(2)), "driver")


def test_a_host_of_another_name():
    case = ("host-1", "done", None, reports.planned("worker-1"), reports.upgraded("worker-1", 0)[4])
    row = bars(page(reports.document(reports.rows(case))))["worker-1"][0]
    assert texts(row.find("th")) == "worker-1 host host-1"


def test_a_maintenance_of_no_time():
    root = page(reports.document(reports.rows(reports.upgraded("npu-a", 0, lengths=(0, 0, 0, 0, 0)))))
    drawn = bars(root)["npu-a"][1]
    assert len(drawn) == 0 and percent(drawn, "width") == 0 and drawn.get("aria-label")


def test_what_became_of_parked_workloads():
    root = page(reports.parked("1 parked workload was not restored:\n  statefulset ml/db: its annotation cannot be read"))
    table = tables(root)["Parked workloads"]
    assert [[texts(cell) for cell in row] for row in table.findall("tbody/tr")] == [
        ["deployment ml/bert", "3 replicas", "✓ restored"],
        ["cronjob ml/nightly <b>", "running", "○ it was changed"],
        ["statefulset ml/db", "unset", "○ its annotation cannot be read"],
    ]
    banner = classed(root, "banner")[0]
    assert "1 parked workload was not restored:" in texts(banner) and "statefulset ml/db" in texts(banner)
    assert "Unfinished" in texts(root.find(".//h1"))
    assert "Parked workloads" not in tables(page(reports.success(1)))
