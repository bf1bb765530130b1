# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people see of a step: one line when it ends, one every half minute until then, and why it failed."""

from __future__ import annotations

import re
from pathlib import Path

# What a test runner or one of the scripts in dev/ says last of all.
SUMMARY = re.compile(r"(=+ )?\d+ (passed|failed)|\d+ .*(checked|ran|valid)|Passed: |NOT RUN: ")
FAILED = re.compile(r"(FAILED|ERROR) ")
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


def explanation(log: Path, tail: int) -> list[str]:
    """The failed tests that a log names, and its end. A test runner names them before what it says last."""
    lines = _lines(log)
    return [f"        | {text}" for text in [text[:300] for text in lines if FAILED.match(text)] + lines[-tail:]]


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()
