# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an image: looked at before they are opened, and never read without a limit.

An image may hold whatever its maker likes: a named pipe or a device under a library's name, links to the host's own files, a
million directories, a file that says it has an exabyte. An image is mounted read-only, so what was looked at stays what it is;
a file is opened so that it cannot hang, and looked at once more, all the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

# A driver has a few thousand entries and 1 GiB; a whole operating system around it some ten thousand more.
MAX_ENTRIES = 500_000
MAX_DEPTH = 64
MAX_BYTES = 16 * 2**30

# version.info and the packages' shell variables have a few hundred lines at most.
MAX_TEXT = 2**20

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a directory"),
)


def kind(mode):
    """What a file of that mode is, if it is no regular one, for messages."""
    return next((words for test, words in _KINDS if test(mode)), "of an unknown type")


def entries(top):
    """(path inside of ``top``, its lstat) of all that is below the directory ``top``, sorted; links are not followed.

    Raises NpuError beyond MAX_ENTRIES and MAX_DEPTH.
    """
    count = 0
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(os.path.join(top, directory)) as found:
                here = sorted(found, key=lambda entry: entry.name)
            below = []
            for entry in here:
                count += 1
                if count > MAX_ENTRIES:
                    raise NpuError("The image has more than %d files and directories: it is no driver image" % MAX_ENTRIES)
                inside = os.path.join(directory, entry.name)
                info = entry.stat(follow_symlinks=False)
                yield inside, info
                if stat.S_ISDIR(info.st_mode):
                    below.append(inside)
        except OSError as exc:
            raise NpuError("%s in the image cannot be read: %s" % (printable(directory or "/"), exc.strerror)) from None
        if below and directory.count("/") >= MAX_DEPTH:
            raise NpuError("The image has directories more than %d deep: it is no driver image" % MAX_DEPTH)
        waiting.extend(reversed(below))


def check(tree):
    """Raise NpuError unless ``tree`` has nothing but directories, files, and relative links that end inside of it.

    Opens nothing. Returns the bytes its files have together.
    """
    real = os.path.realpath(tree)
    size = 0
    for inside, info in entries(real):
        if stat.S_ISLNK(info.st_mode):
            _check_link(real, inside)
        elif stat.S_ISREG(info.st_mode):
            size += info.st_size
        elif not stat.S_ISDIR(info.st_mode):
            raise NpuError(
                "%s in the image is %s. A driver consists of files, directories and links: build the image again"
                % (printable(inside), kind(info.st_mode))
            )
    if size > MAX_BYTES:
        raise NpuError(
            "The files of the driver in the image have %d GiB together; no driver has more than %d GiB"
            % (size // 2**30, MAX_BYTES // 2**30)
        )
    return size


def _check_link(top, inside):
    path = os.path.join(top, inside)
    value = os.readlink(path)
    try:
        # What looks like inside may still leave through another link.
        leads_out = os.path.isabs(value) or not is_inside(top, os.path.realpath(path))
    except RecursionError:
        leads_out = True
    if leads_out:
        raise NpuError("The link %s -> %s in the image leads out of the driver tree" % (printable(inside), printable(value)))


def is_inside(top, path):
    """Whether ``path`` is the directory ``top`` or below it; both without links."""
    return (path + "/").startswith(top.rstrip("/") + "/")


def is_file(top, path):
    """Whether ``path`` is a regular file, and, links followed, one below ``top``."""
    try:
        real = os.path.realpath(path)
        return is_inside(os.path.realpath(top), real) and stat.S_ISREG(os.lstat(real).st_mode)
    except (OSError, RecursionError):
        return False


@contextlib.contextmanager
def opened(path):
    """The regular file ``path``, no link, as a binary stream. Raises NpuError for anything else, which is not opened."""
    with _said(path):
        info = os.lstat(path)
    _check_regular(path, info)
    with _said(path):
        # Should it have become something else since: O_NONBLOCK waits for no writer of a pipe.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as stream:
        _check_regular(path, os.fstat(fd))
        yield stream


def read(path, limit):
    """The bytes of the regular file ``path``; raises NpuError when there are more than ``limit``."""
    with opened(path) as stream:
        with _said(path):
            content = stream.read(limit + 1)
    if len(content) > limit:
        raise NpuError("%s has more than %d bytes; no driver has such a file" % (printable(path), limit))
    return content


def head(path, size):
    """The first ``size`` bytes of the regular file ``path``, or all of a shorter one."""
    with opened(path) as stream:
        with _said(path):
            return stream.read(size)


def read_text(path, limit=MAX_TEXT):
    """The text of the file ``path`` (links are followed; whoever reads an image has checked them), or None without one."""
    try:
        return read(os.path.realpath(path), limit).decode("utf-8", "replace").replace("\r\n", "\n")
    except NpuError as exc:
        if exc.details.get("errno") in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def _check_regular(path, info):
    if not stat.S_ISREG(info.st_mode):
        raise NpuError("%s is %s, not a regular file" % (printable(path), kind(info.st_mode)))


@contextlib.contextmanager
def _said(path):
    try:
        yield
    except OSError as exc:
        raise NpuError("%s cannot be read: %s" % (printable(path), exc.strerror), errno=exc.errno) from None
