# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ascend Docker Runtime that this collection has installed on the host: one directory, complete or absent, with a record in it.

    /usr/local/Ascend/Ascend-Docker-Runtime/    where Huawei's installer puts it as well
        ascend-docker-*
        ascend_docker_runtime_install.info      as the installer writes it; other programs of Huawei read it
        npuops.json                             the record: whoever finds the directory with it knows whose it is
    /etc/ascend-docker-runtime.d/base.list      what containers get; the record has its checksum

No path is a link, because the runtime refuses links. Another version takes the place of the directory in one step: containers that
run call the program by its path when they end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import package as runtime_package
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import fsync_directory, remove_file, write_atomic

PARENT = "/usr/local/Ascend"
HOME = PARENT + "/Ascend-Docker-Runtime"
PROGRAM = HOME + "/" + runtime_package.PROGRAMS[0]
RECORD = "npuops.json"
INFO = "ascend_docker_runtime_install.info"
LISTS = "/etc/ascend-docker-runtime.d"
BASE_LIST = LISTS + "/base.list"
LOGS = "/var/log/ascend-docker-runtime"

_WORK = ".npuops-runtime-"
_LARGEST = 1 << 20
_BLOCK = 1 << 20
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class Installed:
    """What the record says: ``version``, ``package``, ``digest``, ``files`` (name -> SHA-256), ``lists`` (SHA-256 of the versions
    of base.list that were ours, the current one first)."""

    def __init__(self, record):
        self.version = str(record["version"])
        self.package = str(record["package"])
        self.digest = str(record["digest"])
        self.files = {str(name): str(value) for name, value in record["files"].items()}
        self.lists = [str(value) for value in record["lists"]]


def find(fs=""):
    """The Installed of this collection; None if there is none. Raises NpuError if its record cannot be read."""
    try:
        with open(os.open(fs + HOME + "/" + RECORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            return Installed(json.loads(stream.read(_LARGEST).decode("utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise NpuError(
            "%s/%s, npuops.ascend's record of the Ascend Docker Runtime, cannot be read (%s). Remove %s, then run install again"
            % (HOME, RECORD, exc, HOME)
        ) from None


def foreign(fs=""):
    """Why a runtime that somebody else has installed is in the way, as a sentence; None if there is none."""
    if os.path.lexists(fs + HOME) and find(fs) is None:
        return (
            "%s is on this host, and npuops.ascend has not installed it. Unset npu_runtime_package to use it as it is, or "
            "uninstall it with its own package (--uninstall --install-scene=containerd), then run again" % HOME
        )
    return None


def unfit_place(fs=""):
    """Why nothing can be installed there, as a sentence; None if it can."""
    top = os.path.realpath(fs or "/")
    place = os.path.join(top, PARENT.lstrip("/"))
    if os.path.realpath(place) != place:
        return "%s is reached through a link, which the runtime refuses. Make it a directory, then run again" % PARENT
    while os.path.isdir(place):
        info = os.stat(place)
        if info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
            return (
                "Users other than root can change %s (owner ID %d, mode %04o), and the runtime then refuses to start containers. "
                "Run chown root and chmod go-w on it, then run again" % (place, info.st_uid, stat.S_IMODE(info.st_mode))
            )
        if place == top:
            break
        place = os.path.dirname(place)
    return None


def changed_files(installed, fs=""):
    """The paths of its files that are not as the record has them."""
    found = []
    for name, digest in sorted(installed.files.items()):
        path = os.path.join(HOME, os.path.basename(name))
        if _digest(fs + path) != digest or not _only_root_writes(fs + path):
            found.append(path)
    return found


def damage(installed, fs=""):
    """What is no longer as it was installed, as a sentence; None if all is."""
    changed = changed_files(installed, fs)
    return "%s is not as npuops.ascend installed it" % changed[0] if changed else None


def list_is_changed(installed, fs=""):
    """Whether somebody has changed base.list since."""
    return _digest(fs + BASE_LIST) not in installed.lists


def list_is_missing(fs=""):
    """Whether there is no base.list."""
    return not os.path.exists(fs + BASE_LIST)


@contextlib.contextmanager
def workspace(fs=""):
    """A new directory on the file system of the installation. Removes those of runs that were killed."""
    parent = fs + PARENT
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
    make_log_directory(fs)
    info = "version=v%s\narch=%s\nos=linux\npath=%s\ninstall-scene=containerd\n" % (unpacked.version, os.uname().machine, HOME)
    write_atomic(os.path.join(place, INFO), info, 0o640)
    listed = hashlib.sha256(unpacked.base_list).hexdigest()
    record = {
        "version": unpacked.version,
        "package": unpacked.name,
        "digest": digest,
        "files": {name: _digest(os.path.join(place, name)) for name in runtime_package.PROGRAMS},
        "lists": [listed] + [one for one in (before.lists if before else []) if one != listed][:9],
    }
    write_atomic(os.path.join(place, RECORD), json.dumps(record, indent=2, sort_keys=True) + "\n", 0o640)
    fsync_directory(place)
    return Installed(record)


def write_base_list(content, before, fs=""):
    """Write base.list, unless somebody has changed it since (``before``: Installed or None) or put it there.

    Returns whether it is there. Without an installation, nobody knows whose a list is, so another one stays.
    """
    path = fs + BASE_LIST
    found = _digest(path)
    if found == hashlib.sha256(content).hexdigest():
        return True
    if found is not None and (before is None or found not in before.lists):
        return False
    if not os.path.isdir(fs + LISTS):
        os.makedirs(fs + LISTS, 0o750)
    write_atomic(path, content, 0o440)
    return True


def read_base_list(fs=""):
    """Its content, or None, for ``restore_base_list``."""
    try:
        with open(fs + BASE_LIST, "rb") as stream:
            return stream.read(_LARGEST)
    except OSError:
        return None


def restore_base_list(content, fs=""):
    """Put back what ``read_base_list`` has found."""
    if content is not None:
        write_atomic(fs + BASE_LIST, content, 0o440)
    elif os.path.lexists(fs + BASE_LIST):
        remove_file(fs + BASE_LIST)
        with contextlib.suppress(OSError):
            os.rmdir(fs + LISTS)


def make_log_directory(fs=""):
    """The runtime writes there, and starts no container if it cannot."""
    if not os.path.isdir(fs + LOGS):
        os.makedirs(fs + LOGS, 0o750)


def put(place, fs=""):
    """Put the complete directory ``place`` where the runtime belongs; what was there is afterwards at ``place``."""
    home = fs + HOME
    if not os.path.lexists(home):
        os.rename(place, home)
    elif not _exchange(place, home):
        aside = place + ".aside"
        os.rename(home, aside)
        os.rename(place, home)
        os.rename(aside, place)
    fsync_directory(os.path.dirname(home))


def remove(installed, fs=""):
    """Remove the runtime, and base.list unless somebody has changed it."""
    if not list_is_changed(installed, fs) and not list_is_missing(fs):
        remove_file(fs + BASE_LIST)
        with contextlib.suppress(OSError):
            os.rmdir(fs + LISTS)
    with workspace(fs) as place:
        # In one step, so that a run that is killed leaves all or nothing.
        os.rename(fs + HOME, os.path.join(place, "removed"))
        fsync_directory(fs + PARENT)


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


def _digest(path):
    digest = hashlib.sha256()
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            for block in iter(lambda: stream.read(_BLOCK), b""):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def _only_root_writes(path):
    info = os.lstat(path)
    return stat.S_ISREG(info.st_mode) and info.st_uid in (0, os.geteuid()) and not info.st_mode & 0o022
