# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dev/matrix: its labs, one after another, with programs of ours for lab and molecule."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from support.paths import CHECKOUT
from support.patience import PATIENCE

for directory in ("dev", "lab"):
    sys.path.insert(0, str(CHECKOUT / directory))

from testrun import plan  # noqa: E402

from npulab import versions  # noqa: E402

PROGRAM = """#!/bin/sh
pair=$NPU_LAB_KUBERNETES:$NPU_LAB_CONTAINERD
echo "${0##*/} $* $NPU_LAB $pair" >>events
[ ! -e "fail-${0##*/}-$1-$pair" ] || exit 1
[ ! -e "hang-${0##*/}-$1-$pair" ] || sleep 1000
"""


@pytest.fixture(name="start")
def _start(tmp_path):
    for name in ("lab/lab", "dev/molecule"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(PROGRAM, encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    def start(*arguments):
        env = {name: value for name, value in os.environ.items() if not name.startswith("NPU_")}
        return subprocess.Popen(
            [sys.executable, "-B", str(CHECKOUT / "dev/matrix.py"), *arguments],
            cwd=tmp_path,
            env={**env, "NPU_LAB": "61", "NPU_LAB_STATE": str(tmp_path / ".lab61")},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return start


@pytest.fixture(name="run")
def _run(start):
    def run(*arguments):
        process = start(*arguments)
        output, _unused = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    return run


def events(tmp_path):
    return (tmp_path / "events").read_text(encoding="utf-8").splitlines()


def test_every_pair_has_a_lab_of_its_own(run, tmp_path):
    status, output = run()
    assert status == 0, output
    kubernetes, containerd = versions.known("kubernetes"), [name for name in versions.known("containerd") if name != "1.7"]
    pairs = [f"{one}:{other}" for one in kubernetes for other in containerd]
    assert events(tmp_path) == [
        event for pair in pairs for event in (f"lab up 61 {pair}", f"molecule default 61 {pair}", f"lab down 61 {pair}")
    ]
    table = output.splitlines()[-len(kubernetes) - 1 :]
    assert table[0].split() == ["KUBERNETES", *(word for name in containerd for word in ("containerd", name))]
    assert [line.split() for line in table[1:]] == [[name, *["ok"] * len(containerd)] for name in kubernetes]


def test_what_fails_is_shown_and_the_others_run(run, tmp_path):
    (tmp_path / "fail-molecule-upgrade-1.36:2.3").touch()
    (tmp_path / "fail-lab-up-1.35:2.3").touch()
    status, output = run("upgrade", "workload", "--pair", "1.36:2.3", "--pair", "1.35:2.3", "--pair", "1.34:1.7")
    assert status == 1
    assert [line.split() for line in output.splitlines()[-4:]] == [
        ["KUBERNETES", "containerd", "2.3", "containerd", "1.7"],
        ["1.36", "FAIL", "-"],
        ["1.35", "lab", "-"],
        ["1.34", "-", "ok"],
    ]
    assert "molecule upgrade workload 61 1.34:1.7" in events(tmp_path)
    assert [event for event in events(tmp_path) if event.startswith("lab down")] == [
        f"lab down 61 {pair}" for pair in ("1.36:2.3", "1.35:2.3", "1.34:1.7")
    ]


@pytest.mark.parametrize("arguments", [["--pair", "1.20:2.3"], ["--pair", "1.37"], ["--pair", "1.37:9"]])
def test_pair_that_the_lab_does_not_know(run, tmp_path, arguments):
    status, output = run(*arguments)
    assert status == 1 and "the lab knows 1.37:2.4, " in output
    assert not (tmp_path / "events").exists()


def test_a_lab_that_runs_is_left_alone(run, tmp_path):
    (tmp_path / ".lab61").mkdir()
    status, output = run()
    assert status == 1 and "remove it first" in output
    assert not (tmp_path / "events").exists()


def test_a_signal_removes_the_lab(start, tmp_path):
    (tmp_path / "hang-molecule-default-1.36:2.3").touch()
    process = start("--pair", "1.37:2.3", "--pair", "1.36:2.3", "--pair", "1.35:2.3")
    end = time.monotonic() + PATIENCE
    while not (tmp_path / "events").exists() or "molecule default 61 1.36:2.3" not in events(tmp_path):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output, _unused = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert events(tmp_path)[-1] == "lab down 61 1.36:2.3"
    assert [line.split() for line in output.splitlines()[-2:]] == [["1.37", "ok"], ["1.36", "-"]]


def test_the_pairs_of_the_other_suite(run):
    status, listed = run("--list")
    pairs = [tuple(pair.split(":")) for pair in listed.split()]
    labs = (plan.OLDEST["NPU_LAB_KUBERNETES"], plan.OLDEST["NPU_LAB_CONTAINERD"])
    newest = (versions.default("kubernetes"), versions.default("containerd"))
    assert status == 0 and labs not in pairs and newest not in pairs and len(pairs) == len(set(pairs))
    kubernetes, containerd = zip(*pairs, labs, newest)
    assert set(kubernetes) == set(versions.known("kubernetes"))
    assert set(containerd) == {name for name in versions.known("containerd") if name != "1.7"}
