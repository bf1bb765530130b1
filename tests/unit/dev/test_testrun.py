# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""dev/test: its suites, shards and budgets, its labs and how it ends, with real processes that stand for the checks and the labs."""

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

CHECKS = list(plan.CHECKS)
ALL_CHECKS = [*CHECKS, *plan.SLOW_CHECKS]
SCENARIOS = sorted({name for parts in plan.SCENARIOS.values() for names, _budget in parts.values() for name in names})
ROLLOUTS = [*plan.CRASHING, *(name for names, _budget in plan.ROLLOUTS.values() for name in names)]
JUNIT = """<testsuites><testsuite tests="3" failures="0" errors="0" skipped="1"><testcase classname="tests.unit.test_a" name="test_b[c]">
<properties><property name="cpu" value="7.25"/></properties></testcase></testsuite></testsuites>"""

# Stands for every program that dev/test runs: it writes down that it was started and does what the test has prepared for it.
PROGRAM = """#!/bin/sh
name=${0##*/}
case "$name $1" in
    "nox --list") cat sessions.json; exit ;;
    "nox --session") name=$2 ;;
    "python dev/ansible_matrix.py") echo 2.18-3.11; echo 2.21-3.14; exit ;;
    "python dev/matrix.py") echo 1.37:2.4; echo 1.36:2.4; exit ;;
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
# Two processes that never end by themselves; the first one writes down which signal came first. The second one has a session of its
# own, as what Ansible's workers start.
HANGS = """
trap 'echo "asked $name" >>events; exit 1' INT
trap 'echo "told $name" >>events; exit 1' TERM
echo $$ >>pids
setsid --wait sh -c 'echo $$ >>pids; while :; do sleep 0.1; done'
"""
STUBBORN = """
trap '' INT TERM
sh -c 'while :; do sleep 0.1; done' & echo $! >>pids
echo $$ >>pids
while :; do sleep 0.1; done
"""
# Costs more than the budget that MAIN gives the checks.
BURNS = "python3 -c 'import time\nwhile time.process_time() < 2: pass'"
# What dev/test does, with less patience, on a machine that is as slow as the test says.
MAIN = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from testrun import plan
from testrun.main import main
from testrun.runner import Runner
plan.CHECKS = dict.fromkeys(plan.CHECKS, 1)
checkout = Path.cwd()
runner = Runner(checkout, heartbeat=0.3, patience=float(sys.argv[2]), tail=4)
sys.exit(main(checkout, sys.argv[4:], dict(os.environ), runner, lambda: float(sys.argv[3])))
"""


