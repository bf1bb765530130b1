# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the processes of the kubelet and the container runtime, and check that only root can change a program.

Any user can start a process named "containerd" with any command line. So the runtime is the process that listens on the socket, or
the main process of the systemd unit, and only if it runs as root and outside of containers. Nothing of a process is used before
that is verified.
"""

from __future__ import annotations

import os
import socket
import stat
import struct

from ansible_collections.npuops.ascend.plugins.module_utils._host import distributions, systemd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_link, read_text

# Units with containerd as their main process. The other distributions start it as a child of the kubelet's unit.
CONTAINERD_UNITS = {
    distributions.PLAIN.name: "containerd.service",
    distributions.MICROK8S.name: "snap.microk8s.daemon-containerd.service",
}
CRIO_UNIT = "crio.service"
KUBELET_UNIT = "kubelet.service"

# Units whose main process contains or starts the kubelet.
EMBEDDING_UNITS = tuple(unit for distribution in distributions.EMBEDDING for unit in distribution.units)

# Directories in the PATH of root: a user who may write there can become root anyway. On Debian, the group staff may.
_SYSTEM = ("/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin")

_DELETED = " (deleted)"
_ENDED = "has ended"
_CONNECT = 2  # seconds
_UCRED = struct.Struct("3i")  # pid, uid, gid


class Process:
    """The process ``pid``. Check ``problem`` first: the owner of a process controls the other attributes."""

    def __init__(self, pid, fs=""):
        self.pid = pid
        self._fs = fs
        self._proc = "%s/proc/%d" % (fs, pid)

    @property
    def problem(self):
        """Why this is not a process of the host itself, as the rest of a sentence that starts with "it"; None if it is."""
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
                return "cannot be checked without root"
            # This process may have another mount namespace than systemd, if logins have a private /tmp.
            if own not in [read_link("%s/proc/%s/ns/%s" % (self._fs, host, name)) for host in ("1", "self")]:
                return "runs in a %s of its own, as in a container" % words
        root = read_link(self._proc + "/root")
        return None if root == "/" else "has another root directory (%s)" % root

    @property
    def name(self):
        """The kernel's name of the process: the name of its program, unless the process changed it."""
        return (read_text(self._proc + "/comm") or "").strip()

    @property
    def program(self):
        """The path of its program according to the kernel, or None. An upgrade may have replaced the file."""
        path = read_link(self._proc + "/exe")
        if path is None:
            return None
        path = path[: -len(_DELETED)] if path.endswith(_DELETED) else path
        # A program such as k3s has several functions, selected by the name that it is called with.
        argv = self.argv  # once: it is empty as soon as the process ends
        called = os.path.join(os.path.dirname(path), os.path.basename(argv[0] if argv else path))
        return called if os.path.realpath(self._fs + called) == os.path.realpath(self._fs + path) else path

    @property
    def argv(self):
        """Its command line as a list."""
        return [word for word in (read_text(self._proc + "/cmdline") or "").split("\0") if word]

    @property
    def environment(self):
        """The environment that it was started with, as a dict."""
        words = (read_text(self._proc + "/environ") or "").split("\0")
        return dict(word.split("=", 1) for word in words if "=" in word)

    @property
    def directory(self):
        """Its working directory, to resolve relative paths on its command line."""
        return read_link(self._proc + "/cwd") or "/"

    @property
    def cgroup(self):
        """The text of its cgroup file."""
        return read_text(self._proc + "/cgroup") or ""


def unsafe(path):
    """Why users other than root can change the program ``path``, as a sentence; None if only root can."""
    place = os.path.realpath(path)
    if not os.path.isfile(place):
        return "%s is not a program" % path
    while True:
        info = os.lstat(place)
        if info.st_uid not in _trusted_users():
            return "%s belongs to the user ID %d" % (place, info.st_uid)
        writable = info.st_mode & stat.S_IWOTH or (info.st_mode & stat.S_IWGRP and info.st_gid != 0)
        # In a directory with the sticky bit, only the owner of a file (root) can replace it.
        if writable and not (stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX):
            return "%s has the mode %04o" % (place, stat.S_IMODE(info.st_mode))
        if os.path.dirname(place) in (place,) + _SYSTEM:
            return None
        place = os.path.dirname(place)


