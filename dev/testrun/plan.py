# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two suites: what `make test` runs, and what `make test-all` runs.

A part is one command with a log, a result and a budget. `make test` has everything that needs no lab, and the core on one lab with
the newest releases: tests marked `core`, and two scenarios of molecule. `make test-all` has all tests and scenarios, each release
of what is supported, and the benches.
"""

from __future__ import annotations

import enum
import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


class Place(enum.Enum):
    """Where a part runs."""

    NO_LAB = "no lab"
    NEWEST = "a lab with the newest releases"
    ROLLOUTS = "another lab with the newest releases"
    OLDEST = "a lab with the oldest releases"
    OWN = "labs that it starts itself"
    ALONE = "a lab with the newest releases, and nothing beside it"


@dataclass(frozen=True)
class Part:
    """One entry of a suite.

    :param name: which its log has, too
    :param budget: CPU seconds of the command and its children on a machine like the reference (speed.py), at most about twice what
        it cost. One that costs a fifth more fails; shards are balanced by it
    :param env: added to its environment
    """

    name: str
    command: tuple[str, ...]
    budget: int
    place: Place = Place.NO_LAB
    env: dict[str, str] = field(default_factory=dict)


class PlanError(Exception):
    """The plan does not fit the tests that there are; shown without a traceback."""


# The sessions of noxfile.py, the longest first: the others share the processor with the second half of it.
CHECKS = {
    "unit": 640,
    "sanity": 210,
    "lint": 80,
    "lab-sim": 90,
    "node-agent": 35,
    "simulate": 90,
    "ee": 40,
    "build": 55,
    "docs-lint": 25,
    "python38": 320,
}
# It covers what unit tests and sanity do with .venv's ansible-core.
SLOW_CHECKS = {"ansible-newest": 60}
# What an ansible-core, or a kubernetes.core, can break.
WITH_ANSIBLE = (
    *(f"tests/unit/{name}" for name in ("ansible", "extensions", "roles", "meta")),
    *(f"tests/unit/plugins/{name}" for name in ("action", "filter")),
    *(f"tests/unit/plugins/plugin_utils/_{name}" for name in ("action", "data", "kube", "package", "settings")),
)
# At which calls test_crash.py kills the controller in `make test`: those that matter most, one on each node.
CRASHES = "kill-before:npu_trial_boot rebooted,kill-after:npu_trial_boot rebooted,kill-after:last-maintenance"
# Scenarios whose verify.yml `make test` runs: the first install, its second run, an upgrade, its second run, a rollback.
CORE_SCENARIOS = ("default", "upgrade")
# npu-b has containerd 1.7 on every lab.
OLDEST = {"NPU_LAB_KUBERNETES": "1.34", "NPU_LAB_CONTAINERD": "2.1"}
CONTAINERD = "tests/lab/test_containerd.py"
STAGING = ("tests/lab/test_staging.py", "tests/lab/test_build_driver_image.py")
# Scenarios of `make test-all`, each a part with the scenarios that run one after another.
SCENARIOS = {
    Place.NEWEST: {
        "upgrade": (CORE_SCENARIOS, 160),
        "workload": (("workload", "heal"), 300),
        "adopt": (("adopt",), 300),
        "airgap": (("airgap", "package"), 300),
        "firmware": (("firmware",), 120),
        "runtime": (("runtime",), 150),
        "stack": (("stack",), 200),
        "vnpu": (("vnpu",), 200),
    },
    Place.OLDEST: {
        "oldest": (("default", "workload"), 120),
        "awx": (("awx",), 90),
    },
}
# Files of tests/lab/maintenance that share an install. Crashes are a part of their own: at each kind of call here, at every call in
# `make crash-test` and, without Ansible, in the simulator.
ROLLOUTS = {
    "cases": (("cases", "changed_mind"), 700),
    "bad-drivers": (("bad_drivers", "first_of_a_pool", "frozen_host", "network_ports", "ways_out"), 750),
    "policies": (("policies", "pace", "kernels", "package"), 700),
    "parking": (("parking",), 320),
    "firmware": (("firmware",), 220),
    "version_lines": (("version_lines", "claims", "ill_chip"), 200),
    "heal": (("heal",), 200),
}
CRASHING = ("crash", "heal_crash", "slices")


def test(checkout: Path, results: Path) -> list[Part]:
    """`make test`."""
    return [
        *_checks(checkout, CHECKS),
        _molecule("molecule", CORE_SCENARIOS, 100, Place.NEWEST),
        # The last one: it ends with uninstall.
        _pytest(results, "lab-test", ["tests/lab", "-m", "core"], 240, env={"NPU_CRASH": CRASHES}),
    ]


def test_all(checkout: Path, results: Path) -> list[Part]:
    """`make test-all`."""
    python = str(checkout / ".venv" / "bin" / "python")
    scenarios = [
        _molecule(f"molecule-{name}", names, budget, place)
        for place, parts in SCENARIOS.items()
        for name, (names, budget) in parts.items()
    ]
    rollouts = [
        _pytest(results, f"maintenance-{name}", [_rollout(file) for file in files], budget, Place.ROLLOUTS)
        for name, (files, budget) in ROLLOUTS.items()
    ]
    parts = [
        *_checks(checkout, CHECKS | SLOW_CHECKS),
        Part("simulate-many", ("dev/simulate",), 380, env={"SEEDS": "10000"}),
        Part("kubernetes-core", ("dev/kubernetes-core",), 120),
        Part("arm64", ("dev/arm64",), 300),
        *(
            Part(f"ansible-{pair}", ("dev/ansible-matrix", "--fetch", "--pair", pair, *arguments), budget)
            for pair, arguments, budget in _pairs(_listed(checkout, python, "dev/ansible_matrix.py", "--list"))
        ),
        *scenarios,
        *rollouts,
        _pytest(results, "crash", [_rollout(name) for name in CRASHING], 900, Place.ROLLOUTS),
        _pytest(results, "containerd", [CONTAINERD], 80),
        _pytest(results, "lab-test", ["tests/lab", *_ignored(checkout)], 600),
        _pytest(results, "oldest-containerd", [CONTAINERD], 100, Place.OLDEST),
        _pytest(results, "oldest-staging", list(STAGING), 130, Place.OLDEST),
        *(
            Part(f"matrix-{pair.replace(':', '-')}", ("dev/matrix", "--pair", pair), 250, Place.OWN)
            for pair in _listed(checkout, python, "dev/matrix.py", "--list")
        ),
        Part("bench", ("dev/bench",), 400, Place.ALONE),
    ]
    _complete(checkout, parts)
    return parts


def shard(parts: list[Part], wanted: str) -> list[Part]:
    """Return one share of the parts, in their order: the second of four with `2/4`, everything with an empty text.

    The shares cost about the same, and each part is in one of them.
    """
    if not wanted:
        return parts
    match = re.fullmatch(r"([1-9]\d?)/([1-9]\d?)", wanted)
    if not match or int(match[1]) > int(match[2]):
        raise PlanError(f"NPU_SHARD is '{wanted}': it must be the number of a shard and how many there are, such as 2/4")
    loads = [0] * int(match[2])
    shards: dict[str, int] = {}
    for part in sorted(parts, key=lambda part: -part.budget):
        shards[part.name] = loads.index(min(loads))
        loads[shards[part.name]] += part.budget
    return [part for part in parts if shards[part.name] == int(match[1]) - 1]


def only(parts: list[Part], wanted: str) -> list[Part]:
    """Return those of the parts whose names are in ``wanted``, with spaces between them; all with an empty text."""
    names = set(wanted.split())
    unknown = names - {part.name for part in parts}
    if unknown:
        raise PlanError(f"NPU_PARTS has {', '.join(sorted(unknown))}; the parts are {', '.join(part.name for part in parts)}")
    return [part for part in parts if part.name in names] if names else parts


def _checks(checkout: Path, budgets: dict[str, int]) -> list[Part]:
    nox = str(checkout / ".venv" / "bin" / "nox")
    listed = subprocess.run([nox, "--list", "--json"], cwd=checkout, stdout=subprocess.PIPE, check=True, text=True).stdout
    _same("CHECKS and SLOW_CHECKS", {*CHECKS, *SLOW_CHECKS}, "noxfile.py", {entry["session"] for entry in json.loads(listed)})
    return [Part(name, (nox, "--session", name), budget) for name, budget in budgets.items()]


def _molecule(name: str, scenarios: Iterable[str], budget: int, place: Place) -> Part:
    return Part(name, ("dev/molecule", *scenarios), budget, place)


def _pytest(
    results: Path, name: str, arguments: list[str], budget: int, place: Place = Place.NEWEST, env: dict[str, str] | None = None
) -> Part:
    return Part(name, ("dev/lab-test", *arguments, f"--junitxml={results / name}.xml"), budget, place, env or {})


def _pairs(names: list[str]) -> list[tuple[str, tuple[str, ...], int]]:
    """(pair, its arguments, budget).

    All unit tests with the newest Python, with others those in which Ansible has a part; sanity once for each ansible-core.
    """
    found: list[tuple[str, tuple[str, ...], int]] = [(names[-1], ("--",), 900)]
    for name, following in reversed(list(zip(names, names[1:]))):
        same = name.partition("-")[0] == following.partition("-")[0]
        found.append((name, (*(("--only", "names,unit") if same else ()), "--", *WITH_ANSIBLE), 400 if same else 600))
    return found[::-1]


def _rollout(name: str) -> str:
    return f"tests/lab/maintenance/test_{name}.py"


def _ignored(checkout: Path) -> list[str]:
    """What the part lab-test of test_all leaves to others."""
    return [f"--ignore={path}" for path in ("tests/lab/maintenance", CONTAINERD, *sorted(of_scenarios(checkout)))]


def of_scenarios(checkout: Path) -> dict[str, set[str]]:
    """Return the files of tests that molecule's scenarios run, each with the names of these."""
    found: dict[str, set[str]] = {}
    for path in checkout.glob("molecule/*/verify.yml"):
        for file in re.findall(r"tests/lab/test_\w+\.py", path.read_text(encoding="utf-8")):
            found.setdefault(file, set()).add(path.parent.name)
    return found


