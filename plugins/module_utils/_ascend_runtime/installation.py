# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ascend Docker Runtime that this collection has installed on the host: one directory, complete or absent, with a record in it.

    /usr/local/Ascend/Ascend-Docker-Runtime/    where Huawei's installer also puts it
        ascend-docker-*
        ascend_docker_runtime_install.info      as the installer writes it; other programs of Huawei read it
        npuops.json                             the record, which shows that this collection has installed the directory
    /etc/ascend-docker-runtime.d/base.list      what containers get; the record has its checksum

No path is a link, because the runtime refuses links. Another version takes the place of the directory in one step: containers that
run call the program by its path when they end.
"""

from __future__ import annotations

import json
import os
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._driver import releases
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import ascend_docker_runtime

PARENT = "/usr/local/Ascend"
HOME = PARENT + "/Ascend-Docker-Runtime"
PROGRAM = HOME + "/" + ascend_docker_runtime.NAME
RECORD = "npuops.json"
BASE_LIST = ascend_docker_runtime.BASE_LIST

_LARGEST = 1 << 20


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
    """Why a runtime that this collection has not installed is in the way, as a sentence; None if there is none."""
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
        if digest_of(fs + path) != digest or not _only_root_writes(fs + path):
            found.append(path)
    return found


def damage(installed, fs=""):
    """What is no longer as it was installed, as a sentence; None if all is."""
    changed = changed_files(installed, fs)
    return "%s is not as npuops.ascend installed it" % changed[0] if changed else None


def list_is_changed(installed, fs=""):
    """Whether base.list was changed or removed since the installation."""
    return digest_of(fs + BASE_LIST) not in installed.lists


def list_is_missing(fs=""):
    """Whether there is no base.list."""
    return not os.path.exists(fs + BASE_LIST)


def digest_of(path):
    """The SHA-256 of the file ``path``, as hexadecimal digits; None if it cannot be read, or is a link."""
    try:
        return releases.file_digest(path)
    except OSError:
        return None


def _only_root_writes(path):
    info = os.lstat(path)
    return stat.S_ISREG(info.st_mode) and info.st_uid in (0, os.geteuid()) and not info.st_mode & 0o022
