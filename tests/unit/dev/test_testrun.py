# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dev/test: its queues, its workers, its labs and how it ends, with real processes that stand for the checks and the labs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.paths import CHECKOUT
from support.patience import PATIENCE

for directory in ("dev", "lab"):
    sys.path.insert(0, str(CHECKOUT / directory))

from testrun import plan  # noqa: E402

from npulab import versions  # noqa: E402

CHECKS = ["unit", "sanity", "lint", "build", "ee"]
FIRST = CHECKS[1:]
SCENARIOS = ["default", "upgrade", "workload", "heal", "awx"]
JUNIT = '<testsuites><testsuite tests="3" failures="0" errors="0" skipped="1"/></testsuites>'

# Stands for every program that dev/test runs: it writes down that it was started and does what the test has prepared for it.
PROGRAM = """#!/bin/sh
name=${0##*/}
case "$name $1" in
    "nox --list") cat sessions.json; exit ;;
    "nox --session") name=$2 ;;
    "lab "*) name=lab-$1 ;;
    "molecule "*) name=molecule-$1 ;;
esac
for word; do
    case $word in --junitxml=*) cp junit.xml "${word#*=}" ;; esac
done
[ "$name" != unit ] || cp junit.xml .cache/results/unit.xml
echo "$name ${NPU_LAB:--} ${NPU_LAB_GOES:-0} ${NPU_CRASH:+crash} $*" >>events
[ ! -e "do/$name" ] || . "./do/$name"
"""
# Two processes that never end by themselves; the first one writes down which signal came first.
HANGS = """
trap 'echo "asked $name" >>events; exit 1' INT
trap 'echo "told $name" >>events; exit 1' TERM
echo $$ >>pids
sh -c 'echo $$ >>pids; while :; do sleep 0.1; done'
"""
STUBBORN = """
trap '' INT TERM
sh -c 'while :; do sleep 0.1; done' & echo $! >>pids
echo $$ >>pids
while :; do sleep 0.1; done
"""
# What dev/test does, with less patience.
MAIN = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from testrun.main import main
from testrun.runner import Runner
checkout = Path.cwd()
sys.exit(main(checkout, dict(os.environ), Runner(checkout, heartbeat=0.3, patience=float(sys.argv[2]), tail=4)))
"""


class Checkout:
    """A checkout with programs of ours in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in (".venv/bin/nox", "dev/venv", "dev/molecule", "dev/lab-test", "dev/maintenance-test", "lab/lab"):
            self.write(name, PROGRAM).chmod(0o755)
        for scenario in SCENARIOS:
            self.write(f"molecule/{scenario}/molecule.yml", "")
        for test in ("crash", "heal", "heal_crash", "drain", "budgets", "claims", "trains"):
            self.write(f"tests/lab/maintenance/test_{test}.py", "")
        self.write("sessions.json", json.dumps([{"session": name} for name in CHECKS]))
        self.write("junit.xml", JUNIT)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def does(self, name: str, script: str) -> None:
        self.write(f"do/{name}", script)

    def start(self, patience: float = 30, labs: str = "61 62 63", **options) -> subprocess.Popen:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("NPU_", "STEP_"))}
        return subprocess.Popen(
            [sys.executable, "-B", "-c", MAIN, str(CHECKOUT / "dev"), str(patience)],
            cwd=self.root,
            env={**env, "NPU_LABS": labs},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )

    def run(self, **options) -> tuple[int, str]:
        process = self.start(**options)
        output, _unused = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def lines(self, name: str = "events") -> list[str]:
        path = self.root / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def begun(self) -> list[str]:
        return [line.split()[0] for line in self.lines()]

    def wait_for(self, name: str, count: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.lines(name)) < count:
            assert time.monotonic() < end, f"{name}: {self.lines(name)}"
            time.sleep(0.05)

    def left(self) -> list[int]:
        """Those of our processes that still run."""
        found = []
        for pid in map(int, self.lines("pids")):
            with contextlib.suppress(OSError):
                state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
                found += [pid] if state != "Z" else []
        return found


