# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every part of the build needs: running programs, and not doing again what was done."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]


class BuildError(Exception):
    """A program failed or is missing; the message is for people."""


def run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a program and return its stdout; BuildError with its output when it fails."""
    words = [str(word) for word in command]
    try:
        result = subprocess.run(
            words,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise BuildError(f"{words[0]} is not there: install it") from None
    if result.returncode != 0:
        raise BuildError(
            f"{' '.join(words[:6])} failed with status {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-4000:]}"
        )
    return result.stdout


def digest(*parts: str | Path) -> str:
    """Hex digest that changes when a text, or a file (or anything in a directory) that a Path names, changes."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            total.update(part.encode() + b"\0")
            continue
        for path in sorted(part.rglob("*")) if part.is_dir() else [part]:
            if path.is_symlink():
                total.update(f"{path.relative_to(part)}@{os.readlink(path)}\0".encode())
            elif path.is_file():
                total.update(f"{path.relative_to(part)}:{path.stat().st_mode:o}\0".encode() + path.read_bytes())
    return total.hexdigest()


def unless_made(target: Path, key: str, make: Callable[[Path], None]) -> None:
    """Make `target` (a file or a directory) beside its place, unless it was made with the same key."""
    stamp = target.with_name(f".{target.name}.key")
    if target.exists() and stamp.exists() and stamp.read_text(encoding="ascii") == key:
        return
    stamp.unlink(missing_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    for path in (fresh, target):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    make(fresh)
    fresh.rename(target)
    stamp.write_text(key, encoding="ascii")
