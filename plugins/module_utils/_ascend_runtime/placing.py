# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put the files of an Ascend Docker Runtime in place, exchange them for those of another version, and remove them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import shutil
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import installation
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import package as runtime_package
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import fsync_directory, remove_file, write_atomic
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import ascend_docker_runtime

_INFO = "ascend_docker_runtime_install.info"
_WORK = ".npuops-runtime-"
_LARGEST = 1 << 20
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextlib.contextmanager
def workspace(fs=""):
    """A new directory on the file system of the installation. Removes those of runs that were killed."""
    parent = fs + installation.PARENT
    os.makedirs(parent, 0o755, exist_ok=True)
    for name in os.listdir(parent):
        if name.startswith(_WORK):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    place = tempfile.mkdtemp(prefix=_WORK, dir=parent)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def prepare(unpacked, digest, place, before=None, fs=""):
    """Make a complete installation of ``unpacked`` (an Unpacked) in the directory ``place`` (new); returns its Installed.

    ``digest``: of the package; ``before``: the Installed whose place it is to take, or None.
    """
    os.mkdir(place)
    os.chmod(place, 0o750)
    for name in runtime_package.PROGRAMS:
        os.rename(unpacked.path(name), os.path.join(place, name))
        _finish(os.path.join(place, name), 0o550)
    _make_log_directory(fs)
    info = "version=v%s\narch=%s\nos=linux\npath=%s\ninstall-scene=containerd\n"
    info %= (unpacked.version, os.uname().machine, installation.HOME)
    write_atomic(os.path.join(place, _INFO), info, 0o640)
    listed = hashlib.sha256(unpacked.base_list).hexdigest()
    record = {
        "version": unpacked.version,
        "package": unpacked.name,
        "digest": digest,
        "files": {name: installation.digest_of(os.path.join(place, name)) for name in runtime_package.PROGRAMS},
        "lists": [listed] + [one for one in (before.lists if before else []) if one != listed][:9],
    }
    write_atomic(os.path.join(place, installation.RECORD), json.dumps(record, indent=2, sort_keys=True) + "\n", 0o640)
    fsync_directory(place)
    return installation.Installed(record)


def write_base_list(content, before, fs=""):
    """Write base.list, unless the existing one is not what ``before`` (Installed or None) recorded.

    Returns whether its content is now ``content``. Without an installation, the owner of another list is unknown, so it is kept.
    """
    path = fs + installation.BASE_LIST
    found = installation.digest_of(path)
    if found == hashlib.sha256(content).hexdigest():
        return True
    if found is not None and (before is None or found not in before.lists):
        return False
    os.makedirs(os.path.dirname(path), 0o750, exist_ok=True)
    write_atomic(path, content, 0o440)
    return True


def read_base_list(fs=""):
    """Its content, or None, for ``restore_base_list``."""
    try:
        with open(fs + installation.BASE_LIST, "rb") as stream:
            return stream.read(_LARGEST)
    except OSError:
        return None


def restore_base_list(content, fs=""):
    """Put back what ``read_base_list`` has found."""
    if content is not None:
        write_atomic(fs + installation.BASE_LIST, content, 0o440)
    elif os.path.lexists(fs + installation.BASE_LIST):
        _remove_base_list(fs)


def _remove_base_list(fs):
    path = fs + installation.BASE_LIST
    remove_file(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))


def _make_log_directory(fs):
    """The runtime writes there, and starts no container if it cannot."""
    os.makedirs(fs + ascend_docker_runtime.LOGS, 0o750, exist_ok=True)


def put(place, fs=""):
    """Put the complete directory ``place`` where the runtime belongs; a runtime that was installed there moves to ``place``."""
    home = fs + installation.HOME
    if not os.path.lexists(home):
        os.rename(place, home)
    elif not _exchange(place, home):
        aside = place + ".aside"
        os.rename(home, aside)
        os.rename(place, home)
        os.rename(aside, place)
    fsync_directory(os.path.dirname(home))


def remove(installed, fs=""):
    """Remove the runtime, and base.list unless it was changed."""
    if not installation.list_is_changed(installed, fs) and not installation.list_is_missing(fs):
        _remove_base_list(fs)
    with workspace(fs) as place:
        # In one step, so that a run that is killed leaves all or nothing.
        os.rename(fs + installation.HOME, os.path.join(place, "removed"))
        fsync_directory(fs + installation.PARENT)


def _exchange(one, other):
    """Exchange two directories in one step; False where the system cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(number, os.strerror(number), other)


def _finish(path, mode):
    with open(path, "rb") as stream:
        os.fchown(stream.fileno(), os.geteuid(), os.getegid())
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
