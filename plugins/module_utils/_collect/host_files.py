# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the host for a bundle. Their directories may belong to users, who can replace what is in them at any time.

So only regular files with one name are read, no link is followed on the way to them, and nothing that blocks is opened. What is
mounted below a directory is not a part of it, for example the image that a driver is being staged from.
"""

from __future__ import annotations

import contextlib
import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._collect.bounded_output import whole_lines

_MOST_ENTRIES = 20000
_DEEPEST = 8
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Unreadable(Exception):
    """Why a file is not in the bundle."""


class _OtherMount(Exception):
    def __init__(self):
        super().__init__("something else is mounted there")


class Found:
    """A file: its path ``parts`` below a directory, ``mtime`` and ``size``."""

    def __init__(self, parts, mtime, size):
        self.parts = parts
        self.mtime = mtime
        self.size = size


def search(top, has_time, skip=()):
    """(the regular files below the directory ``top``, what else is there and is not read, as (path, why)).

    Nothing more is searched once ``has_time()`` is false. Sockets, which have nothing to read, and what is in the directories
    ``skip`` of ``top`` is in neither.
    """
    found, others = [], []
    seen, full = 0, None
    waiting: list[tuple[str, ...]] = [()]
    while waiting and not full:
        parts = waiting.pop()
        path = os.path.join(top, *parts)
        directories, files = [], []
        try:
            with contextlib.closing(_entries(top, parts)) as entries:
                for name, info in entries:
                    seen += 1
                    full = _full(seen, has_time)
                    if full:
                        break
                    if info is not None:
                        (directories if stat.S_ISDIR(info.st_mode) else files).append((name, info))
        except _OtherMount as exc:
            others.append((path, str(exc)))
        except FileNotFoundError:
            pass  # removed meanwhile
        except OSError as exc:
            others.append((path, "it cannot be read: %s" % exc.strerror))
        for name, info in sorted(files):
            if stat.S_ISSOCK(info.st_mode):
                continue
            problem = _unfit(info)
            if problem:
                others.append((os.path.join(path, name), problem))
            else:
                found.append(Found(parts + (name,), info.st_mtime, info.st_size))
        if len(parts) >= _DEEPEST and directories:
            others.append((path, "its directories are not searched: they are nested too deeply"))
        else:
            waiting += [parts + (name,) for name, _info in sorted(directories, reverse=True) if parts or name not in skip]
    if full:
        others.append((top, full))
    return found, others


def _full(seen, has_time):
    """Why no more than these entries are searched; None if more are."""
    if seen > _MOST_ENTRIES:
        return "it has more than %d files and directories: the others are left out" % _MOST_ENTRIES
    return None if has_time() else "the time limit was reached while it was searched: the others are left out"


def _entries(top, parts):
    """(name, what stat says of it, None if it is removed meanwhile) of each entry of a directory. Raises OSError.

    One by one, because a directory may have millions of them.
    """
    descriptor = _directory(top, parts)
    try:
        with os.scandir(descriptor) as listed:
            for entry in listed:
                try:
                    info = os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)
                except OSError:
                    info = None
                yield entry.name, info
    finally:
        os.close(descriptor)


def read_tail(top, parts, most):
    """(text, cut) of the last ``most`` bytes of the file ``parts`` below ``top``. Raises Unreadable."""
    return _read(top, parts, most, whole=False)


def read_whole(top, parts, most):
    """The text of the file. Raises Unreadable for one of more than ``most`` bytes: a part may not show that a value is a secret."""
    return _read(top, parts, most, whole=True)[0]


def _read(top, parts, most, whole):
    try:
        directory = _directory(top, parts[:-1])
        try:
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
    except _OtherMount as exc:
        raise Unreadable(str(exc)) from None
    except OSError as exc:
        raise Unreadable("it cannot be read: %s" % exc.strerror) from None
    if b"\0" in data:
        raise Unreadable("it is not text, so secrets in it cannot be found. If the support asks for it, copy it from the host")
    return whole_lines(data, start > 0), start > 0


def _directory(top, parts):
    """A descriptor of the directory ``parts`` below ``top``. Raises OSError, also for a link on the way, and _OtherMount."""
    directory = os.open(top, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        mount = _mount(directory)
        for part in parts:
            inner = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
            if _mount(directory) != mount:
                raise _OtherMount
    except BaseException:
        os.close(directory)
        raise
    return directory


def _mount(descriptor):
    """What differs between mounts. Only the kernel's number does if a directory is mounted at another one of its file system."""
    with open("/proc/self/fdinfo/%d" % descriptor, encoding="ascii") as stream:
        number = [line for line in stream if line.startswith("mnt_id:")]
    return os.fstat(descriptor).st_dev, number


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
