# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is run, in which order. The checks are the sessions of noxfile.py; the tests on labs are listed here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .runner import Check

# At which calls test_crash.py kills the controller: those that matter most, one on each node. All of them are `make crash-test`.
CRASHES = "kill-before:npu_trial_boot rebooted,kill-after:npu_trial_boot rebooted,kill-after:last-maintenance"

CONTAINERD = "tests/lab/test_containerd.py"
CLUSTER = "tests/lab/test_cluster.py"
# What does not depend on the releases runs on the lab that has the least to do.
IMAGES = ("tests/lab/test_staging.py", "tests/lab/test_build_driver_image.py")
RECOVERIES = tuple(f"tests/lab/maintenance/test_{name}.py" for name in ("crash", "heal", "heal_crash"))
# What takes longest, so that two labs share it.
TOGETHER = tuple(f"tests/lab/maintenance/test_{name}.py" for name in ("claims", "trains"))
SCENARIOS = {
    "molecule-upgrade": ("default", "upgrade"),
    "molecule-workload": ("workload",),
    "molecule-heal": ("heal",),
}
# On a lab of its own, with the oldest releases that are supported (npu-b has containerd 1.7 on every lab): what depends on the
# release runs here as well, what does not runs here instead.
OLDEST = {"NPU_LAB_KUBERNETES": "1.34", "NPU_LAB_CONTAINERD": "2.1"}
OLDEST_SCENARIOS = {
    "molecule-oldest": ("default", "workload"),
    "molecule-awx": ("awx",),
}
# Too long for each change: only `make molecule` runs these. CI runs the core of each as tests in tests/lab.
LONG_SCENARIOS = {"adopt", "airgap", "firmware", "package", "runtime", "stack", "vnpu"}
# The check that takes longest by far runs beside the tests on labs, with the processor time that they leave: they often wait.
BESIDE = "unit"
# It leaves the processor to the labs, which have limits of time, and to what they compile, and still gets on when they are busy.
NICENESS = "15"
# Of those on the oldest releases, what runs on the newest as well.
AGAIN = {"molecule-oldest", "lab-test-oldest"}


class PlanError(Exception):
    """The plan does not fit the tests that there are; shown without a traceback."""


def checks(checkout: Path, env: dict[str, str]) -> tuple[list[Check], list[Check]]:
    """What needs no lab, each session of noxfile.py in its order: what comes before the labs, and what runs beside them."""
    nox = str(checkout / ".venv" / "bin" / "nox")
    listed = subprocess.run([nox, "--list", "--json"], cwd=checkout, env=env, stdout=subprocess.PIPE, check=True, text=True).stdout
    names = [session["session"] for session in json.loads(listed)]
    before = [Check(name, (nox, "--session", name)) for name in names if name != BESIDE]
    beside = [Check(name, ("nice", "-n", NICENESS, nox, "--session", name)) for name in names if name == BESIDE]
    return before, beside


def lab_tests(checkout: Path, results: Path) -> tuple[list[Check], list[Check]]:
    """What needs a lab of the newest releases, and what runs on the oldest.

    Each of these finds its lab in whatever state another one has left it.
    """
    planned = {scenario for scenarios in {**SCENARIOS, **OLDEST_SCENARIOS}.values() for scenario in scenarios}
    there = {path.parent.name for path in checkout.glob("molecule/*/molecule.yml")}
    differ = (planned - there) | (there - planned - LONG_SCENARIOS)
    if differ:
        raise PlanError(f"dev/testrun/plan.py plans other scenarios than molecule/ has: {', '.join(sorted(differ))}")
    rollouts = sorted(
        {str(path.relative_to(checkout)) for path in checkout.glob("tests/lab/maintenance/test_*.py")} - {*RECOVERIES, *TOGETHER}
    )
    elsewhere = [f"--ignore={file}" for file in (CLUSTER, CONTAINERD, *IMAGES)]

    def tests(name: str, script: str, arguments: list[str], junit: str) -> Check:
        return Check(name, (f"dev/{script}", *arguments, f"--junitxml={results / junit}.xml"))

    def molecule(name: str) -> Check:
        return Check(name, ("dev/molecule", *{**SCENARIOS, **OLDEST_SCENARIOS}[name]))

    # `default` is the first of all, as it looks at what is there before the first install; a short one is the last. Recoveries come
    # before awx, which recovers a node as well: after that, on the same lab, another one would be a storm.
    newest = [
        molecule("molecule-upgrade"),
        tests("maintenance", "maintenance-test", [*rollouts, "-m", "core"], "maintenance"),
        tests("lab-test", "lab-test", elsewhere, "lab"),
        tests("trains", "maintenance-test", [*TOGETHER, "-m", "core"], "trains"),
        molecule("molecule-workload"),
        molecule("molecule-heal"),
        tests("lab-test-containerd", "lab-test", [CONTAINERD], "lab-containerd"),
        tests("lab-test-cluster", "lab-test", [CLUSTER], "lab-cluster"),
    ]
    oldest = [
        molecule("molecule-oldest"),
        tests("recoveries", "maintenance-test", [*RECOVERIES, "-m", "core"], "recoveries"),
        molecule("molecule-awx"),
        tests("lab-test-images", "lab-test", list(IMAGES), "lab-images"),
        tests("lab-test-oldest", "lab-test", [CONTAINERD], "lab-oldest"),
    ]
    return newest, oldest
