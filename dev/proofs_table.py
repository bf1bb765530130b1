# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints CONTRIBUTING.md with its table of proofs: which suite runs the tests that docs/features.md and docs/security.md name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(CHECKOUT / "dev"), str(CHECKOUT / "lab")]

from testrun import plan  # noqa: E402

GUIDE = CHECKOUT / "CONTRIBUTING.md"
BEGIN = "<!-- made of docs/features.md and docs/security.md by `make proofs` -->\n"
END = "<!-- end -->\n"
PROOF = re.compile(r"`([a-z/_0-9-]+\.py)::(test_\w+)`")
TEST, ALL = "`make test`", "`make test-all`"


def promises() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return each promise and the tests that prove it, as (file, name)."""
    features = (CHECKOUT / "docs" / "features.md").read_text(encoding="utf-8")
    rows = [line for line in features.splitlines() if line.startswith("| ") and "::" in line]
    found = [(line.split("|")[1].strip(), PROOF.findall(line)) for line in rows]
    for part in (CHECKOUT / "docs" / "security.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        if proofs := PROOF.findall(part):
            found.append((f"security: {part.splitlines()[0][0].lower()}{part.splitlines()[0][1:]}", proofs))
    return found


def core() -> set[tuple[str, str]]:
    """Return the tests on labs that are marked `core`."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-m", "core", "tests/lab"]
    listed = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {(file, name) for file, name in re.findall(r"^(tests/lab/\S+\.py)::(test_\w+)", listed, re.MULTILINE)}


def suite(proofs: list[tuple[str, str]], marked: set[tuple[str, str]], scenarios: dict[str, set[str]]) -> str:
    """Return where the tests run: in the short suite, in the long one only, or some of them in each."""
    short = [
        not file.startswith("tests/lab/") or (file, name) in marked or bool(scenarios.get(file, set()) & {*plan.CORE_SCENARIOS})
        for file, name in proofs
    ]
    return TEST if all(short) else f"{TEST}; more of it {ALL}" if any(short) else ALL


def table() -> str:
    marked, scenarios = core(), plan.of_scenarios(CHECKOUT)
    lines = ["| promise | its proof runs in |", "| --- | --- |"]
    lines += [f"| {promise} | {suite(proofs, marked, scenarios)} |" for promise, proofs in promises()]
    return "".join(f"{line}\n" for line in lines)


def page(guide: str) -> str:
    before, begin, rest = guide.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"CONTRIBUTING.md has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{table()}\n{end}{after}"


if __name__ == "__main__":
    print(page(GUIDE.read_text(encoding="utf-8")), end="")
