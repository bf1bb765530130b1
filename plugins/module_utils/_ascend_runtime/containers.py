# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers of this host that a runtime has started: containerd calls its program again when they end."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

_TASKS = "io.containerd.runtime.v2.task"
_LARGEST = 4 << 20
# Containers end meanwhile, and each version of containerd has other files.
_ABSENT = (FileNotFoundError, NotADirectoryError)
_VISIBLE = "ASCEND_VISIBLE_DEVICES="


class Users(NamedTuple):
    """Names of containers: ``all`` that the runtime has started, and those of them ``with_chips``."""

    all: list
    with_chips: list


def of(program, daemon):
    """The Users of the runtime ``program``, by what the ``daemon`` (a containerd_runtime.Daemon) keeps of its containers.

    Raises NpuError if that cannot be read: what it does not show may run.
    """
    try:
        state = daemon.state or daemon.dump().state
        if not state:
            raise NpuError("%s config dump names no state directory" % daemon.binary)
        if daemon.pid is None and not os.path.lexists(state):
            return Users([], [])  # it has not run since the host booted
        os.listdir(state)
        return _users(program, os.path.join(state, _TASKS))
    except (NpuError, OSError) as exc:
        why = exc.message if isinstance(exc, NpuError) else "%s: %s" % (exc.filename, exc.strerror)
        raise NpuError(
            "It is not known which containers the Ascend Docker Runtime has started, so it was not removed: %s. Correct "
            "containerd's configuration %s, or reboot the host, then run again" % (why, daemon.config)
        ) from None


def _users(program, top):
    found = Users([], [])
    for namespace in _listed(top):
        for name in _listed(os.path.join(top, namespace)):
            bundle = os.path.join(top, namespace, name)
            if program.encode() not in _read(os.path.join(bundle, "options.json")) + _read(os.path.join(bundle, "runtime")):
                continue
            found.all.append(name)
            if _has_chips(_read(os.path.join(bundle, "config.json"))):
                found.with_chips.append(name)
    return found


def _has_chips(config):
    try:
        environment = json.loads(config.decode("utf-8"))["process"]["env"]
        given = [line[len(_VISIBLE) :] for line in environment if line.startswith(_VISIBLE)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return True  # unknown: as if
    return bool(given) and given[-1] not in ("", "void")


def _listed(path):
    try:
        return sorted(os.listdir(path))
    except _ABSENT:
        return []


def _read(path):
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            return stream.read(_LARGEST)
    except _ABSENT:
        return b""
