# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chips that the driver reserves for a mount namespace, until its last process ends.

The driver gives a chip to the first container that opens it, and refuses it to all others with -8020, also while no process has it
open. Source: uda_proc_fs.c of the driver, whose ``namespace_node`` lists the reservations. The namespace 128 is the host's own.
"""

from __future__ import annotations

import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips.holders import command_of

PATH = "/proc/uda/namespace_node"
_HOST = 128
_LONGEST = 2**20
_MOST = 128  # mount namespaces; the driver numbers those of containers from 0 to 127
_HEAD = re.compile(r"ns_id ([0-9]{1,5}) identify [0-9]+ root_tgid ([0-9]{1,10}) dev_num [0-9]+ namespace \S+, udev list:\Z")
_CHIP = re.compile(r"\s*[0-9]{1,5}\s+([0-9]{1,5})\Z")
_CONTAINER = re.compile(r"([0-9a-f]{64})(?:\.scope)?$", re.MULTILINE)


def read(fs=""):
    """[{pid, command, container, chips}] of the containers for which chips are reserved; [] where the driver does not say.

    pid: of the process that opened the first chip, by the host; command: None if it has ended; container: its ID, or None; chips:
    numbers of /dev/davinciN.
    """
    try:
        with open(fs + PATH, encoding="ascii", errors="replace") as stream:
            lines = stream.read(_LONGEST).splitlines()
    except OSError:
        return []
    found, chips = [], []
    for line in lines:
        head, chip = _HEAD.match(line.strip()), _CHIP.match(line)
        if head:
            chips = []
            if int(head.group(1)) < _HOST and len(found) < _MOST:
                found.append(dict(_process(int(head.group(2)), fs), chips=chips))
        elif chip and int(chip.group(1)) not in chips:
            chips.append(int(chip.group(1)))
    return [entry for entry in found if entry["chips"]]


def told(entry):
    """For whom, as a phrase."""
    who = "process %d (%s)" % (entry["pid"], entry["command"] or "it has ended, but not all processes of its container")
    return who + (" in the container %s" % entry["container"][:12] if entry["container"] else "")


def _process(pid, fs):
    directory = "%s/proc/%d" % (fs, pid)
    if not os.path.isdir(directory):
        return {"pid": pid, "command": None, "container": None}
    try:
        with open(directory + "/cgroup", encoding="utf-8", errors="replace") as stream:
            container = _CONTAINER.search(stream.read(2**16))
    except OSError:
        container = None
    return {"pid": pid, "command": command_of(directory), "container": container.group(1) if container else None}