@pytest.fixture(name="checkout")
def _checkout(tmp_path):
    checkout = Checkout(tmp_path)
    yield checkout
    for pid in checkout.left():
        os.kill(pid, signal.SIGKILL)


def test_the_whole_of_it(checkout):
    status, output = checkout.run()
    assert status == 0, output
    begun = checkout.begun()
    assert begun[0] == "venv"
    assert sorted(begun[1:5]) == sorted(FIRST)
    assert begun[5] in ("unit", "lab-up")  # nothing of a lab, nor beside it, before the last check
    assert begun[-3:] == ["lab-down"] * 3
    lab_tests = [name for name in begun[5:] if name not in ("unit", "lab-up", "lab-down")]
    assert sorted(lab_tests) == sorted(
        ["molecule-default"] * 2
        + ["molecule-workload", "molecule-heal", "molecule-awx"]
        + ["maintenance-test"] * 3
        + ["lab-test"] * 5
    )
    events = [line.split(maxsplit=4) for line in checkout.lines()]
    assert [lab for name, lab, *_rest in events if name == "lab-up"] == ["61", "62", "63"]
    assert [lab for name, lab, *_rest in events if name == "lab-down"] == ["61", "62", "63"]
    # The last one of all need not restore its lab, nor the last one on the lab of the oldest releases.
    assert [name for name, _unused, goes, *_rest in events if goes == "1"] == ["lab-test"] * 2
    assert (
        output.index("ok    venv")
        < output.index("Checks:")
        < output.index("On the labs, and beside them unit:")
        < output.index("lab-down-61")
    )
    assert output.splitlines()[-4] == "18 passed, 0 failed, 9 skipped"  # of nine files
    assert (checkout.root / ".cache/logs/molecule-upgrade.log").exists()


def test_one_lab_has_the_oldest_releases(checkout):
    checkout.does("lab-up", 'echo "$NPU_LAB ${NPU_LAB_KUBERNETES:-newest} ${NPU_LAB_CONTAINERD:-newest}" >>releases')
    for name in ("molecule-default", "molecule-awx", "lab-test"):
        checkout.does(name, 'echo "$NPU_LAB ${NPU_LAB_KUBERNETES:-newest} ${NPU_LAB_CONTAINERD:-newest}" >>releases')
    status, output = checkout.run()
    assert status == 0, output
    oldest = f"63 {plan.OLDEST['NPU_LAB_KUBERNETES']} {plan.OLDEST['NPU_LAB_CONTAINERD']}"
    assert set(checkout.lines("releases")) <= {"61 newest newest", "62 newest newest", oldest}
    assert checkout.lines("releases").count(oldest) == 5  # its start, and what runs on it


def test_the_oldest_releases_are_the_oldest_that_the_lab_knows():
    kubernetes, containerd = (list(versions.known(project)) for project in ("kubernetes", "containerd"))
    assert plan.OLDEST == {"NPU_LAB_KUBERNETES": kubernetes[-1], "NPU_LAB_CONTAINERD": containerd[-2]}  # the last one is npu-b's


def test_with_one_lab_everything_runs_once_on_it(checkout):
    status, output = checkout.run(labs="61")
    assert status == 0, output
    assert (
        checkout.begun().count("lab-up")
        == checkout.begun().count("molecule-default")
        == checkout.begun().count("molecule-awx")
        == 1
    )


def test_each_test_of_maintenance_runs_once_and_crashes_are_few(checkout):
    checkout.run()
    lines = [line for line in checkout.lines() if line.startswith("maintenance-test")]
    assert sorted(re.findall(r"test_(\w+)\.py", " ".join(lines))) == [
        "budgets",
        "claims",
        "crash",
        "drain",
        "heal",
        "heal_crash",
        "trains",
    ]
    assert all(" crash " in line and " -m core " in line for line in lines)


