# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files for other programs and for the next agent atomically."""

from __future__ import annotations

import json
import os
import tempfile


def write_json(path: str, value: object) -> None:
    """Replace ``path`` with ``value``, readable by all. Raises OSError. Does not sync, so a power failure may undo it."""
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
