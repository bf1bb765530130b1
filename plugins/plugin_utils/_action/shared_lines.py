# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the workers of a run write for each other, and for the main process."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any


class SharedLines:
    """To be made in the process that starts the workers; they inherit the file."""

    def __init__(self) -> None:
        # Without a name, so nothing of it is left behind; opened for appending, so workers do not overwrite each other.
        self._file = tempfile.TemporaryFile("a+b", buffering=0)

    def add(self, *entry: Any) -> None:
        self._file.write(json.dumps(entry).encode() + b"\n")

    def read(self) -> list[list[Any]]:
        """All entries, in their order."""
        # All processes share the position in the file, so it is left alone.
        content = os.pread(self._file.fileno(), os.fstat(self._file.fileno()).st_size, 0)
        return [json.loads(line) for line in content.splitlines()]

    def close(self) -> None:
        self._file.close()