def containerd(address, fs=""):
    """The Process of the containerd that listens on the socket ``address``, otherwise that of its unit; None if none runs.

    Raises NpuError if the process that listens on the socket is not one of the host itself.
    """
    return _server(address, "containerd", CONTAINERD_UNITS.get(distributions.of_address(address).name), fs)


def crio(address, fs=""):
    """The same for CRI-O."""
    return _server(address, "crio", CRIO_UNIT, fs)


def _server(address, program, unit, fs):
    pid = peer(fs + address)
    if pid is not None:
        found = Process(pid, fs)
        problem = found.problem
        if problem not in (None, _ENDED):
            raise NpuError(
                "The container runtime's socket %s is not safe to use: process %d listens on it, and it %s. Only a %s that "
                "runs as root on the host itself is supported. Stop that process, or correct the runtime endpoint of the kubelet, "
                "then run again" % (address, pid, problem, program)
            )
        # Another process may listen in its place: systemd with socket activation, or a proxy.
        if problem is None and program in (found.name, os.path.basename(found.program or "")):
            return found
    mains = systemd.main_pids([unit]) if unit else {}
    return next((found for found in _trusted(mains.values(), fs)), None)


def peer(address):
    """The ID of the process that listens on the Unix socket ``address``, according to the kernel; None if no process does.

    0 if that process is in a PID namespace that is not visible to this process.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT)
        try:
            connection.connect(address)
        except OSError:
            return None
        return _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))[0]


def kubelet_units(fs=""):
    """{unit: ID of its main process} of the running units of kubelets that belong to the host itself."""
    mains = systemd.main_pids((KUBELET_UNIT,) + EMBEDDING_UNITS)
    return {unit: pid for unit, pid in mains.items() if Process(pid, fs).problem is None}


def kubelets(units, fs=""):
    """The Processes that may be this host's kubelet, the most likely first; programs that embed it come last.

    ``units``: result of ``kubelet_units``.
    """
    pids = [units[KUBELET_UNIT]] if KUBELET_UNIT in units else []
    # A kubelet that another program started, or whose unit has another name.
    pids += [pid for pid in _pids(fs) if os.path.basename(Process(pid, fs).program or "") == "kubelet"]
    pids += [pid for unit, pid in units.items() if unit != KUBELET_UNIT]
    return list(_trusted(pids, fs))


def option(argv, *names):
    """The value of one of the options ``names`` (without dashes) on the command line ``argv``; of several, the last."""
    return next(reversed(options(argv, *names)), None)


def options(argv, *names):
    """The values of all options ``names`` (without dashes) on the command line ``argv``, in their order.

    Accepts the syntax of Go's flag package: -name and --name, with the value after = or as the next word.
    """
    values = []
    for index, word in enumerate(argv[1:], 1):
        name, equals, rest = word.lstrip("-").partition("=")
        if name in names and 1 <= len(word) - len(word.lstrip("-")) <= 2:
            if equals:
                values.append(rest)
            elif index + 1 < len(argv):
                values.append(argv[index + 1])
    return values


def _pids(fs):
    try:
        return sorted(int(name) for name in os.listdir(fs + "/proc") if name.isdecimal())
    except OSError:
        return []


def _trusted(pids, fs):
    return (process for process in (Process(pid, fs) for pid in pids) if process.problem is None)


def _trusted_users():
    # This user gains nothing from running its own programs.
    return (0, os.geteuid())


def in_pod(pid, fs):
    """Whether the process is in a cgroup of the kubelet."""
    return "kubepods" in (read_text("%s/proc/%d/cgroup" % (fs, pid)) or "")
