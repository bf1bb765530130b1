# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people see of a step: one line when it ends, one every half minute until then, and why it failed."""

from __future__ import annotations

import re
from pathlib import Path

# What a test runner or one of the scripts in dev/ says last of all.
SUMMARY = re.compile(r"(=+ )?\d+ (passed|failed)|\d+ .*(checked|ran|valid)|Passed: |NOT RUN: ")
FAILED = re.compile(r"(FAILED|ERROR|\[ERROR\]:) ")
FATAL = re.compile(r"fatal: ")  # of a host; what Ansible says of it follows, indented
MOST_NAMED = 30  # lines that name failures
LAST_BYTES = 4096  # of a log, enough for its last line


def line(mark: str, name: str, seconds: float, text: str) -> str:
    return f"  {mark:<4}  {name:<18} {seconds:4.0f} s  {text}".rstrip()


def last_line(log: Path) -> str:
    """The last line that a program has written so far."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LAST_BYTES))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
    return lines[-1][:90] if lines else ""


def summary(log: Path) -> str:
    """The one line of a log that is worth repeating: a test runner's own summary, if there is one."""
    found = [text for text in _lines(log) if SUMMARY.match(text)]
    return found[-1].replace("=", "").strip() if found else ""


def failures(log: Path) -> list[str]:
    """The failed tests that a log names, and what Ansible says of a failed host. Both stand before what a program says last."""
    found = []
    of_a_host = False
    for text in _lines(log):
        of_a_host = FATAL.match(text) is not None or (of_a_host and text.startswith(" "))
        if of_a_host or FAILED.match(text):
            found.append(text[:300])
    return found[:MOST_NAMED]


def explanation(named: list[str], log: Path, tail: int) -> list[str]:
    """The failures that a log names, from `failures`, and its end."""
    return quoted(named + _lines(log)[-tail:])


def again(failed: dict[str, list[str]]) -> list[str]:
    """The steps that failed and the failures that they name, for the end of the run: of a long output, that is what people see."""
    return [line for name, named in failed.items() for line in (f"Failed: {name}", *quoted(named))]


def quoted(lines: list[str]) -> list[str]:
    return [f"        | {text}" for text in lines]


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()
