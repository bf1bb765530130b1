# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a TOML file of a container runtime, whatever the path names."""

from __future__ import annotations

import os
import stat

# Limits; real configurations of containerd are much smaller.
_MAX_BYTES = 4 << 20


def read(path):
    """The text of ``path`` with its line endings; None if there is no such file. OSError and ValueError name the file."""
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ValueError("%s, line %d: not UTF-8, which TOML requires" % (path, line)) from None


def read_bytes(path):
    # Reading a pipe or a device might block or never end.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("%s is not a regular file" % path)
        data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError("%s is larger than %d MiB" % (path, _MAX_BYTES >> 20))
    return data
