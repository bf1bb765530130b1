# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""npu_query, as the playbooks answer it; also each example of the guide."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import query, rollout_report

from support.fleet.reports import DONE, END, HALTED, node, planned, record, rows
from support.paths import CHECKOUT
from support.scripted import Scripted

# Few: what is shown comes from the answers.
HOSTS = dict.fromkeys(("npu-a", "npu-c"), {"ansible_connection": "local"})


def row(name, state, allocatable, checks=()):
    return {
        "host": name,
        "node": name,
        "state": state,
        "healthy": state == "ready",
        "reason": None,
        "allocatable": allocatable,
        "checks": list(checks),
    }


FLEET = {
    "fleet": [
        row("npu-a", "ready", 8, [{"name": "devices", "ok": True}]),
        row("npu-b", "invalid", 0, [{"name": "devices", "ok": True}, {"name": "npu_smi", "ok": False}]),
        row("npu-c", "unreachable", 0),
    ],
    "rollouts": [],
    "storm": None,
    "halted": None,
    "problems": ["npu-b: invalid", "npu-c: unreachable"],
    "table": ["<<the table>>"],
}
WAY = "the pod shop/web-7d9c cannot go"
PLAN = {
    **{key: None for key in query.KEYS["plan"] if key != "nodes"},
    "counts": {"ready": 1, "blocked": 1},
    "summary": "1 of 2 nodes is due",
    "green": False,
    "problem": WAY,
    "order": [],
    "pace": {"serial": 1, "strategy": "ansible.builtin.linear"},
    "deferred": [],
    "due_nodes": [],
    "due_versions": {},
    "settled_nodes": [],
    "park": [],
    "hosts": {"npu-a": planned("npu-a"), "npu-b": planned("npu-b", "blocked", [WAY])},
    "refusal": None,
    "components": {"order": None, "from": [], "to": None, "changes": []},
    "table": ["<<the plan>>"],
}
FAILED = ("npu-c", "failed", "a chip is missing", planned("npu-c"), node("npu-c", current=record(outcome=None)))
REPORT = {
    "report": rollout_report.document(rows(DONE, FAILED), "r1", "upgrade", HALTED, END),
    "problem": "npu-c failed",
    "table": ["<<the report>>"],
}
HEAL = {
    "hosts": {"npu-c": planned("npu-c")}, "look_at": [], "order": [], "storm": None, "table": ["<<who is not well>>"],
    "pace": {"serial": 1, "strategy": "ansible.builtin.linear"},
}  # fmt: skip
ANSWERS = {
    "npu_facts": {"*": [{"npu": {}}]},
    "npu_status": {"*": [FLEET]},
    "npu_plan": {"*": [PLAN]},
    "npu_heal": {"*": [HEAL]},
    "npu_pending": {"*": [{"changed": False}]},
    "npu_workloads": {"*": [{"changed": False, "restored": [], "left": []}]},
    "npu_report": {"*": [REPORT]},
}
FAILS = ("validate", "upgrade", "rollback", "heal")  # with these answers


class Asked:
    """A run of a playbook that is asked something."""

    def __init__(self, directory, playbook, *arguments, **options):
        directory.mkdir(exist_ok=True)
        self.scripted = Scripted(directory, ANSWERS)
        status = "npu_status_file=%s" % (directory / "fleet.json")
        self.done = self.scripted.run("npuops.ascend." + playbook, HOSTS, "-e", status, *arguments, **options)
        self.text = self.done.stdout + self.done.stderr
        self.modules = {name for name in ANSWERS if self.scripted.calls(name)}

    @property
    def answer(self):
        """What is shown, as people read it."""
        shown = re.findall(
            r"^TASK \[(?:npuops\.ascend\.\w+ : )?Show the (?:fleet|plan|report)\].*?^ok: \S+ => (\{.*?^\})", self.text, re.S | re.M
        )
        assert shown, self.text
        answer = json.loads(shown[-1])["msg"]
        if isinstance(answer, list) and all(isinstance(line, str) for line in answer):
            return "\n".join(answer)
        return answer if isinstance(answer, str) else json.dumps(answer, indent=2, sort_keys=True)


GUIDE = (CHECKOUT / "docs" / "query.md").read_text(encoding="utf-8").partition("## Five examples")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"```console\n\$ (.*?)\n(.*?)\n```", GUIDE, re.S)


TABLES = {
    "status": "<<the table>>",
    "validate": "<<the table>>",
    "plan": "<<the plan>>",
    "upgrade": "<<the report>>",
    "rollback": "<<the report>>",
    "heal": "<<the report>>",
}
# Playbooks of which the guide asks nothing.
OTHERS = [name for name in TABLES if not any("npuops.ascend.%s " % name in command for command, _answer in EXAMPLES)]


