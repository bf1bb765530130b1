# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Huawei's Ascend Docker Runtime as the default runtime of containerd: whether it is installed, complete, and safe to use.

It stands between containerd and runc, and adds chips and the driver's files to each container whose environment names chips. Its
hook gives a container the files of base.list under the paths that they have on the host, and refuses what is reached through links.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_runtime
from ansible_collections.npuops.ascend.plugins.module_utils._host import process as host_process
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import ascend_docker_runtime, cri

PROGRAM = ascend_docker_runtime.NAME
# It looks for them beside itself.
HELPERS = ("ascend-docker-hook", "ascend-docker-cli")
BASE_LIST = ascend_docker_runtime.BASE_LIST
# Where programs in containers look for the driver, and so where it must be on the host.
LIBRARIES = "/usr/local/Ascend/driver/lib64"

INSTALLER = "Install it with Huawei's package: --install --install-scene=containerd, then restart containerd"

# As the hook limits it.
_MOST_ENTRIES = 128
_LARGEST = 1 << 20


class DefaultRuntime(NamedTuple):
    """The name of a runtime, and the program that its shim runs; empty: runc."""

    name: str
    program: str

    @property
    def is_ascend(self):
        return os.path.basename(self.program) == PROGRAM

    def __str__(self):
        return "%s (%s)" % (self.name, self.program or "runc")


class Look(NamedTuple):
    """What containerd has as its default runtime: by its configuration, and in the running process. None for what is not known."""

    configured: DefaultRuntime | None
    running: DefaultRuntime | None
    problem: str | None  # why the running process did not answer

    @property
    def program(self):
        """The program of the runtime; None if it is another one."""
        return self.configured.program if self.configured and self.configured.is_ascend else None


def look(find_daemon=containerd_runtime.find):
    """The Look at the host's containerd. Raises NpuError if there is none, or if it does not accept its configuration."""
    daemon = find_daemon()
    dump = daemon.dump()
    configured = dump.default_runtime
    address = daemon.address or dump.address or containerd_runtime.DEFAULT_ADDRESS
    try:
        running = cri.status(address).default_runtime
    except cri.CriError as exc:
        return Look(configured and DefaultRuntime(*configured), None, str(exc))
    return Look(configured and DefaultRuntime(*configured), running and DefaultRuntime(*running), None)


def config_problem(seen):
    """Why the configuration that ``seen`` (a Look) tells of does not have it as its default runtime; None if it does."""
    if seen.program:
        return None
    return "containerd's default runtime is %s, not %s. With another one, pods start without devices and without an error. %s" % (
        seen.configured or "unknown",
        PROGRAM,
        INSTALLER,
    )


def running_problem(seen):
    """The same for the running process."""
    if seen.problem:
        return "containerd's CRI does not respond: %s" % seen.problem
    if seen.running and seen.running.program == seen.program:
        return None
    return "containerd has not been restarted since its configuration changed: its default runtime is %s. Restart containerd" % (
        seen.running or "unknown",
    )


def file_problem(program, fs=""):
    """Why the runtime ``program`` cannot start containers with chips, as a sentence; None if nothing is known."""
    for path in [program] + [os.path.join(os.path.dirname(program), name) for name in HELPERS]:
        if not (os.path.isfile(fs + path) and os.access(fs + path, os.X_OK)):
            return "there is no program %s" % path
        unsafe = host_process.unsafe(fs + path)
        if unsafe:
            return "%s: only root may change what containerd runs" % unsafe
    return _list_problem(fs)


def _list_problem(fs):
    try:
        with open(fs + BASE_LIST, encoding="utf-8", errors="replace") as stream:
            entries = [line.strip() for line in stream.read(_LARGEST).splitlines()]
    except OSError as exc:
        return "%s, the list of files for containers, cannot be read: %s" % (BASE_LIST, exc.strerror)
    if len(entries) > _MOST_ENTRIES:
        return "%s has more than %d entries, which its hook refuses" % (BASE_LIST, _MOST_ENTRIES)
    paths = [os.path.normpath(entry) for entry in entries if entry.startswith("/")]
    if not any(LIBRARIES == path or LIBRARIES.startswith(path + "/") for path in paths):
        return "%s does not list %s: containers would not get the driver's libraries" % (BASE_LIST, LIBRARIES)
    if not os.path.isdir(fs + LIBRARIES):
        return "there is no driver in %s" % LIBRARIES
    top = os.path.realpath(fs or "/").rstrip("/")
    for path in paths:
        place = os.path.normpath(top + path)
        # What is not there is left out.
        if os.path.exists(place) and os.path.realpath(place) != place:
            return "%s, which %s lists, is reached through a link, which its hook refuses: no container with a chip would start" % (
                path,
                BASE_LIST,
            )
    return None


def problems(source, fs="", find_daemon=containerd_runtime.find):
    """Why this host cannot give chips to containers by it, as sentences; ``source``: of the driver."""
    if source != "preinstalled":
        yield (
            "npu_runtime_mode is ascend, which needs npu_driver_source: preinstalled: drivers from images and packages are reached "
            "through a link, and %s mounts nothing that is" % PROGRAM
        )
        return
    try:
        seen = look(find_daemon)
    except NpuError as exc:
        yield "npu_runtime_mode is ascend: %s" % exc.message
        return
    found = config_problem(seen) or file_problem(seen.program, fs) or running_problem(seen)
    if found:
        yield "npu_runtime_mode is ascend: %s" % found
