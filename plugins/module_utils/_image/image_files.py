# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read files of an image that is not trusted: check them before they are opened, and never read without a limit.

An image may contain anything: a named pipe or a device with a library's name, links to the host's own files, a million
directories, a file with a size of an exabyte. It is mounted read-only, so that nothing changes between check and use. Files are
nevertheless opened in a way that cannot block, and checked again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, printable

# A driver has a few thousand entries and 1 GiB; an operating system in the same image, some ten thousand more.
MAX_ENTRIES = 500_000
MAX_DEPTH = 64
MAX_BYTES = 16 * 2**30

# version.info and the packages' shell variables have at most a few hundred lines.
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
    """What a file with that mode is if it is not a regular file, for messages."""
    return next((words for test, words in _KINDS if test(mode)), "of an unknown type")


def entries(top):
    """(path relative to ``top``, its lstat) of everything below the directory ``top``, sorted; links are not followed.

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
                    raise NpuError("The image has more than %d files and directories: it is not a driver image" % MAX_ENTRIES)
                inside = os.path.join(directory, entry.name)
                info = entry.stat(follow_symlinks=False)
                yield inside, info
                if stat.S_ISDIR(info.st_mode):
                    below.append(inside)
        except OSError as exc:
            raise NpuError("%s in the image cannot be read: %s" % (printable(directory or "/"), exc.strerror)) from None
        if below and directory.count("/") >= MAX_DEPTH:
            raise NpuError("The image has directories more than %d levels deep: it is not a driver image" % MAX_DEPTH)
        waiting.extend(reversed(below))


def check(tree):
    """Raise NpuError unless ``tree`` consists of directories, files, and relative links that stay inside it.

    Opens no file. Returns the total size of its files in bytes.
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
            "The files of the driver in the image have %d GiB in total; the limit is %d GiB" % (size // 2**30, MAX_BYTES // 2**30)
        )
    return size


def _check_link(top, inside):
    path = os.path.join(top, inside)
    value = os.readlink(path)
    if _goes_on_and_on(path):
        raise NpuError(
            "The link %s -> %s in the image is one of a loop, or of more than 40 in a row: build the image again"
            % (printable(inside), printable(value))
        )
    try:
        # A path that looks inside may still leave the tree through another link.
        leads_out = os.path.isabs(value) or not is_inside(top, os.path.realpath(path))
    except RecursionError:
        leads_out = True
    if leads_out:
        raise NpuError("The link %s -> %s in the image leads out of the driver tree" % (printable(inside), printable(value)))


def _goes_on_and_on(path):
    """Whether the kernel refuses to follow the link. Python before 3.13 did so, too; newer ones follow each to its end."""
    try:
        os.stat(path)
    except OSError as exc:
        return exc.errno == errno.ELOOP
    return False


def is_inside(top, path):
    """Whether ``path`` is the directory ``top`` or below it; neither may contain links."""
    return (path + "/").startswith(top.rstrip("/") + "/")


def is_file(top, path):
    """Whether ``path``, with links followed, is a regular file below ``top``."""
    try:
        real = os.path.realpath(path)
        return is_inside(os.path.realpath(top), real) and stat.S_ISREG(os.lstat(real).st_mode)
    except (OSError, RecursionError):
        return False


@contextlib.contextmanager
def opened(path):
    """The regular file ``path`` as a binary stream. Raises NpuError for anything else, links included, without opening it."""
    with _readable_errors(path):
        info = os.lstat(path)
    _check_regular(path, info)
    with _readable_errors(path):
        # If it has become a pipe since, O_NONBLOCK does not wait for its writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as stream:
        _check_regular(path, os.fstat(fd))
        yield stream


def read(path, limit):
    """The bytes of the regular file ``path``; raises NpuError if there are more than ``limit``."""
    with opened(path) as stream:
        with _readable_errors(path):
            content = stream.read(limit + 1)
    if len(content) > limit:
        raise NpuError("%s has more than %d bytes, which no such file of a driver has" % (printable(path), limit))
    return content


def head(path, size):
    """At most the first ``size`` bytes of the regular file ``path``."""
    with opened(path) as stream:
        with _readable_errors(path):
            return stream.read(size)


def read_text(path, limit=MAX_TEXT):
    """The text of the file ``path``, or None if it does not exist. Follows links, which ``check`` has checked."""
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
def _readable_errors(path):
    try:
        yield
    except OSError as exc:
        raise NpuError("%s cannot be read: %s" % (printable(path), exc.strerror), errno=exc.errno) from None
