# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the host for a bundle. Their directories may belong to users, who can replace what is in them at any time.

So only regular files with one name are read, no link is followed on the way to them, and nothing that blocks is opened.
"""

from __future__ import annotations

import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._collect.bounded_output import whole_lines

_MOST_ENTRIES = 20000
_DEEPEST = 8
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Unreadable(Exception):
    """Why a file is not in the bundle."""


class Found:
    """A file: its path ``parts`` below a directory, ``mtime`` and ``size``."""

    def __init__(self, parts, mtime, size):
        self.parts = parts
        self.mtime = mtime
        self.size = size


def search(top):
    """(the regular files below the directory ``top``, what else is there and is not read, as (path, why))."""
    found, others = [], []
    entries = 0
    for path, directories, names, descriptor in os.fwalk(top, follow_symlinks=False):
        below = os.path.relpath(path, top)
        parts = () if below == "." else tuple(below.split(os.sep))
        directories.sort()
        if len(parts) >= _DEEPEST and directories:
            others.append((path, "its directories are not searched: they are nested too deeply"))
            del directories[:]
        for name in sorted(names):
            entries += 1
            if entries > _MOST_ENTRIES:
                others.append((top, "it has more than %d files: the others are left out" % _MOST_ENTRIES))
                return found, others
            try:
                info = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue  # removed meanwhile
            problem = _unfit(info)
            if problem:
                others.append((os.path.join(path, name), problem))
            else:
                found.append(Found(parts + (name,), info.st_mtime, info.st_size))
    return found, others


def read_tail(top, parts, most):
    """(text, cut) of the last ``most`` bytes of the file ``parts`` below ``top``. Raises Unreadable."""
    return _read(top, parts, most, whole=False)


def read_whole(top, parts, most):
    """The text of the file. Raises Unreadable for one of more than ``most`` bytes: a part may not show that a value is a secret."""
    return _read(top, parts, most, whole=True)[0]


def _read(top, parts, most, whole):
    try:
        directory = os.open(top, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = inner
            # The open of a device could already do something.
            _check(os.stat(parts[-1], dir_fd=directory, follow_symlinks=False))
            descriptor = os.open(parts[-1], _FLAGS, dir_fd=directory)
        finally:
            os.close(directory)
        with open(descriptor, "rb") as stream:
            info = os.fstat(descriptor)
            _check(info)
            if whole and info.st_size > most:
                raise Unreadable("it has %d bytes, more than %d" % (info.st_size, most))
            start = max(0, info.st_size - most)
            stream.seek(start)
            data = stream.read(most)
    except OSError as exc:
        raise Unreadable("it cannot be read: %s" % exc.strerror) from None
    if b"\0" in data:
        raise Unreadable("it is not text, so secrets in it cannot be found. If the support asks for it, copy it from the host")
    return whole_lines(data, start > 0), start > 0


def _check(info):
    problem = _unfit(info)
    if problem:
        raise Unreadable(problem)


def _unfit(info):
    if not stat.S_ISREG(info.st_mode):
        return "it is not a regular file"
    if info.st_nlink != 1:
        return "it has several names (hard links), so it may be a file of another directory"
    return None