def test_three_checks_at_once_in_the_order_of_the_list(checkout):
    for name in FIRST[:3]:
        # They meet, and the first three of the list do.
        checkout.does(
            name, f"touch met-{name}\n" + "\n".join(f"until [ -e met-{other} ]; do sleep 0.1; done" for other in FIRST[:3])
        )
    status, output = checkout.run()
    assert status == 0, output
    assert checkout.begun()[4] == FIRST[3]


def test_the_unit_tests_run_beside_the_labs(checkout):
    checkout.does("unit", "until [ -e met ]; do sleep 0.1; done; nice >priority")
    checkout.does("molecule-heal", "touch met; nice >priority-of-labs")
    status, output = checkout.run()
    assert status == 0, output
    unit, labs = (int(checkout.lines(name)[0]) for name in ("priority", "priority-of-labs"))
    assert unit > labs


def test_unit_tests_fail(checkout):
    checkout.does("unit", "exit 3")
    status, output = checkout.run()
    assert status == 1
    assert "FAIL  unit" in output
    assert len(checkout.begun()) == 1 + len(CHECKS) + 3 + 13 + 3  # all of the rest ran, and the labs are gone


def test_a_check_fails(checkout):
    checkout.does(
        "sanity",
        "echo FAILED tests/a.py::first - reason\nfor i in 1 2 3 4 5 6; do echo line $i; done; echo 3 passed, 1 failed; exit 3",
    )
    status, output = checkout.run()
    assert status == 1
    assert sorted(checkout.begun()) == sorted(["venv", *FIRST])  # the others ran, the labs and what runs beside them did not
    assert "The checks above failed; the labs were not used." in output
    assert re.search(r"FAIL  sanity +\d+ s  exit status 3, the end of .*/\.cache/logs/sanity\.log:", output)
    shown = [line.partition("| ")[2] for line in output.splitlines() if line.startswith("        | ")]
    assert shown == ["FAILED tests/a.py::first - reason", "line 4", "line 5", "line 6", "3 passed, 1 failed"]


def test_a_test_on_a_lab_fails(checkout):
    checkout.does("molecule-default", "exit 2")
    status, output = checkout.run()
    assert status == 1
    assert "FAIL  molecule-upgrade" in output
    assert len(checkout.begun()) == 1 + len(CHECKS) + 3 + 13 + 3  # all of the rest ran, and the labs are gone


def test_a_summary_is_shown(checkout):
    checkout.does("unit", "echo '=== 7 passed, 1 skipped in 3 s ==='; echo bye")
    _unused, output = checkout.run()
    assert re.search(r"  ok    unit +\d+ s  7 passed, 1 skipped in 3 s\n", output)


def test_no_environment_no_run(checkout):
    checkout.does("venv", "echo no network; exit 1")
    status, output = checkout.run()
    assert status == 1
    assert "| no network" in output
    assert checkout.begun() == ["venv"]


def test_a_command_that_does_not_exist(checkout):
    (checkout.root / "dev/venv").unlink()
    status, output = checkout.run()
    assert status == 1
    assert "FAIL  venv" in output and "No such file" in output


def test_a_scenario_that_nobody_runs(checkout):
    checkout.write("molecule/forgotten/molecule.yml", "")
    status, output = checkout.run()
    assert status == 1
    assert "forgotten" in output
    assert checkout.begun() == ["venv"]


def test_a_lab_that_does_not_start_ends_the_others(checkout):
    checkout.does("molecule-default", HANGS)
    checkout.does("lab-up", '[ "$NPU_LAB" = 61 ] && return; until [ "$(wc -l <pids)" = 2 ]; do sleep 0.1; done; exit 1')
    status, output = checkout.run()
    assert status == 1
    assert "FAIL  lab-62" in output
    assert "asked molecule-default" in checkout.lines()
    assert checkout.begun()[-2:] == ["lab-down"] * 2  # 63 was not touched
    assert checkout.left() == []


