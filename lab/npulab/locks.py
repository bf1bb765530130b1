# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only one lab of this machine does at a time: labs that start together would compile the same twice, or break apt."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .tasks import Step

_LONGEST = 3600.0  # seconds; the largest thing to compile takes 10 minutes on an idle machine


@contextlib.contextmanager
def alone(path: Path, step: Step, what: str) -> Iterator[None]:
    """Hold the lock file `path`; wait for another process that holds it. The lock ends with the process, the file remains.

    :param what: what the other process does, for the progress lines
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        if not _taken(file):
            step.wait_for(f"another process that {what}", lambda: _taken(file), _LONGEST)
        yield


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
