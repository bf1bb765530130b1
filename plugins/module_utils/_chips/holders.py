# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes on a host that have an NPU open, inside or outside of containers."""

from __future__ import annotations

import os
import re
import stat

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_text

# A name as the kernel shows it: of an open file, or at the end of a line of maps. "(deleted)" follows when the node is gone.
_CHIP = re.compile(r"/dev/(v?davinci[0-9]+|davinci_manager)(?: \(deleted\))?\Z")
_NODE = re.compile(r"(v?davinci[0-9]+|davinci_manager)\Z")
_MAPPED = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) .*? (/dev/[^\n]+)\n")
# What the driver's numbers belong to in /proc/devices.
_DRIVER = re.compile(r"(devdrv|v?davinci)")
# What most processes have open, and is no chip.
_COMMON = ("/dev/null", "/dev/zero", "/dev/pts/", "/dev/shm/")

_MAX_COMMAND = 120


def holders(fs=""):
    """The processes, except this one, that have a chip (/dev/davinciN or /dev/davinci_manager) or a virtual NPU (/dev/vdavinciN)
    open or mapped.

    Returns [{pid, command, device}] sorted by pid; command: program and first argument; device: names without /dev/, separated by
    commas. Omits processes that end in the meantime, and processes that may not be read.
    """
    proc = fs + "/proc"
    chips = _Chips(fs)
    found = []
    for pid in sorted((int(name) for name in os.listdir(proc) if name.isdecimal())):
        if pid == os.getpid():
            continue
        devices = _devices("%s/%d" % (proc, pid), chips)
        if devices:
            command = command_of("%s/%d" % (proc, pid))
            found.append({"pid": pid, "command": command, "device": ", ".join(sorted(devices))})
    return found


class _Chips:
    """Tells chips from files that only have the name of one.

    In a mount namespace of its own, a process of any user can have a /dev/davinci0 that is a plain file, a link, or another device
    that is open to all users. The device number does not depend on the namespace: a chip is a character device with a number of
    the driver.
    """

    def __init__(self, fs):
        self.fs = fs
        self._names = {}
        with os.scandir(fs + "/dev") as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False) if _NODE.match(entry.name) else None
                if info and stat.S_ISCHR(info.st_mode):
                    self._names[info.st_rdev] = entry.name
        self._majors = {os.major(device) for device in self._names}
        # The numbers of all other drivers. A device node may be removed while a process still has it open.
        self._others = set()
        for number, name in re.findall(r"^ *([0-9]+) (.+)$", _characters(fs), re.MULTILINE):
            if not _DRIVER.match(name):
                self._others.add(int(number))

    def name(self, called, path):
        """The chip's name, or None. ``called``: the kernel's name of the file; ``path``: where to stat it."""
        if self.fs and called.startswith(self.fs):
            called = called[len(self.fs) :]
        if not called.startswith("/dev/") or called.startswith(_COMMON):
            return None
        try:
            info = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISCHR(info.st_mode):
            return None
        if info.st_rdev in self._names:
            return self._names[info.st_rdev]
        match = _CHIP.match(called)
        major = os.major(info.st_rdev)
        return match.group(1) if match and (major in self._majors or major not in self._others) else None


def _characters(fs):
    """The character devices in /proc/devices."""
    return (read_text(fs + "/proc/devices") or "").partition("Block devices:")[0]


def _devices(process, chips):
    try:
        # Skips kernel threads, which have no program. They are most of the processes of an idle host.
        os.readlink(process + "/exe")
        with os.scandir(process + "/fd") as entries:
            paths = [entry.path for entry in entries]
    except OSError:
        return set()
    devices = set()
    for path in paths:
        try:
            devices.add(chips.name(os.readlink(path), path))
        except OSError:
            continue
    devices.discard(None)
    # A mapping outlives its file descriptor. Reading maps is expensive, so only if the descriptors show nothing.
    return devices or _mapped(process, chips)


def _mapped(process, chips):
    devices = set()
    try:
        with open(process + "/maps", "rb") as stream:
            # Line by line, because the number of mappings has no limit.
            for line in stream:
                match = _MAPPED.match(line) if b" /dev/" in line else None
                if match:
                    # The names in map_files have no leading zeros.
                    first, last = (int(number, 16) for number in match.groups()[:2])
                    path = "%s/map_files/%x-%x" % (process, first, last)
                    devices.add(chips.name(match.group(3).decode("utf-8", "replace"), path))
    except OSError:
        pass
    devices.discard(None)
    return devices


def command_of(process):
    """Program and first argument, or the kernel's name of the process. No further arguments: they may be secrets."""
    try:
        with open(process + "/cmdline", "rb") as stream:
            words = stream.read(4096).decode("utf-8", "replace").split("\0")[:2]
        text = " ".join(word for word in words if word)
        if not text:
            with open(process + "/comm", encoding="utf-8", errors="replace") as stream:
                text = stream.read().strip()
    except OSError:
        text = ""
    return printable(text[:_MAX_COMMAND]) or "unknown"
