# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of files and links that are there completely or not at all, also after a power cut.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time

from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError


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


def write_atomic(path, content, mode=0o644, like=None):
    """Replace the file ``path`` by ``content`` (str or bytes): written beside it, fsynced, renamed.

    ``like``: a file whose mode, owner and SELinux label the new one gets, if it is there.

    The temporary name starts with a dot and lies in the same directory, so that readers which
    watch the directory (containerd watches /etc/cdi) see one rename inside it.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    directory = os.path.dirname(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(prefix="." + os.path.basename(path) + ".", dir=directory)
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
    fsync_directory(directory)


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
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise NpuError(
                        "Another run is %s on this host (it holds %s); wait for it, then repeat" % (what, path)
                    ) from None
                time.sleep(0.1)
        yield
    finally:
        os.close(fd)
