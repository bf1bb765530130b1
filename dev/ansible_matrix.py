# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks with each ansible-core, Python and kubernetes.core that support.yml names, and print a table."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path.cwd()
HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE / "dev"), str(HERE / "lab")]

from testrun.runner import Interrupted, Runner  # noqa: E402

SUPPORT = HERE / "plugins" / "plugin_utils" / "_mindcluster" / "support.yml"
# What each does is in the script of its name.
STEPS = {"names": ("dev/ansible-names",), "unit": ("dev/unit",), "sanity": ("dev/sanity",), "lab": ("dev/molecule", "default")}


@dataclass(frozen=True)
class Pair:
    """An ansible-core and a Python, and what they are tested with."""

    core: str  # 2.21.5
    python: str  # 3.13
    kubernetes_core: str
    package: str  # the version of the package `ansible` that this kubernetes.core comes from
    kubernetes: str  # the client

    @property
    def name(self) -> str:
        """Such as 2.21-3.13."""
        return f"{self.core.rpartition('.')[0]}-{self.python}"


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def table_of_support() -> dict[str, Any]:
    return yaml.safe_load(SUPPORT.read_text(encoding="utf-8"))["ansible"]


def known_pairs() -> list[Pair]:
    """All of them, the oldest first."""
    return [Pair(**row) for row in table_of_support()["tested"]]


def of_the_checks() -> str:
    """The ansible-core of .venv, which every `make test` runs the checks with."""
    return re.search(r"^ansible-core==(\S+)", (HERE / "requirements-dev.lock").read_text(encoding="utf-8"), re.M)[1]  # type: ignore[index]


def kubernetes_core() -> list[tuple[str, str]]:
    """The lowest and the newest version, each with the package that it comes from."""
    found = sorted({(pair.kubernetes_core, pair.package) for pair in known_pairs()}, key=lambda entry: numbers(entry[0]))
    return [found[0], found[-1]]


def python_of(pair: Pair, fetch: bool) -> str | None:
    """The path of a Python of its version on this machine."""
    command = ["dev/python", pair.python, *(["--fetch"] if fetch else [])]
    done = subprocess.run(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=None if fetch else subprocess.DEVNULL, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dev/ansible-matrix",
        description=__doc__,
        epilog="What follows -- goes to pytest, such as -k registry. Without --lab, nothing is run on a lab.",
    )
    parser.add_argument("--pair", action="append", metavar="CORE-PYTHON", help="only this pair, such as 2.21-3.13")
    parser.add_argument("--only", metavar="STEP,...", help=f"only these steps, of {', '.join(STEPS)}")
    parser.add_argument("--lab", action="store_true", help="also molecule's scenario default, on the running lab (make lab)")
    parser.add_argument("--newest", action="store_true", help="only the newest pair whose Python this machine has")
    parser.add_argument("--fetch", action="store_true", help="get a Python that is missing from Debian testing (dev/python)")
    parser.add_argument("--list", action="store_true", help="print the pairs that `make test` does not check, and leave")
    parser.add_argument("--list-kubernetes-core", action="store_true", help="print the lowest and the newest version, and leave")
    parser.add_argument("pytest", nargs="*", metavar="ARGUMENT", help="of pytest")
    return parser.parse_args()


def chosen_pairs(names: list[str] | None) -> list[Pair]:
    known = {pair.name: pair for pair in known_pairs()}
    for name in names or ():
        if name not in known:
            raise SystemExit(f"--pair {name}: support.yml names {', '.join(known)}")
    return [known[name] for name in names or known]


def chosen_steps(arguments: argparse.Namespace) -> list[str]:
    names = arguments.only.split(",") if arguments.only else [name for name in STEPS if name != "lab"]
    for name in names:
        if name not in STEPS:
            raise SystemExit(f"--only {name}: the steps are {', '.join(STEPS)}")
    return [*names, "lab"] if arguments.lab and "lab" not in names else names


def environment(runner: Runner, pair: Pair, python: str) -> dict[str, str] | None:
    """Of the commands of a pair; None if it could not be made."""
    makers = {
        "venv": ["dev/ansible-venv", python, pair.core, pair.kubernetes],
        "collection": ["dev/kubernetes-core-collection", pair.kubernetes_core, pair.package],
    }
    places = {}
    for name, command in makers.items():
        step = f"{name}-{pair.name}"
        if not runner.alone(step, command, dict(os.environ)):
            return None
        places[name] = (runner.logs / f"{step}.log").read_text(encoding="utf-8").splitlines()[-1]
    # Ansible looks there for collections before it looks beside itself.
    return {**os.environ, "NPU_VENV": places["venv"], "PYTHONPATH": places["collection"]}


def try_pair(runner: Runner, pair: Pair, python: str, steps: list[str], arguments: list[str]) -> str:
    """ok, or the steps that failed."""
    env = environment(runner, pair, python)
    if env is None:
        return "FAIL: environment"
    failed = []
    for step in steps:
        command = [*STEPS[step], *(arguments if step == "unit" else [])]
        if not runner.alone(f"{step}-{pair.name}", command, env):
            failed.append(step)
    return f"FAIL: {', '.join(failed)}" if failed else "ok"


def table(results: dict[Pair, str]) -> str:
    lines = [f"{'ANSIBLE-CORE':<14}{'PYTHON':<8}{'KUBERNETES.CORE':<17}{'KUBERNETES':<12}RESULT"]
    for pair, result in results.items():
        lines.append(f"{pair.core:<14}{pair.python:<8}{pair.kubernetes_core:<17}{pair.kubernetes:<12}{result}")
    return "\n".join(lines)


def main() -> int:
    arguments = parse()
    if arguments.list:
        print("\n".join(pair.name for pair in known_pairs() if pair.core != of_the_checks()))
        return 0
    if arguments.list_kubernetes_core:
        print("\n".join(" ".join(entry) for entry in kubernetes_core()))
        return 0
    pairs, steps = chosen_pairs(arguments.pair), chosen_steps(arguments)
    runner = Runner(CHECKOUT)
    pythons = {pair: python_of(pair, arguments.fetch) for pair in pairs}
    if arguments.newest:
        newest = max(numbers(pair.core) for pair in pairs)
        pairs = [pair for pair in pairs if numbers(pair.core) == newest]
        there = [pair for pair in pairs if pythons[pair]]
        if not there:
            wanted = " or ".join(pair.python for pair in pairs)
            runner.say(
                f"NOT RUN: ansible-core {pairs[0].core} needs Python {wanted}, which this machine does not have (see dev/python)"
            )
            return 0
        pairs = there[-1:]
    results = {
        pair: "-" if pythons[pair] else f"NOT RUN: this machine has no Python {pair.python} (see dev/python)" for pair in pairs
    }
    status = 0
    with runner.signals():
        try:
            for pair in pairs:
                python = pythons[pair]
                if python is not None:
                    results[pair] = try_pair(runner, pair, python, steps, arguments.pytest)
        except Interrupted:
            runner.end()
            status = 130
    runner.say(f"\nSteps: {', '.join(steps)}\n{table(results)}")
    ran = sum(result == "ok" for result in results.values())
    if status == 0 and ran == len(results):
        runner.say(f"{ran} pairs of ansible-core and Python checked")
    return status or int(ran < len(results))


if __name__ == "__main__":
    sys.exit(main())
