# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import query, rollout_report

from support.fleet.reports import DONE, END, rows
from support.patience import PATIENCE

FLEET = {
    "fleet": [
        {"node": "npu-a", "host": "a", "state": "ready", "allocatable": 8, "reason": None},
        {"node": "npu-b", "host": "b", "state": "wedged", "allocatable": 0, "reason": "{{ 1 + 1 }}"},
    ],
    "rollouts": [],
    "storm": None,
    "halted": None,
    "problems": ["b: wedged"],
    "table": ["NODE", "npu-a"],
}
KEYS = "The top-level keys are halted, nodes, problems, rollouts, storm"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", ["NODE", "npu-a"]),
        ("nodes[?state!='ready'].name", ["npu-b"]),
        ("nodes[].host", ["a", "b"]),
        ("nodes[0].state", "ready"),
        ("storm", "null"),
        ("sum(nodes[].allocatable)", "8"),
        ("length(nodes)==`2`", "true"),
        ("nodes[].[name,allocatable]", [["npu-a", 8], ["npu-b", 0]]),
        ("nodes[?reason].reason", ["{{ 1 + 1 }}"]),
        ("nodes[?state=='lost']", []),
        ("@.nodes[0] | name", "npu-a"),
        ("@ | storm", "null"),
        ("*[].state", ["ready", "wedged"]),
        ("max_by(nodes,&allocatable).name", "npu-a"),
        ("nodes[0:1].name", ["npu-a"]),
        ("{all:length(nodes),bad:problems[0]}", {"all": 2, "bad": "b: wedged"}),
    ],
)
def test_answers(expression, expected):
    assert query.problem(expression, "status") == ""
    assert query.answer(expression, "status", FLEET) == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("nodes[?state='ready']", "at character 13, after -->: nodes[?state-->='ready'] (Unknown token '=')."),
        ("nodes[?state", "at character 13, after -->: nodes[?state--> (it ends too early)."),
        ("nodes]", "at character 6, after -->: nodes-->] (unexpected ])."),
        ("nodes[?name!='x].name", "at character 14, after -->: nodes[?name!=-->'x].name (Unclosed ' delimiter)."),
        ("nodes[].size(@)", "at character 9, after -->: nodes[].-->size(@) (there is no function size)."),
        ("length(nodes,nodes)", "after -->: -->length(nodes,nodes) (length takes 1 argument, not 2)."),
        ("[problems, merge()]", "after -->: [problems, -->merge()] (merge takes at least 1 argument, not 0)."),
        ("nods[].name", "at character 1, after -->: -->nods[].name (there is no top-level key nods)."),
        ("nodes[0].name || host", "(there is no top-level key host)."),
        ("@.host", "after -->: @.-->host (there is no top-level key host)."),
        ("{a:hosts,b:nodes}", "(there is no top-level key hosts)."),
        ("length(hosts)", "(there is no top-level key hosts)."),
        ("!hosts", "(there is no top-level key hosts)."),
        (" ", "it ends too early"),
    ],
)
def test_a_wrong_expression(expression, message):
    told = query.problem(expression, "status")
    assert told.startswith("npu_query is wrong at character ") and message in told and told.endswith(KEYS)
    with pytest.raises(NpuError, match="npu_query is wrong"):
        query.answer(expression, "status", FLEET)


def test_keys_are_those_of_what_is_asked():
    assert "there is no top-level key storm" in query.problem("storm", "plan")
    assert query.problem("green", "plan") == "" and query.problem("halted", "report") == ""


def test_what_ansible_has_cut_off():
    assert "cut npu_query off at a space, before: | length(@)." in query.problem("nodes", "status", "| length(@)")
    assert query.problem("", "status", "| length(@)") == ""


def test_what_only_the_data_shows():
    with pytest.raises(NpuError, match=r"npu_query cannot be answered: .*length.*The expression is: length\(storm\)"):
        query.answer("length(storm)", "status", FLEET)


@pytest.mark.parametrize(
    "expression",
    ["!" * 4000 + "nodes", "[" * 2000 + "nodes" + "]" * 2000, "(" * 2000 + "nodes" + ")" * 2000],
    ids=["not", "list", "parentheses"],
)
def test_an_expression_without_bottom(expression):
    assert query.problem(expression, "status").startswith("npu_query is nested too deeply")
    with pytest.raises(NpuError, match="npu_query is nested too deeply"):
        query.answer(expression, "status", FLEET)


def test_a_literal_without_bottom():
    """Python 3.14 reads such JSON, and others do not: it is refused, or it is the answer."""
    expression = "`%s%s`" % ("[" * 2000, "]" * 2000)
    told = query.problem(expression, "status")
    if told:
        assert told.startswith("npu_query is nested too deeply")
    else:
        assert isinstance(query.answer(expression, "status", FLEET), (str, list))


def test_an_expression_that_is_too_long():
    told = query.problem("nodes" + " || nodes" * 1000, "status")
    assert told == "npu_query has 9005 characters, and may have 4096. Ask for less at once"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("nodes" + "|[@,@]" * 30, "takes more than 1 second|needs more than"),
        ("nodes" + "|[@,@]" * 30 + "|to_string(@)", "takes more than 1 second|needs more than"),
        ("problems" + "|[join('',@),join('',@)]" * 40 + "|length(@[0])", "needs more than"),
        ("problems" + "|[join('',@),join('',@)]" * 24, "needs more than"),
    ],
    ids=["list", "text", "memory", "length"],
)
def test_an_answer_without_end(monkeypatch, expression, why):
    """It doubles with each step."""
    # A machine with much else to do may reach the limit of seconds before that of memory.
    monkeypatch.setattr(query, "_SECONDS", 1 if "takes" in why else PATIENCE)
    assert query.problem(expression, "status") == ""
    with pytest.raises(NpuError, match="npu_query cannot be answered: it (%s)" % why):
        query.answer(expression, "status", FLEET)


def report(**more):
    return dict({"report": rollout_report.document(rows(DONE), "r1", "upgrade", None, END), "table": ["NODE"]}, **more)


def test_a_report():
    document = query.document("report", report())
    assert sorted(document) == list(query.KEYS["report"]) == sorted(report()["report"])
    assert query.answer("nodes[].[name,outcome]", "report", report()) == [["npu-a", "upgraded"]]


def test_a_report_is_told_in_any_case():
    lines = query.answer("length(halted)", "report", report())
    assert lines[:2] == ["NODE", ""] and lines[2].startswith("npu_query cannot be answered")


def test_without_jmespath(monkeypatch):
    monkeypatch.setattr(query, "jmespath", None)
    assert query.problem("", "status") == ""
    assert "needs the Python library jmespath" in query.problem("nodes", "status")
    assert "-m pip install jmespath" in query.problem("nodes", "status")