def check_that_it_is_instead_of_the_table(asked, playbook):
    assert TABLES[playbook] not in asked.text
    # Of a rollout and of heal, the plan is shown in any case.
    assert ("<<the plan>>" in asked.text) == (playbook in ("upgrade", "rollback"))
    assert ("<<who is not well>>" in asked.text) == (playbook == "heal")
    assert (asked.done.returncode == 0) != (playbook in FAILS)


@pytest.mark.parametrize(("command", "answer"), EXAMPLES)
def test_an_example_of_the_guide(tmp_path, command, answer):
    program, _i, _inventory, playbook, *arguments = shlex.split(command)
    assert program == "ansible-playbook"
    playbook = playbook.rpartition(".")[2]
    asked = Asked(tmp_path, playbook, *arguments)
    assert asked.answer == answer, asked.text
    check_that_it_is_instead_of_the_table(asked, playbook)


def test_the_guide_has_five_examples_and_names_every_key():
    assert len(EXAMPLES) == 5
    guide = (CHECKOUT / "docs" / "query.md").read_text(encoding="utf-8")
    for keys in query.KEYS.values():
        assert "| %s |" % ", ".join("`%s`" % key for key in keys) in guide
    refused = query.problem("nodes[?state='ready']", "status")
    assert refused in guide


@pytest.mark.parametrize("playbook", OTHERS)
def test_the_answer_instead_of_the_table(tmp_path, playbook):
    asked = Asked(tmp_path, playbook, "-e", 'npu_query="nodes[].{name: name, node: node} | [0]"')
    assert asked.answer == json.dumps({"name": "npu-a", "node": "npu-a"}, indent=2)
    check_that_it_is_instead_of_the_table(asked, playbook)


@pytest.mark.parametrize("playbook", ["status", "plan", "rollback", "heal"])
def test_the_table(tmp_path, playbook):
    table = Asked(tmp_path, playbook, "-e", "npu_query=")
    assert table.answer == TABLES[playbook]
    assert (table.done.returncode == 0) != (playbook in FAILS)


@pytest.mark.parametrize(
    ("playbook", "given", "message"),
    [
        *[(playbook, "qqq", "(there is no top-level key qqq). The top-level keys are ") for playbook in TABLES],
        ("status", "nodes[?a='b']", "npu_query is wrong at character 9, after -->: nodes[?a-->='b'] (Unknown token '=')."),
        ("status", "nodes | length(@)", "Ansible has cut npu_query off at a space, before: | length(@)."),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_done(tmp_path, playbook, given, message):
    asked = Asked(tmp_path, playbook, "-e", "npu_query=" + given)
    assert message in asked.text and asked.done.returncode == 2, asked.text
    assert asked.modules == set()


def test_without_jmespath(tmp_path):
    (tmp_path / "without" / "jmespath").mkdir(parents=True)
    (tmp_path / "without" / "jmespath" / "__init__.py").write_text("raise ImportError('none')\n", encoding="utf-8")
    without = {"PYTHONPATH": str(tmp_path / "without")}
    table = Asked(tmp_path / "table", "status", environ=without)
    assert table.answer == "<<the table>>" and table.done.returncode == 0
    asked = Asked(tmp_path / "asked", "status", "-e", "npu_query=nodes", environ=without)
    assert "npu_query needs the Python library jmespath" in asked.text and asked.done.returncode == 2
    assert asked.modules == set()


@pytest.mark.parametrize(("playbook", "code", "shown"), [("status", 2, None), ("upgrade", 2, "<<the report>>\n\nnpu_query cannot")])
def test_what_only_the_data_shows(tmp_path, playbook, code, shown):
    expression = {"status": "length(storm)", "upgrade": "sum(nodes)"}[playbook]
    asked = Asked(tmp_path, playbook, "-e", "npu_query=" + expression)
    assert "npu_query cannot be answered" in asked.text and asked.done.returncode == code
    if shown:
        # What the run fails for is told all the same.
        assert asked.answer.startswith(shown) and "npu-c failed" in asked.text


def test_lines_without_quotes(tmp_path):
    yaml = {"ANSIBLE_CALLBACK_RESULT_FORMAT": "yaml"}
    asked = Asked(tmp_path, "status", "-e", "npu_query=nodes[].name", more=yaml)
    assert re.search(r"msg: \|-\n +npu-a\n +npu-b\n +npu-c\n", asked.text), asked.text
