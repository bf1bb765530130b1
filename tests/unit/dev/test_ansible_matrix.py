# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dev/ansible-matrix: each ansible-core that support.yml names, with programs of ours for the environments and the checks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from support.paths import CHECKOUT
from support.patience import PATIENCE

PAIRS = yaml.safe_load((CHECKOUT / "plugins/plugin_utils/_mindcluster/support.yml").read_text(encoding="utf-8"))["ansible"][
    "tested"
]
NAMES = [f"{row['core'].rpartition('.')[0]}-{row['python']}" for row in PAIRS]
# What each is asked to do, and in which environment. The last line of the environments' makers says where they are.
PROGRAM = """#!/bin/sh
echo "${0##*/} $* $NPU_VENV $PYTHONPATH" >>events
[ ! -e "fail-${0##*/}-$NPU_VENV" ] || exit 1
case ${0##*/} in
    python) [ ! -e "no-python-$1" ] && echo "/python$1" ;;
    ansible-venv) echo "venv-$2-${1#/python}" ;;
    kubernetes-core-collection) echo "core-$1" ;;
esac
"""
PROGRAMS = ("python", "ansible-venv", "kubernetes-core-collection", "ansible-names", "unit", "sanity", "molecule")


@pytest.fixture(name="run")
def _run(tmp_path):
    (tmp_path / "dev").mkdir()
    for name in PROGRAMS:
        (tmp_path / "dev" / name).write_text(PROGRAM, encoding="utf-8")
        (tmp_path / "dev" / name).chmod(0o755)
        assert os.access(CHECKOUT / "dev" / name, os.X_OK)

    def run(*arguments):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("NPU_", "PYTHONPATH"))}
        command = [sys.executable, "-B", str(CHECKOUT / "dev/ansible_matrix.py"), *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout

    return run


def events(tmp_path, *programs):
    lines = (tmp_path / "events").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.split()[0] in programs]


def results(output):
    lines = output.splitlines()
    rows = lines[lines.index(next(line for line in lines if line.startswith("ANSIBLE-CORE"))) + 1 :]
    return [
        row.split(maxsplit=4)[4] for row in rows if row[:1].isdigit() and len(row.split(maxsplit=4)) == 5 and "pairs of" not in row
    ]


def test_every_pair_runs_every_step_in_an_environment_of_its_own(run, tmp_path):
    status, output = run("--lab", "--", "-k", "registry")
    assert status == 0, output
    assert results(output) == ["ok"] * len(PAIRS)
    expected = []
    for row in PAIRS:
        where = f"venv-{row['core']}-{row['python']} core-{row['kubernetes_core']}"
        expected += [f"ansible-names  {where}", f"unit -k registry {where}", f"sanity  {where}", f"molecule default {where}"]
    assert events(tmp_path, "ansible-names", "unit", "sanity", "molecule") == expected
    assert f"{len(PAIRS)} pairs of ansible-core and Python checked" in output


def test_without_a_lab_there_is_no_molecule(run, tmp_path):
    assert run("--only", "names,unit", "--pair", NAMES[0])[0] == 0
    assert [event.split()[0] for event in events(tmp_path, "ansible-names", "unit", "sanity", "molecule")] == [
        "ansible-names",
        "unit",
    ]


def test_what_fails_is_shown_and_the_others_run(run, tmp_path):
    (tmp_path / f"fail-unit-venv-{PAIRS[0]['core']}-{PAIRS[0]['python']}").touch()
    status, output = run()
    assert status == 1
    assert results(output) == ["FAIL: unit", *["ok"] * (len(PAIRS) - 1)]
    assert len(events(tmp_path, "sanity")) == len(PAIRS)


def test_an_environment_that_cannot_be_made(run, tmp_path):
    (tmp_path / "fail-ansible-venv-").touch()
    status, output = run("--pair", NAMES[1])
    assert status == 1 and results(output) == ["FAIL: environment"]
    assert not events(tmp_path, "ansible-names", "unit", "sanity")


def test_a_missing_python_is_a_failure_that_names_it(run, tmp_path):
    missing = PAIRS[-1]["python"]
    (tmp_path / f"no-python-{missing}").touch()
    status, output = run()
    assert status == 1
    assert results(output) == [
        "ok" if row["python"] != missing else f"NOT RUN: this machine has no Python {missing} (see dev/python)" for row in PAIRS
    ]
    assert "pairs of ansible-core and Python checked" not in output


def test_the_newest_is_the_newest_that_the_machine_has(run, tmp_path):
    newest = [row for row in PAIRS if row["core"] == PAIRS[-1]["core"]]
    assert len(newest) == 2
    assert run("--newest", "--only", "names")[0] == 0
    (tmp_path / f"no-python-{newest[1]['python']}").touch()
    assert run("--newest", "--only", "names")[0] == 0
    assert [event.split()[1] for event in events(tmp_path, "ansible-names")] == [
        f"venv-{row['core']}-{row['python']}" for row in reversed(newest)
    ]
    (tmp_path / f"no-python-{newest[0]['python']}").touch()
    status, output = run("--newest")
    # Not an older one in its place: that would look as if it had been tested.
    wanted = (
        f"NOT RUN: ansible-core {newest[0]['core']} needs Python {newest[0]['python']} or {newest[1]['python']}, which this machine"
    )
    assert status == 0 and output.startswith(wanted) and "checked" not in output
    assert len(events(tmp_path, "ansible-names")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pair", "2.17-3.11"], f"--pair 2.17-3.11: support.yml names {', '.join(NAMES)}"),
        (["--only", "units"], "--only units: the steps are names, unit, sanity, lab"),
    ],
)
def test_what_it_does_not_know(run, arguments, message):
    status, output = run(*arguments)
    assert status == 1 and message in output


def test_the_versions_of_kubernetes_core_for_its_own_check(run):
    ends = [min(PAIRS, key=lambda row: row["kubernetes_core"]), max(PAIRS, key=lambda row: row["kubernetes_core"])]
    assert run("--list-kubernetes-core") == (0, "".join(f"{row['kubernetes_core']} {row['package']}\n" for row in ends))


def test_the_pairs_that_the_other_suite_checks_besides(run):
    status, listed = run("--list")
    assert status == 0
    lock = (CHECKOUT / "requirements-dev.lock").read_text(encoding="utf-8")
    assert listed.split() == [
        f"{row['core'].rpartition('.')[0]}-{row['python']}" for row in PAIRS if f"ansible-core=={row['core']}" not in lock
    ]
