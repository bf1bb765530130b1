# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing files that others, or the next agent, read: there completely or not at all."""

from __future__ import annotations

import json
import os
import tempfile


def write_json(path: str, value: object) -> None:
    """Replace ``path`` by ``value``, readable by all. Raises OSError. Nothing is synced: a power cut may take it back."""
    directory, name = os.path.split(path)
    fd, temporary = tempfile.mkstemp(prefix="." + name + ".", dir=directory)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as stream:
            json.dump(value, stream)
            os.fchmod(stream.fileno(), 0o644)
        os.rename(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
