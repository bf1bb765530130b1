# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rollout as JUnit XML, rendered from its JSON (_report.rollout_report): a suite per run, a case per node.

There is no standard, but two schemas that consumers check against: that of Ant's task and that of Jenkins. This is valid
in both, which is why attributes are there that say nothing (id, errors) and why the timestamp has no time zone.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from ansible_collections.npuops.ascend.plugins.plugin_utils._report import report_table, rollout_report, told_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._report.rollout_report import Report, ReportedNode


def document(report: Report) -> str:
    """The file as str."""
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", _head(report))
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report):
        ET.SubElement(properties, "property", name=name, value=rollout_report.printable(value))
    # Where the run did not do all it was asked to, something has to be red.
    strict = not any(node["status"] == rollout_report.FAILED for node in report["nodes"])
    for node in report["nodes"]:
        _case(suite, node, report, strict)
    if told_components.problem(report["components"]):
        _components_case(suite, report)
    if report["workloads"]["problem"]:
        _parked_case(suite, report)
    _count(suite)
    ET.SubElement(suite, "system-out").text = rollout_report.printable("\n".join(report_table.table(report)) + "\n")
    ET.SubElement(suite, "system-err").text = rollout_report.printable(report_table.problem(report) or "")
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n%s\n' % ET.tostring(root, encoding="unicode")


def _head(report: Report) -> dict[str, str]:
    return {
        "name": _token("npuops.ascend.%s %s" % (report["reason"], report["run"])),
        "package": "npuops.ascend",
        "id": "0",
        "timestamp": (report["started"] or report["written"]).rstrip("Z"),
        "hostname": "localhost",
        "time": str(report["seconds"]),
    }


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "run", report["run"]
    yield "reason", report["reason"]
    yield "from", ", ".join(report["from"])
    yield "to", ", ".join(report["to"])
    if report["halted"]:
        yield "halted", "since %s by %s: %s" % tuple(report["halted"].get(key) for key in ("when", "who", "why"))


def _case(suite: ET.Element, node: ReportedNode, report: Report, strict: bool) -> None:
    """``strict``: whether a node that was not begun is a failure rather than skipped."""
    case = ET.SubElement(
        suite,
        "testcase",
        name=_token(rollout_report.shown_name(node)),
        classname=_token(report["reason"]),
        time=str(node["seconds"].get("TOTAL", 0)),
    )
    if node["status"] == rollout_report.PASSED:
        return
    # What a node has no reason of its own for, the halt is the reason for.
    why = node["reason"] or ((report["halted"] or {}).get("why") if node["status"] == rollout_report.WAITING else None)
    message = rollout_report.printable(why or node["outcome"])
    if node["status"] == rollout_report.FAILED or (strict and node["status"] == rollout_report.WAITING):
        failure = ET.SubElement(case, "failure", type=rollout_report.printable(node["outcome"]), message=message)
        failure.text = message + "\n" + rollout_report.how_to_go_on(report) + "\n" + report["go_on"]
    else:
        ET.SubElement(case, "skipped", message=rollout_report.printable(node["outcome"] + (": " + why if why else "")))


def _components_case(suite: ET.Element, report: Report) -> None:
    case = ET.SubElement(suite, "testcase", name="components", classname=_token(report["reason"]), time="0")
    text = rollout_report.printable(told_components.problem(report["components"]) or "")
    ET.SubElement(case, "failure", type=told_components.FAILED, message=_token(text.splitlines()[0])).text = text


def _parked_case(suite: ET.Element, report: Report) -> None:
    """What was parked and is not as it was concerns no node."""
    case = ET.SubElement(suite, "testcase", name="parked workloads", classname=_token(report["reason"]), time="0")
    text = rollout_report.printable(report["workloads"]["problem"])
    ET.SubElement(case, "failure", type="not restored", message=_token(text.splitlines()[0])).text = text


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))


def _token(text: str) -> str:
    """As an xs:token: no line ends, no double spaces."""
    return " ".join(rollout_report.printable(text).split())
