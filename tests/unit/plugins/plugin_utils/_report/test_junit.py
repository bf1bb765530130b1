# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as JUnit XML, as strict consumers read it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import junit as report_junit

from support.fleet import reports

# What both common schemas (that of Ant's task, and that of Jenkins, which knows fewer elements) allow: attributes that must
# be there, those that may, and the children in their order.
_NUMBER, _TOKEN, _ANY = r"[0-9]+", r"\S+( \S+)*", r"(?s:.*)"
RULES = {
    "testsuites": ({}, {}, ["testsuite*"]),
    "testsuite": (
        {
            "name": _TOKEN, "package": _TOKEN, "id": _NUMBER, "hostname": _TOKEN, "tests": _NUMBER, "failures": _NUMBER, "errors": _NUMBER,
            # Surefire's pattern, and no time zone.
            "time": r"[0-9]+(\.[0-9]*)?", "timestamp": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}",
        },
        {"skipped": _NUMBER},
        ["properties", "testcase*", "system-out", "system-err"],
    ),
    "properties": ({}, {}, ["property*"]),
    "property": ({"name": _TOKEN, "value": _ANY}, {}, []),
    "testcase": ({"name": _TOKEN, "classname": _TOKEN, "time": r"[0-9]+(\.[0-9]*)?"}, {}, ["(skipped|failure)?"]),
    "failure": ({"type": _ANY, "message": _ANY}, {}, []),
    "skipped": ({}, {"message": _ANY}, []),
    "system-out": ({}, {}, []),
    "system-err": ({}, {}, []),
}  # fmt: skip
_TEXT = ("failure", "system-out", "system-err")


def check(element):
    """Raise AssertionError where the element is not as the rules want it."""
    needed, allowed, children = RULES[element.tag]
    assert set(needed) <= set(element.attrib) <= set(needed) | set(allowed), (element.tag, element.attrib)
    for name, value in element.attrib.items():
        assert re.fullmatch(needed.get(name) or allowed[name], value), (element.tag, name, value)
    pattern = "".join("(?:<%s>)%s" % (child.rstrip("*"), "*" if child.endswith("*") else "") if child[0] != "(" else
                      "(?:<skipped>|<failure>)?" for child in children)  # fmt: skip
    assert re.fullmatch(pattern, "".join("<%s>" % child.tag for child in element)), [child.tag for child in element]
    if element.tag not in _TEXT:
        assert not (element.text or "").strip()
    for child in element:
        assert not (child.tail or "").strip()
        check(child)


