# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes of a host hold an NPU, in a container or not.

Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import os
import re

# A name as the kernel shows it: of an open file, or at the end of a line of maps. "(deleted)" follows when the node is gone.
_DEVICE = r"/(davinci[0-9]+|davinci_manager)(?: \(deleted\))?$"
_OPEN = re.compile("/dev" + _DEVICE)
_MAPPED = re.compile(("/dev" + _DEVICE).encode("ascii"), re.MULTILINE)

_MAX_COMMAND = 120


def holders(fs=""):
    """The processes that have /dev/davinciN or /dev/davinci_manager open or mapped, but for this one.

    Returns [{pid, command, device}] by pid; command: program and first argument; device: names without /dev/, with
    commas. A process that ends meanwhile is left out; one of which nothing may be read, too.
    """
    proc = fs + "/proc"
    found = []
    for pid in sorted((int(name) for name in os.listdir(proc) if name.isdigit())):
        if pid == os.getpid():
            continue
        devices = _devices("%s/%d" % (proc, pid))
        if devices:
            command = _command("%s/%d" % (proc, pid))
            found.append({"pid": pid, "command": command, "device": ", ".join(sorted(devices))})
    return found


def _devices(process):
    try:
        # The kernel's own threads, which hold nothing, are most of the processes of a quiet host. They have no program.
        os.readlink(process + "/exe")
        with os.scandir(process + "/fd") as entries:
            paths = [entry.path for entry in entries]
    except OSError:
        return set()
    devices = set()
    for path in paths:
        try:
            match = _OPEN.match(os.readlink(path))
        except OSError:
            continue
        if match:
            devices.add(match.group(1))
    # A mapping outlives its file descriptor. To read maps is dearer, so only where descriptors do not tell.
    if not devices:
        try:
            with open(process + "/maps", "rb") as stream:
                devices = {name.decode("ascii") for name in _MAPPED.findall(stream.read())}
        except OSError:
            pass
    return devices


def _command(process):
    """Program and first argument, or the kernel's name of the process. Not more: arguments may be secrets."""
    try:
        with open(process + "/cmdline", "rb") as stream:
            words = stream.read().decode("utf-8", "replace").split("\0")[:2]
        text = " ".join(word for word in words if word)
        if not text:
            with open(process + "/comm", encoding="utf-8", errors="replace") as stream:
                text = stream.read().strip()
    except OSError:
        text = ""
    return text[:_MAX_COMMAND] or "unknown"