def _listed(checkout: Path, *command: str) -> list[str]:
    return subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, check=True, text=True).stdout.split()


def _complete(checkout: Path, parts: list[Part]) -> None:
    """Refuse a plan that leaves out a scenario or a rollout, or has one too many, and a scenario whose verify runs no test."""
    words = {word for part in parts for word in part.command}
    rollouts = {word for word in words if word.startswith("tests/lab/maintenance/")}
    scenarios = {name for part in parts if part.command[0] == "dev/molecule" for name in part.command[1:]}
    _same("SCENARIOS", scenarios, "molecule/", {path.parent.name for path in checkout.glob("molecule/*/molecule.yml")})
    tested = set().union(*of_scenarios(checkout).values())
    if untested := sorted(scenarios - tested):
        raise PlanError(f"molecule/*/verify.yml runs no test of tests/lab: {', '.join(untested)}")
    there = {str(path.relative_to(checkout)) for path in checkout.glob("tests/lab/maintenance/test_*.py")}
    _same("ROLLOUTS", rollouts, "tests/lab/maintenance", there)


def _same(table: str, planned: set[str], place: str, there: set[str]) -> None:
    differ = planned ^ there
    if differ:
        raise PlanError(f"{table} in dev/testrun/plan.py and {place} differ: {', '.join(sorted(differ))}")
