# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process is the host's kubelet and which its container runtime, and which programs only root can change.

Anybody can name a process "containerd" and give it any command line. So a runtime is who listens on the socket, or what
systemd calls the unit's main process, and it counts only as root's, outside of every container. Nothing runs here, and
nothing is read of a process before that is certain.
"""

from __future__ import annotations

import os
import socket
import stat
import struct

from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_link, read_text

CONTAINERD_UNITS = ("containerd.service", "snap.microk8s.daemon-containerd.service")
KUBELET_UNIT = "kubelet.service"

# Their main process has the kubelet in itself, or starts it.
EMBEDDING_UNITS = (
    "k3s.service",
    "k3s-agent.service",
    "rke2-server.service",
    "rke2-agent.service",
    "k0scontroller.service",
    "k0sworker.service",
    "snap.microk8s.daemon-kubelite.service",
)

# Where root's own shells look for programs: whoever may write there is root already. On Debian that may be the group staff.
_SYSTEM = ("/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin")

_DELETED = " (deleted)"
_ENDED = "has ended"
_CONNECT = 2  # seconds
_UCRED = struct.Struct("3i")  # pid, uid, gid


class Process:
    """The process ``pid``. Look at ``problem`` first: what a process says of itself is whatever its owner likes."""

    def __init__(self, pid, fs=""):
        self.pid = pid
        self._fs = fs
        self._proc = "%s/proc/%d" % (fs, pid)

    @property
    def problem(self):
        """Why this is not a part of the host itself, to follow "it ..."; None when it is."""
        status = (read_text(self._proc + "/status") or "").splitlines()
        users = next((line.split()[1:] for line in status if line.startswith("Uid:")), None)
        if not users:
            return _ENDED if self.pid else "runs in a PID namespace that is not the host's"
        for user in users:
            if int(user) not in _trusted_users():
                return "runs with the user ID %s" % user
        for name, words in (("pid", "PID namespace"), ("mnt", "mount namespace")):
            own = read_link("%s/ns/%s" % (self._proc, name))
            if own is None:
                return "cannot be looked at: this needs root"
            # Ours may differ from systemd's, where a login gets a /tmp of its own; the host's files are in both.
            if own not in [read_link("%s/proc/%s/ns/%s" % (self._fs, host, name)) for host in ("1", "self")]:
                return "runs in a %s of its own, as in a container" % words
        root = read_link(self._proc + "/root")
        return None if root == "/" else "has another root directory (%s)" % root

    @property
    def name(self):
        """What the kernel calls it: its program's name, unless it gave itself another one."""
        return (read_text(self._proc + "/comm") or "").strip()

    @property
    def program(self):
        """The path of its program, from the kernel; None without one. An upgrade may have replaced what is there."""
        path = read_link(self._proc + "/exe")
        if path is None:
            return None
        path = path[: -len(_DELETED)] if path.endswith(_DELETED) else path
        # One program may be several, told apart by the name they are called by (k3s).
        called = os.path.join(os.path.dirname(path), os.path.basename(self.argv[0] if self.argv else path))
        return called if os.path.realpath(self._fs + called) == os.path.realpath(self._fs + path) else path

    @property
    def argv(self):
        """Its command line as a list."""
        return [word for word in (read_text(self._proc + "/cmdline") or "").split("\0") if word]

    @property
    def directory(self):
        """Its working directory, which relative paths on its command line start from."""
        return read_link(self._proc + "/cwd") or "/"

    @property
    def cgroup(self):
        """The text of its cgroup file."""
        return read_text(self._proc + "/cgroup") or ""


def unsafe(path):
    """Why others than root can change what the program ``path`` is, as a sentence; None when only root can."""
    place = os.path.realpath(path)
    if not os.path.isfile(place):
        return "%s is no program" % path
    while True:
        info = os.lstat(place)
        if info.st_uid not in _trusted_users():
            return "%s belongs to the user ID %d" % (place, info.st_uid)
        writable = info.st_mode & stat.S_IWOTH or (info.st_mode & stat.S_IWGRP and info.st_gid != 0)
        # In a sticky directory only the owner of a name, root, can give it to something else.
        if writable and not (stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX):
            return "%s has the mode %04o" % (place, stat.S_IMODE(info.st_mode))
        if os.path.dirname(place) in (place,) + _SYSTEM:
            return None
        place = os.path.dirname(place)


def containerd(address, fs=""):
    """The Process of the containerd behind the socket ``address``, or else of its unit; None when none runs.

    NpuError when somebody listens there who is not a part of the host.
    """
    pid = peer(fs + address)
    if pid is not None:
        found = Process(pid, fs)
        problem = found.problem
        if problem not in (None, _ENDED):
            raise NpuError(
                "The container runtime's socket %s is not the host's: process %d listens on it, and it %s. Only root's own "
                "containerd, which runs on the host itself, is used. Stop that process, or correct the address that the "
                "kubelet has for its runtime, then run again" % (address, pid, problem)
            )
        # Others may stand in between: systemd, which listens for a service, or a proxy.
        if problem is None and "containerd" in (found.name, os.path.basename(found.program or "")):
            return found
    mains = systemd.main_pids(CONTAINERD_UNITS)
    return next((found for found in _trusted(mains.values(), fs)), None)


def peer(address):
    """The ID of the process that listens on the Unix socket ``address`` as the kernel knows it; None when nobody does.

    0 when that process is in no PID namespace that is visible from here.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT)
        try:
            connection.connect(address)
        except OSError:
            return None
        return _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))[0]


def kubelets(fs=""):
    """The Processes that may be this host's kubelet, the likeliest first; those with "kubelet" in them come last."""
    mains = systemd.main_pids((KUBELET_UNIT,) + EMBEDDING_UNITS)
    pids = [mains[KUBELET_UNIT]] if KUBELET_UNIT in mains else []
    # One that another program has started, and units of other names.
    pids += [pid for pid in _pids(fs) if os.path.basename(Process(pid, fs).program or "") == "kubelet"]
    pids += [pid for unit, pid in mains.items() if unit != KUBELET_UNIT]
    return list(_trusted(pids, fs))


def option(argv, *names):
    """The value of one of the options ``names`` (without dashes) on the command line ``argv``; of several, the last counts.

    Understood as Go's flag package does: -name and --name, the value after = or as the next word.
    """
    value = None
    for index, word in enumerate(argv[1:], 1):
        name, equals, rest = word.lstrip("-").partition("=")
        if name in names and 1 <= len(word) - len(word.lstrip("-")) <= 2:
            if equals:
                value = rest
            elif index + 1 < len(argv):
                value = argv[index + 1]
    return value


def _pids(fs):
    try:
        return sorted(int(name) for name in os.listdir(fs + "/proc") if name.isdigit())
    except OSError:
        return []


def _trusted(pids, fs):
    return (process for process in (Process(pid, fs) for pid in pids) if process.problem is None)


def _trusted_users():
    # What is ours anyhow gains nothing by being run by us.
    return (0, os.geteuid())