def parse(report):
    """The suite, of a file that keeps the rules."""
    text = report_junit.document(report)
    root = ET.fromstring(text.encode("utf-8"))
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>') and root.tag == "testsuites"
    check(root)
    assert len(root) == 1
    suite = root[0]
    counted = [len(suite.findall(path)) for path in ("testcase", "testcase/failure", "testcase/error", "testcase/skipped")]
    assert [int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")] == counted
    assert counted[0] == len(report["nodes"]) + bool(report["workloads"]["problem"])
    return suite


def cases(suite):
    """{name: (seconds, what, message)}"""
    found = {}
    for case in suite.findall("testcase"):
        what = case[0] if len(case) else None
        told = (what.tag, what.get("type"), what.get("message")) if what is not None else None
        assert case.get("name") not in found
        found[case.get("name")] = (case.get("time"), told)
    return found


@pytest.mark.parametrize(
    "old, new",
    [
        (' hostname="localhost"', ""),
        ('timestamp="2026-11-21T10:00:00"', 'timestamp="2026-11-21T10:00:00Z"'),
        ("<system-err />", ""),
        ('time="0" ', ""),
        ('name="npu-e"', 'name=" npu-e"'),
        ("<skipped ", '<skipped type="x" '),
        ("</failure>", "</failure><failure/>"),
        ("<system-out>", "<properties/><system-out>"),
    ],
)
def test_the_check_is_strict(old, new):
    text = report_junit.document(reports.halted()).replace("<system-err>", "<system-err />\n<!-- ").replace("</system-err>", " -->")
    text = text.replace('time="0">', 'time="0" >')
    check(ET.fromstring(text))
    assert old in text
    with pytest.raises(AssertionError):
        check(ET.fromstring(text.replace(old, new)))


def test_a_run_in_which_all_got_there():
    suite = parse(reports.success(12))
    assert [suite.get("name"), suite.get("failures"), suite.get("skipped")] == ["npuops.ascend.upgrade r1", "0", "0"]
    assert {case.get("classname") for case in suite.findall("testcase")} == {"upgrade"}
    assert sum(int(case.get("time")) for case in suite.findall("testcase")) == int(suite.get("time")) > 0
    assert {entry.get("name"): entry.get("value") for entry in suite.iter("property")} == {
        "run": "r1", "reason": "upgrade", "from": "25.5.0", "to": "25.5.1",
    }  # fmt: skip
    assert not suite.find("system-err").text


def test_a_run_that_was_halted():
    suite = parse(reports.halted())
    not_begun = ("0", ("skipped", None, "not begun: " + reports.WHY))
    assert cases(suite) == {
        "npu-a": ("360", None),
        "npu-b": ("530", ("failure", "rolled back", reports.WHY)),
        "npu-c": ("960", ("failure", "halted", "It did not come back.")),
        "npu-d": ("300", ("failure", "deferred", "The budget training/bert keeps training/bert-0.")),
        "npu-e": not_begun,
        "npu-f": not_begun,
        "npu-g": ("0", None),
        "npu-h": ("0", ("skipped", None, "skipped: it has no chip")),
    }
    assert "-e npu_upgrade_clear_halt=true" in suite.find("testcase/failure").text
    assert "did not succeed" in suite.find("system-err").text and "NODE " in suite.find("system-out").text
    halted = next(entry for entry in suite.iter("property") if entry.get("name") == "halted")
    assert halted.get("value") == "since 2026-11-21T10:20:00Z by the run r1: " + reports.WHY


def test_something_is_red_when_the_run_is():
    left = ("npu-b", "halted", "halted", reports.planned("npu-b"), reports.node("npu-b"))
    suite = parse(reports.document(reports.rows(reports.DONE, left), reports.HALTED))
    assert cases(suite)["npu-b"] == ("0", ("failure", "not begun", reports.WHY))


def test_who_waits_for_approval_has_not_failed():
    found = cases(parse(reports.awaiting()))
    assert found["npu-b"][1][:2] == ("skipped", None) and found["npu-b"][1][2].startswith("awaiting-approval")


@pytest.mark.parametrize("count", [0, 200])
def test_nothing_was_due(count):
    suite = parse(reports.nothing_due(count))
    assert all(found == ("0", None) for found in cases(suite).values())
    assert (suite.get("time"), suite.get("timestamp")) == ("0", "2026-11-21T19:40:00")


def test_what_others_wrote_stays_text():
    suite = parse(reports.hostile())
    assert [case[0].get("message") for case in suite.findall("testcase") if len(case)] == [reports.HARMLESS] * 2
    assert not list(suite.iter("script"))


def test_a_rollback():
    suite = parse(reports.document(reports.rows(reports.DONE), reason="rollback"))
    assert suite.find("testcase").get("classname") == "rollback"


def test_what_was_not_restored_is_red():
    suite = parse(reports.parked("1 parked workload was not restored:\n  statefulset ml/db: its annotation cannot be read"))
    assert [case.get("name") for case in suite.findall("testcase")] == ["npu-a", "parked workloads"]
    failure = suite.find("testcase/failure")
    assert failure.get("type") == "not restored" and "statefulset ml/db" in failure.text
    assert parse(reports.parked()).find("testcase/failure") is None
