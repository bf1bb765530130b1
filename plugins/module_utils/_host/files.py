# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic and durable changes of files and links: even after a power failure, a change is complete or absent."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import tempfile
import time

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError


def make_directory(path):
    """Create the directory ``path`` and its parents with mode 0755, regardless of the umask. Existing ones are not changed."""
    previous = os.umask(0o022)
    try:
        os.makedirs(path, exist_ok=True)
    finally:
        os.umask(previous)


def fsync_directory(path):
    """Make renames and new names in the directory ``path`` durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_file(path):
    """Remove the file or link ``path`` durably. One that is not there is no error: a killed run, or another one, has removed it."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    fsync_directory(os.path.dirname(os.path.abspath(path)))


def write_atomic(path, content, mode=0o644, like=None, directory=None):
    """Replace the file ``path`` with ``content`` (str or bytes): write a temporary file, fsync, rename.

    ``like``: a file from which the new one gets mode, owner and SELinux label, if it exists. ``directory``: where to write the
    temporary file, on the same file system; by default beside ``path``.

    The name of the temporary file starts with a dot, and it is in the same directory, so that programs that watch the directory
    (containerd watches /etc/cdi) see a single rename.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    place = os.path.dirname(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(prefix="." + os.path.basename(path) + ".", dir=directory or place)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            if like is not None and os.path.exists(like):
                _copy_attributes(like, stream.fileno())
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    fsync_directory(place)


def _copy_attributes(path, fd):
    info = os.stat(path)
    os.fchown(fd, info.st_uid, info.st_gid)
    os.fchmod(fd, info.st_mode & 0o7777)
    try:
        os.setxattr(fd, "security.selinux", os.getxattr(path, "security.selinux"))
    except OSError:
        pass  # no SELinux here


def link_atomic(target, path):
    """Make ``path`` a symbolic link to ``target`` with one rename. An empty directory at ``path`` is removed first.

    containerd creates such an empty directory for a hostPath or mount whose source does not exist. It is removed with rmdir, so
    that data is never lost.
    """
    directory = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    temporary = os.path.join(directory, ".%s.%d" % (os.path.basename(path), os.getpid()))
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(target, temporary)
    os.rename(temporary, path)
    fsync_directory(directory)


def read_link(path):
    """The target of the symbolic link ``path``, or None if there is no such link."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def read_untrusted(path, most):
    """Up to ``most`` bytes of a file in a directory to which pods can write; None if there is none. Raises OSError.

    No link is followed, and a pipe is not waited for.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as stream:
        return stream.read(most) or b""


def read_text(path, default=None):
    """The text of ``path``, or ``default`` if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return default


def read_object(path):
    """The JSON object in ``path``; None if it cannot be read, or is another document."""
    try:
        found = json.loads(read_text(path) or "")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@contextlib.contextmanager
def exclusive(path, timeout, what):
    """Hold the lock file ``path``. The kernel releases the lock if this process is killed.

    Waits at most ``timeout`` seconds for another holder, then raises NpuError with ``busy``. ``what``: what the other holder does,
    for the message.
    """

    def refuse(late):
        if late:
            raise NpuError(
                "Another run is %s on this host (it holds %s). Wait until it ends, then run again" % (what, path), busy=True
            )

    fd = wait_for_lock(path, timeout, refuse)
    try:
        yield
    finally:
        os.close(fd)


def wait_for_lock(path, seconds, refuse):
    """The descriptor of ``take_lock``, when it is free.

    As long as another process holds the lock, ``refuse(late)`` is called. It may raise what there is to say, and must when it is
    ``late``: the ``seconds`` are over.
    """
    deadline = time.monotonic() + seconds
    while True:
        fd = take_lock(path)
        if fd is not None:
            return fd
        refuse(time.monotonic() >= deadline)
        time.sleep(0.1)


def take_lock(path):
    """A descriptor that holds the lock file ``path`` while it or a copy of it is open; None if another process holds the lock.

    A user who may open a file, even only for reading, can hold its lock forever. So only this user may open the file, and a file
    that others may open, or that is not a regular file, is replaced. Raises NoVerdict if others may write the directory, and
    OSError.
    """
    _check_directory(os.path.dirname(os.path.abspath(path)))
    while True:
        fd = _open_lock(path)
        try:
            if not _is_ours(fd):
                _remove_if_same(path, fd)
                continue
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have replaced the file in the meantime. Then the new one counts.
            if _is_same(path, fd):
                held, fd = fd, None
                return held
        except BlockingIOError:
            return None
        finally:
            if fd is not None:
                os.close(fd)


def _check_directory(directory):
    info = os.stat(directory)
    if info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022:
        raise NoVerdict(
            "Users other than root can change the directory %s (owner ID %d, mode %04o), so a lock in it is not safe. Run chown "
            "root %s and chmod go-w %s, then run again" % (directory, info.st_uid, info.st_mode & 0o7777, directory, directory)
        )


def _open_lock(path):
    """Open or create the file ``path``. Removes a link first, and does not block on a pipe."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        except OSError as exc:
            if exc.errno != errno.ELOOP or not os.path.islink(path):
                raise
            os.unlink(path)


def _is_ours(fd):
    info = os.fstat(fd)
    return stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & 0o077 and info.st_nlink < 2


def _is_same(path, fd):
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _remove_if_same(path, fd):
    """Remove ``path``, unless it is no longer the file ``fd``."""
    if _is_same(path, fd):
        os.unlink(path)
