# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How npuops.ascend.status ends: with npu_status_strict, and with a file of metrics that cannot be written."""

from __future__ import annotations

import json

import pytest

from support.fleet.metrics import row
from support.scripted import Scripted

DRIFT = ["1 of 2 hosts is not healthy. npuops.ascend.status shows what to do about each.", "b: wedged: {{ 1 + 1 }}"]
FLEET = {
    "fleet": [dict(row("a"), checks=[]), dict(row("b", "wedged"), checks=[])],
    "rollouts": [],
    "storm": None,
    "halted": None,
    "problems": DRIFT[1:],
    "drift": DRIFT,
    "unwritten": None,
    "table": ["<<the table>>"],
}
HOSTS = dict.fromkeys(("a", "b"), {"ansible_connection": "local"})


def status(directory, fleet=None, facts=({"npu": {}},), **variables):
    fleet = fleet or FLEET
    scripted = Scripted(directory, {"npu_facts": {"a": [{"npu": {}}], "*": list(facts)}, "npu_status": {"*": [fleet]}})
    given = {"npu_status_file": "fleet.json", **variables}  # relative to where the command was started
    done = scripted.run("npuops.ascend.status", HOSTS, "-e", json.dumps(given))
    # Whatever becomes of the run, all is shown and written.
    assert "<<the table>>" in done.stdout, done.stdout + done.stderr
    assert len(json.loads((directory / "fleet.json").read_text(encoding="utf-8"))["hosts"]) == 2
    return done, scripted


@pytest.mark.parametrize("strict", [None, False, "false", ""])
def test_by_default_it_only_shows(tmp_path, strict):
    done, scripted = status(tmp_path, **({} if strict is None else {"npu_status_strict": strict}))
    assert done.returncode == 0, done.stdout
    ((_host, arguments),) = scripted.calls("npu_status")
    assert "metrics_file" not in arguments


@pytest.mark.parametrize("facts", [{"npu": {}}, {"unreachable": True, "msg": "no route"}, {"failed": True, "msg": "no Python"}])
def test_strict(tmp_path, facts):
    done, _scripted = status(tmp_path, facts=(facts,), npu_status_strict=True)
    assert done.returncode == 2, done.stdout
    told = done.stdout.partition("Fail if the fleet is not as it should be")[2]
    assert all(line in told for line in DRIFT), done.stdout


@pytest.mark.parametrize("facts", [{"npu": {}}, {"unreachable": True, "msg": "no route"}])
def test_strict_with_nothing_wrong(tmp_path, facts):
    done, _scripted = status(tmp_path, dict(FLEET, drift=[]), (facts,), npu_status_strict="true")
    assert done.returncode == 0, done.stdout


def test_metrics_that_could_not_be_written(tmp_path):
    why = "The metrics could not be written to /missing/npu.prom on the controller: No such file or directory."
    done, scripted = status(tmp_path, dict(FLEET, unwritten=why), npu_status_metrics_file="/missing/npu.prom")
    assert done.returncode == 2 and why in done.stdout, done.stdout
    ((_host, arguments),) = scripted.calls("npu_status")
    assert arguments["metrics_file"] == "/missing/npu.prom"


def test_an_empty_answer_of_a_survey_is_no_file(tmp_path):
    done, scripted = status(tmp_path, npu_status_metrics_file="")
    assert done.returncode == 0, done.stdout
    ((_host, arguments),) = scripted.calls("npu_status")
    assert "metrics_file" not in arguments
