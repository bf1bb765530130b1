# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a molecule scenario with each Kubernetes and containerd that the lab knows, one lab after another, and print a table."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

CHECKOUT = Path.cwd()
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "lab")]

from testrun.runner import Interrupted, Runner  # noqa: E402

from npulab import versions  # noqa: E402

Pair = tuple[str, str]
# npu-b has it in every lab.
IN_EVERY_LAB = "1.7"


def known_pairs() -> list[Pair]:
    """All of them, the newest first."""
    runtimes = [release for release in versions.known("containerd") if release != IN_EVERY_LAB]
    return [(kubernetes, containerd) for kubernetes in versions.known("kubernetes") for containerd in runtimes]


def others() -> list[Pair]:
    """Each release that the two labs of `make test-all` do not have once: those are the default ones and the oldest ones."""
    left = []
    for project, column in zip(("kubernetes", "containerd"), zip(*known_pairs())):
        releases = list(dict.fromkeys(column))
        left.append([release for release in releases[:-1] if release != versions.default(project)])
    kubernetes, containerd = left
    most = max(len(kubernetes), len(containerd))
    return list(zip(_filled(kubernetes, most, "kubernetes"), _filled(containerd, most, "containerd")))


def _filled(releases: list[str], most: int, project: str) -> list[str]:
    return [*releases, *[versions.default(project)] * (most - len(releases))]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dev/matrix",
        description=__doc__,
        epilog=f"The node npu-b has containerd {IN_EVERY_LAB} in every lab. NPU_LAB chooses the number of the labs; no lab of that "
        "number may be running. A Kubernetes that is not in the cache is compiled first, which takes minutes.",
    )
    parser.add_argument("scenarios", nargs="*", default=["default"], metavar="SCENARIO", help="of molecule; 'default' by default")
    parser.add_argument("--pair", action="append", metavar="KUBERNETES:CONTAINERD", help="only this pair, such as 1.37:2.3")
    parser.add_argument("--list", action="store_true", help="print the pairs that `make test-all` tries, and leave")
    return parser.parse_args()


def chosen_pairs(texts: list[str] | None) -> list[Pair]:
    if not texts:
        return known_pairs()
    pairs = []
    for text in texts:
        kubernetes, _, containerd = text.partition(":")
        if kubernetes not in versions.known("kubernetes") or containerd not in versions.known("containerd"):
            raise SystemExit(f"--pair {text}: the lab knows {', '.join(':'.join(pair) for pair in known_pairs())}")
        pairs.append((kubernetes, containerd))
    return pairs


def try_pair(runner: Runner, pair: Pair, scenarios: list[str]) -> str:
    """One lab, and what came of it: ok, or the step that failed."""
    kubernetes, containerd = pair
    name = f"{kubernetes}-{containerd}"
    env = {**os.environ, "NPU_LAB_KUBERNETES": kubernetes, "NPU_LAB_CONTAINERD": containerd}
    result = "ok"
    try:
        if not runner.alone(f"lab-{name}", ["lab/lab", "up"], env):
            result = "lab"
        elif not runner.alone(f"molecule-{name}", ["dev/molecule", *scenarios], env):
            result = "FAIL"
    except Interrupted:
        runner.end()  # from now on, no signal interrupts what cleans up
        raise
    finally:
        if not runner.alone(f"lab-down-{name}", ["lab/lab", "down"], env):
            result = "down"
    return result


def table(results: dict[Pair, str]) -> str:
    runtimes = list(dict.fromkeys(containerd for _kubernetes, containerd in results))
    lines = [f"{'KUBERNETES':<12}" + "".join(f"{'containerd ' + runtime:<16}" for runtime in runtimes)]
    for kubernetes in dict.fromkeys(kubernetes for kubernetes, _containerd in results):
        lines.append(f"{kubernetes:<12}" + "".join(f"{results.get((kubernetes, runtime), '-'):<16}" for runtime in runtimes))
    return "\n".join(line.rstrip() for line in lines)


def main() -> int:
    arguments = parse()
    if arguments.list:
        print("\n".join(":".join(pair) for pair in others()))
        return 0
    pairs = chosen_pairs(arguments.pair)
    state = Path(os.environ["NPU_LAB_STATE"])
    if state.exists():
        raise SystemExit(f"{state} holds a lab: remove it first (make lab-down), or choose another number (NPU_LAB=7 make matrix)")
    runner = Runner(CHECKOUT)
    results: dict[Pair, str] = {}
    status = 0
    with runner.signals():
        try:
            for pair in pairs:
                results[pair] = "-"
                results[pair] = try_pair(runner, pair, arguments.scenarios)
        except Interrupted:
            status = 130
    runner.say(f"\n{table(results)}")
    return status or int(any(result != "ok" for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