def test_a_lab_that_runs_stays(checkout):
    for number in (61, 63):
        checkout.write(f".lab{number}/inventory.yml", "")
    checkout.does("lab-test", "sleep 0.3")
    status, output = checkout.run()
    assert status == 0, output
    assert "lab-down-62" in output and "lab-down-61" not in output and "lab-down-63" not in output
    events = [line.split(maxsplit=3) for line in checkout.lines()]
    assert {lab for _unused, lab, goes, *_rest in events if goes == "1"} <= {"62"}


def test_a_lab_that_does_not_go(checkout):
    checkout.does("lab-down", '[ "$NPU_LAB" != 61 ]')
    status, output = checkout.run()
    assert status == 1
    assert "FAIL  lab-down-61" in output and "ok    lab-down-63" in output


def test_signs_of_life(checkout):
    checkout.does("unit", "echo first; echo second; sleep 1")
    _unused, output = checkout.run()
    assert re.search(r"  \.\.\.\.  unit +\d+ s  second\n", output)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_of_it(checkout, signum, background):
    checkout.does("molecule-default", HANGS)
    checkout.does("maintenance-test", HANGS)

    def as_a_script_starts_what_it_does_not_wait_for():
        if background:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = checkout.start(preexec_fn=as_a_script_starts_what_it_does_not_wait_for)
    checkout.wait_for("pids", 6)
    process.send_signal(signum)
    output, _unused = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    # First the way that lets them put back what they changed.
    assert checkout.begun().count("asked") == 3 and "told" not in checkout.begun()
    assert "end   molecule-upgrade" in output
    assert checkout.begun()[-3:] == ["lab-down"] * 3
    assert checkout.left() == []


def test_the_terminal_goes(checkout):
    """Its end is a signal, and nobody reads any more."""
    checkout.does("molecule-default", HANGS)
    # These tests may run under nohup.
    process = checkout.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    checkout.wait_for("pids", 2)
    process.stdout.close()
    process.send_signal(signal.SIGHUP)
    process.wait(PATIENCE)
    assert checkout.begun()[-1] == "lab-down"
    assert checkout.left() == []


def test_a_signal_during_the_checks(checkout):
    checkout.does("lint", HANGS)
    process = checkout.start()
    checkout.wait_for("pids", 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 130
    process.stdout.close()
    assert checkout.left() == []
    assert not [name for name in checkout.begun() if name.startswith("lab")]


def test_who_does_not_listen_is_killed(checkout):
    checkout.does("sanity", STUBBORN)
    process = checkout.start(patience=1)
    checkout.wait_for("pids", 2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 130
    process.stdout.close()
    assert checkout.left() == []


def test_ci_ends_it_with_a_signal(checkout):
    """.ci/run, make, dev/test and dev/testrun as they are."""
    for name in (".ci/run", "Makefile", "dev/test", "dev/common.sh", "dev/count.py"):
        checkout.write(name, "")
        shutil.copy(CHECKOUT / name, checkout.root / name)
    shutil.copytree(CHECKOUT / "dev/testrun", checkout.root / "dev/testrun")
    shutil.copytree(CHECKOUT / "lab/npulab", checkout.root / "lab/npulab")
    checkout.does("lint", HANGS)
    env = {name: value for name, value in os.environ.items() if not name.startswith("NPU_")}
    command = [checkout.root / ".ci/run"]
    with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        checkout.wait_for("pids", 2)
        process.send_signal(signal.SIGTERM)
        output, _unused = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, output
    assert checkout.left() == []
    assert "asked lint" in checkout.lines()
    assert checkout.begun()[:3] == checkout.begun()[-3:] == ["lab-down"] * 3  # of an earlier run, and its own


def test_long_scenarios_are_there():
    there = {path.parent.name for path in CHECKOUT.glob("molecule/*/molecule.yml")}
    assert plan.LONG_SCENARIOS <= there
