# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run on this machine has ended, as after Ctrl-C: then no other run has to wait for its silence.

A record names the process that wrote it and the ansible-playbook that started that, with the times at which they began, and the
machine's boot and PID namespace. Elsewhere, and where that cannot be told, only silence tells.
"""

from __future__ import annotations

import hashlib
import os
import re

_NAME = re.compile(r"([0-9a-f]{16}) (\d{1,10})\.(\d{1,20}) (\d{1,10})\.(\d{1,20})")


def own() -> str | None:
    """The name of this process for a record, None where it has none."""
    place, pids = _place(), (os.getppid(), os.getpid())
    starts = [_start(pid) for pid in pids]
    if place is None or None in starts:
        return None
    return "%s %s" % (place, " ".join("%d.%s" % told for told in zip(pids, starts)))


def has_ended(name: str | None) -> bool:
    """Whether both processes of the ``name`` in a record were on this machine, and have ended."""
    told = _NAME.fullmatch(name or "")
    if told is None or told[1] != _place():
        return False
    return not _lives(int(told[2]), told[3]) and not _lives(int(told[4]), told[5])


def _place() -> str | None:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return hashlib.sha256(("%s %s" % (boot, os.readlink("/proc/self/ns/pid"))).encode()).hexdigest()[:16]
    except OSError:
        return None


def _start(pid: int) -> str | None:
    """When the process began, in ticks since the boot; None if that cannot be read."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _lives(pid: int, start: str) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # another user's
    # Where processes of others are hidden, it may be this one.
    return _start(pid) in (None, start)