class Checkout:
    """A checkout with programs of ours in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        scripts = ("venv", "molecule", "lab-test", "simulate", "kubernetes-core", "arm64", "ansible-matrix", "matrix", "bench")
        for name in (".venv/bin/nox", ".venv/bin/python", "lab/lab", *(f"dev/{script}" for script in scripts)):
            self.write(name, PROGRAM).chmod(0o755)
        for scenario in SCENARIOS:
            self.write(f"molecule/{scenario}/molecule.yml", "")
            self.write(f"molecule/{scenario}/verify.yml", f"argv: [tests/lab/test_{scenario}.py]")
        self.write("molecule/heal/verify.yml", "argv: [tests/lab/test_healed.py]")
        for test in ROLLOUTS:
            self.write(f"tests/lab/maintenance/test_{test}.py", "")
        self.write("sessions.json", json.dumps([{"session": name} for name in ALL_CHECKS]))
        self.write("junit.xml", JUNIT)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def does(self, name: str, script: str) -> None:
        self.write(f"do/{name}", script)

    def start(
        self,
        *suite: str,
        patience: float = 30,
        slowness: float = 100,
        labs: str = "61 62 63 64",
        shard: str = "",
        parts: str = "",
        **options,
    ) -> subprocess.Popen:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("NPU_", "STEP_"))}
        return subprocess.Popen(
            [sys.executable, "-B", "-c", MAIN, str(CHECKOUT / "dev"), str(patience), str(slowness), *suite],
            cwd=self.root,
            env={**env, "NPU_LABS": labs, "NPU_SHARD": shard, "NPU_PARTS": parts},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )

    def run(self, *suite: str, **options) -> tuple[int, str]:
        process = self.start(*suite, **options)
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
    assert begun[0] == "venv" and begun[-1] == "lab-down"
    assert sorted(begun[1:-1]) == sorted([*CHECKS, "lab-up", "molecule-default", "lab-test"])
    events = [line.split(maxsplit=3) for line in checkout.lines()]
    assert {lab for name, lab, *_rest in events if name in ("lab-up", "molecule-default", "lab-test", "lab-down")} == {"61"}
    # The last one of all need not restore its lab.
    assert [name for name, _lab, goes, *_rest in events if goes == "1"] == ["lab-test"]
    assert [line for line in checkout.lines() if " -m core" not in line and line.startswith("lab-test")] == []
    assert output.splitlines()[-2] == "4 passed, 0 failed, 2 skipped"  # of two files
    assert (checkout.root / ".cache/logs/molecule.log").exists()


def test_everything(checkout):
    checkout.does("simulate", 'echo "${SEEDS:-few}" >>seeds')
    status, output = checkout.run("test-all")
    assert status == 0, output
    # Each part gets its own environment.
    assert sorted(checkout.lines("seeds")) == ["10000", "few"]
    begun = checkout.begun()
    assert set(ALL_CHECKS) <= set(begun)
    assert sorted(name for name in begun if name in ("simulate", "kubernetes-core", "arm64", "ansible-matrix", "matrix", "bench")) == [
        "ansible-matrix", "ansible-matrix", "arm64", "bench", "kubernetes-core", "matrix", "matrix", "simulate", "simulate",
    ]  # fmt: skip
    lines = checkout.lines()
    assert "-m core" not in "\n".join(lines)
    # All of the unit tests with the newest Python only.
    some, everything = sorted((line.partition(" -- ")[2] for line in lines if line.startswith("ansible-matrix")), reverse=True)
    assert "tests/unit/ansible" in some.split() and everything == ""
    assert [path for path in some.split() if not (CHECKOUT / path).is_dir()] == []
    rollouts = [word for line in lines for word in re.findall(r"maintenance/test_(\w+)\.py", line)]
    assert sorted(rollouts) == sorted(ROLLOUTS)
    scenarios = [word for line in lines if line.startswith("molecule-") for word in line.split()[3:] if word in SCENARIOS]
    assert set(scenarios) == set(SCENARIOS)
    rest = next(line for line in lines if line.startswith("lab-test") and " tests/lab " in line)
    assert "--ignore=tests/lab/test_healed.py" in rest and "--ignore=tests/lab/maintenance" in rest
    # Nothing runs beside the bench.
    assert begun[begun.index("bench") + 1 :] == ["lab-down"] * 3
    assert next(line for line in lines if line.startswith("bench")).split()[1] == "61"
    assert {line.split()[1] for line in lines if line.startswith("matrix")} == {"63"}


def test_one_lab_has_the_oldest_releases(checkout):
    for name in ("lab-up", *(f"molecule-{scenario}" for scenario in SCENARIOS), "lab-test"):
        checkout.does(name, 'echo "$NPU_LAB ${NPU_LAB_KUBERNETES:-newest} ${NPU_LAB_CONTAINERD:-newest}" >>releases')
    status, output = checkout.run("test-all")
    assert status == 0, output
    oldest = f"62 {plan.OLDEST['NPU_LAB_KUBERNETES']} {plan.OLDEST['NPU_LAB_CONTAINERD']}"
    assert set(checkout.lines("releases")) == {"61 newest newest", "64 newest newest", oldest}
    assert checkout.lines("releases").count(oldest) == 5  # its start, and what runs on it


def test_the_oldest_releases_are_the_oldest_that_the_lab_knows():
    kubernetes, containerd = (list(versions.known(project)) for project in ("kubernetes", "containerd"))
    assert plan.OLDEST == {"NPU_LAB_KUBERNETES": kubernetes[-1], "NPU_LAB_CONTAINERD": containerd[-2]}  # the last one is npu-b's


def test_shards_have_everything_once(checkout):
    parts = plan.test_all(checkout.root, checkout.root)
    for count in (1, 2, 4, 7):
        shards = [plan.shard(parts, f"{number}/{count}") for number in range(1, count + 1)]
        assert sorted(part.name for shard in shards for part in shard) == sorted(part.name for part in parts)
        loads = [sum(part.budget for part in shard) for shard in shards]
        assert max(loads) - min(loads) <= max(part.budget for part in parts)
        assert all(shard == [part for part in parts if part in shard] for shard in shards)  # in their order


def test_a_shard_starts_the_labs_that_it_needs(checkout, monkeypatch):
    monkeypatch.setattr(plan, "CHECKS", dict.fromkeys(plan.CHECKS, 1))  # as MAIN does
    parts = plan.test_all(checkout.root, checkout.root)
    shards = [plan.shard(parts, f"{number}/40") for number in range(1, 41)]
    number = 1 + next(index for index, shard in enumerate(shards) if {part.place for part in shard} == {plan.Place.OLDEST})
    status, output = checkout.run("test-all", shard=f"{number}/40")
    assert status == 0, output
    assert [line.split()[1] for line in checkout.lines() if line.startswith("lab-up")] == ["62"]
    assert len(checkout.begun()) == 3 + len(shards[number - 1])


@pytest.mark.parametrize("shard", ["0/4", "5/4", "2", "a/b", "1/100", "-1/4"])
def test_a_shard_that_there_is_not(checkout, shard):
    status, output = checkout.run("test-all", shard=shard)
    assert status == 1
    assert f"NPU_SHARD is '{shard}': it must be the number of a shard and how many there are, such as 2/4" in output
    assert checkout.begun() == ["venv"]


def test_some_parts(checkout):
    status, output = checkout.run("test-all", parts="lint  build")
    assert status == 0, output
    assert sorted(checkout.begun()) == ["build", "lint", "venv"]
    status, output = checkout.run("test-all", parts="lint crush")
    assert status == 1 and "NPU_PARTS has crush; the parts are " in output and ", crash, " in output


def test_two_checks_at_once_in_the_order_of_the_list(checkout):
    for pair in (CHECKS[:2], CHECKS[2:4]):
        for name in pair:
            # They meet, so both are begun before any of those that follow.
            checkout.does(
                name, f"touch met-{name}\n" + "\n".join(f"until [ -e met-{other} ]; do sleep 0.1; done" for other in pair)
            )
    status, output = checkout.run()
    assert status == 0, output
    assert set([name for name in checkout.begun() if name in CHECKS][2:4]) == set(CHECKS[2:4])


def test_checks_run_beside_the_lab_at_a_lower_priority(checkout):
    checkout.does("unit", "until [ -e met ]; do sleep 0.1; done; nice >priority")
    checkout.does("molecule-default", "touch met; nice >priority-of-labs")
    status, output = checkout.run()
    assert status == 0, output
    unit, labs = (int(checkout.lines(name)[0]) for name in ("priority", "priority-of-labs"))
    assert unit > labs or labs == 19  # the lowest there is, of who has started these tests so


def test_a_check_fails(checkout):
    checkout.does(
        "sanity",
        "echo FAILED tests/a.py::first - reason\nfor i in 1 2 3 4 5 6; do echo line $i; done; echo 3 passed, 1 failed; exit 3",
    )
    status, output = checkout.run()
    assert status == 1
    assert len(checkout.begun()) == 1 + len(CHECKS) + 4  # all of the rest ran, and the lab is gone
    assert re.search(r"FAIL  sanity +\d+ s  exit status 3, the end of .*/\.cache/logs/sanity\.log:", output)
    shown = [line.partition("| ")[2] for line in output.splitlines() if line.startswith("        | ")]
    assert shown == [
        "FAILED tests/a.py::first - reason",
        "line 4",
        "line 5",
        "line 6",
        "3 passed, 1 failed",
        "FAILED tests/a.py::first - reason",
    ]
    assert output.splitlines()[output.splitlines().index("Failed: sanity") + 1].endswith("| FAILED tests/a.py::first - reason")


def test_the_end_says_once_more_what_ansible_said_of_a_failed_host(checkout):
    checkout.does(
        "molecule-default",
        "echo 'TASK [a]'; echo 'fatal: [npu-a]: FAILED! =>'; echo '    msg: the reason'; echo; echo 'TASK [b]'; echo '    of another'; exit 2",
    )
    status, output = checkout.run()
    assert status == 1
    end = output[output.index("Failed: molecule") :].splitlines()
    assert end[1:3] == ["        | fatal: [npu-a]: FAILED! =>", "        |     msg: the reason"]
    assert "of another" not in end


def test_a_test_on_a_lab_fails(checkout):
    checkout.does("molecule-default", "exit 2")
    status, output = checkout.run()
    assert status == 1
    assert "FAIL  molecule" in output
    assert len(checkout.begun()) == 1 + len(CHECKS) + 4  # all of the rest ran, and the lab is gone


def test_a_summary_is_shown(checkout):
    checkout.does("unit", "echo '=== 7 passed, 1 skipped in 3 s ==='; echo bye")
    _unused, output = checkout.run()
    assert re.search(r"  ok    unit +\d+ s  7 passed, 1 skipped in 3 s\n", output)


def test_what_it_has_cost_is_shown(checkout):
    status, output = checkout.run()
    assert status == 0, output
    assert re.search(r"^ +\d+ of +100  unit$", output, re.MULTILINE)
    assert re.search(r"^ +\d+ +all; \d+ with the labs", output, re.MULTILINE)
    assert "      7.2  tests/unit/test_a.py::test_b[c]" in output


def test_a_part_that_costs_too_much_fails(checkout):
    checkout.does("sanity", BURNS)
    status, output = checkout.run(slowness=1)
    assert status == 1
    assert re.search(r"^OVER BUDGET: sanity cost 2 CPU s, and its budget on this machine is 1: ", output, re.MULTILINE)
    assert output.count("OVER BUDGET") == 1
    # The same on a machine that is twice as slow.
    assert checkout.run(slowness=2)[0] == 0


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


@pytest.mark.parametrize(
    "file, table", [("molecule/forgotten/molecule.yml", "SCENARIOS"), ("tests/lab/maintenance/test_forgotten.py", "ROLLOUTS")]
)
def test_what_no_part_runs(checkout, file, table):
    checkout.write(file, "")
    status, output = checkout.run("test-all")
    assert status == 1
    assert table in output and "forgotten" in output
    assert checkout.begun() == ["venv"]


def test_a_scenario_whose_verify_runs_no_test(checkout):
    """dev/molecule refuses it, too, but only when all of its runs are over."""
    checkout.write("molecule/heal/verify.yml", "")
    status, output = checkout.run("test-all")
    assert status == 1
    assert "molecule/*/verify.yml runs no test of tests/lab: heal" in output
    assert checkout.begun() == ["venv"]


def test_a_session_that_no_part_runs(checkout):
    checkout.write("sessions.json", json.dumps([{"session": name} for name in [*ALL_CHECKS, "forgotten"]]))
    status, output = checkout.run()
    assert status == 1
    assert "CHECKS and SLOW_CHECKS in dev/testrun/plan.py and noxfile.py differ: forgotten" in output
    assert checkout.begun() == ["venv"]


def test_a_lab_that_does_not_start_leaves_the_others(checkout):
    """An hour's work of the other labs tells something all the same."""
    checkout.does("lab-up", '[ "$NPU_LAB" != 62 ]')
    status, output = checkout.run("test-all")
    assert status == 1
    assert "FAIL  lab-62" in output and "not run, without a lab: molecule-oldest, molecule-awx," in output
    assert {"61", "63", "64"} <= {line.split()[1] for line in checkout.lines()}
    assert not [line for line in checkout.lines() if line.split()[1] == "62" and not line.startswith("lab-")]
    assert checkout.begun()[-3:] == ["lab-down"] * 3


