# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of files and links that are there completely or not at all, also after a power cut."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
import time

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError


def make_directory(path):
    """Make the directory ``path``, and those above it, readable by all whatever the umask. One that is there is left as it is."""
    if os.path.isdir(path):
        return
    previous = os.umask(0o022)
    try:
        os.makedirs(path)
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
    """Remove the file or link ``path`` for good."""
    os.unlink(path)
    fsync_directory(os.path.dirname(os.path.abspath(path)))


def write_atomic(path, content, mode=0o644, like=None, directory=None):
    """Replace the file ``path`` by ``content`` (str or bytes): written beside it, fsynced, renamed.

    ``like``: a file whose mode, owner and SELinux label the new one gets, if it is there. ``directory``: where it is written,
    on the same file system, when not beside ``path``.

    The temporary name starts with a dot and lies in the same directory, so that readers which
    watch the directory (containerd watches /etc/cdi) see one rename inside it.
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
    """Make ``path`` a symbolic link to ``target`` with one rename; an empty directory in its place is removed first.

    containerd creates such an empty directory for a hostPath or mount whose source does not exist yet;
    it is removed with rmdir only, so that nothing that holds data is ever lost.
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
    """The target of the symbolic link ``path``, or None when there is no such link."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def read_text(path, default=None):
    """The text of ``path``, or ``default`` when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return default


@contextlib.contextmanager
def exclusive(path, timeout, what):
    """Hold the lock file ``path``; the kernel releases it should we be killed.

    Waits at most ``timeout`` seconds for another holder, then raises NpuError. ``what``: what the other one does.
    """
    deadline = time.monotonic() + timeout
    while True:
        fd = take_lock(path)
        if fd is not None:
            break
        if time.monotonic() >= deadline:
            raise NpuError("Another run is %s on this host (it holds %s); wait for it, then run again" % (what, path))
        time.sleep(0.1)
    try:
        yield
    finally:
        os.close(fd)


def take_lock(path):
    """A descriptor that holds the lock file ``path`` as long as it, or a copy of it, is open; None when another holds it.

    Whoever may open a file, were it only for reading, can hold its lock for ever: the file is ours alone, and one that others may
    open, or that is none, makes way for a new one. NoVerdict where the directory is not ours; OSError.
    """
    _check_directory(os.path.dirname(os.path.abspath(path)))
    while True:
        fd = _open_lock(path)
        try:
            if not _is_ours(fd):
                _make_way(path, fd)
                continue
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have made way for a new one meanwhile: then that one counts.
            if _names(path, fd):
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
            "The directory %s can be changed by others than root (its owner has the user ID %d, its mode is %04o), and a lock "
            "in it keeps nobody out: chown root and chmod go-w it, then run again" % (directory, info.st_uid, info.st_mode & 0o7777)
        )


def _open_lock(path):
    """What ``path`` names, made if there is nothing; a link is removed first. Never waits for the other end of a pipe."""
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


def _names(path, fd):
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _make_way(path, fd):
    """Remove the name of the file ``fd``, unless it is that of another one by now."""
    if _names(path, fd):
        os.unlink(path)
