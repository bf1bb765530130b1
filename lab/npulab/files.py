# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small file helpers of the lab."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file beside its place and rename it. Parents are made; `mode` holds from the first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def digest(*parts: bytes | str | Path) -> str:
    """Twelve hex digits that change when a part does; a Path stands for its content (a directory: all its files)."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            files = [part]
            if part.is_dir():
                files = sorted(
                    path for path in part.rglob("*") if (path.is_file() or path.is_symlink()) and "__pycache__" not in path.parts
                )
            for file in files:
                content = os.readlink(file).encode() if file.is_symlink() else file.read_bytes()
                total.update(f"{file.relative_to(part)}\0{os.lstat(file).st_mode:o}\0{len(content)}\0".encode())
                total.update(content)
        else:
            data = part.encode() if isinstance(part, str) else part
            total.update(f"{len(data)}\0".encode() + data)
    return total.hexdigest()[:12]


@contextlib.contextmanager
def new_directory(final: Path) -> Iterator[Path]:
    """A temporary directory that becomes `final` if the block succeeds and disappears if it does not.

    So a directory in the cache is complete, however its making ended. If someone else was faster, his is kept.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    for left in final.parent.glob(f".{final.name}.*"):  # of a run that was killed
        if not _in_use(left):
            shutil.rmtree(left, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}.{os.getpid()}."))
    try:
        temporary.chmod(0o755)
        yield temporary
        try:
            temporary.rename(final)
        except OSError:
            if not final.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _in_use(temporary: Path) -> bool:
    return Path("/proc", temporary.name.split(".")[-2]).exists()