def test_what_needs_a_lab_again_that_did_not_start(checkout):
    checkout.does("lab-up", '[ "$NPU_LAB" != 61 ]')
    status, output = checkout.run("test-all")
    assert status == 1 and checkout.begun().count("lab-up") == 3
    assert "not run, without a lab: bench" in output and "bench" not in checkout.begun()


def test_a_lab_that_runs_stays(checkout):
    checkout.write(".lab61/inventory.yml", "")
    status, output = checkout.run("test-all")
    assert status == 0, output
    assert "lab-down-62" in output and "lab-down-61" not in output
    events = [line.split(maxsplit=3) for line in checkout.lines()]
    assert {lab for name, lab, goes, *_rest in events if goes == "1" and name != "matrix"} == {"62", "64"}


def test_a_lab_that_does_not_go(checkout):
    checkout.does("lab-down", '[ "$NPU_LAB" != 61 ]')
    status, output = checkout.run("test-all")
    assert status == 1
    assert "FAIL  lab-down-61" in output and "ok    lab-down-62" in output


def test_signs_of_life(checkout):
    checkout.does("unit", "echo first; echo second; sleep 1")
    _unused, output = checkout.run()
    assert re.search(r"  \.\.\.\.  unit +\d+ s  second\n", output)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_of_it(checkout, signum, background):
    checkout.does("molecule-default", HANGS)
    checkout.does("unit", HANGS)

    def as_a_script_starts_what_it_does_not_wait_for():
        if background:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = checkout.start(preexec_fn=as_a_script_starts_what_it_does_not_wait_for)
    checkout.wait_for("pids", 4)
    process.send_signal(signum)
    output, _unused = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, output
    # First the way that lets them put back what they changed.
    assert checkout.begun().count("asked") == 2 and "told" not in checkout.begun()
    assert "end   molecule" in output and "end   unit" in output
    assert checkout.begun()[-1] == "lab-down"
    assert checkout.left() == []


def test_the_terminal_goes(checkout):
    """Its end is a signal, and the output is not read any more."""
    checkout.does("molecule-default", HANGS)
    # These tests may run under nohup.
    process = checkout.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    checkout.wait_for("pids", 2)
    process.stdout.close()
    process.send_signal(signal.SIGHUP)
    process.wait(PATIENCE)
    assert checkout.begun()[-1] == "lab-down"
    assert checkout.left() == []


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


def test_the_plan_fits_the_checkout():
    assert {part.place for part in plan.test(CHECKOUT, CHECKOUT)} == {plan.Place.NO_LAB, plan.Place.NEWEST}
    names = [part.name for part in plan.test_all(CHECKOUT, CHECKOUT)]
    assert len(names) == len(set(names)) > 30
