# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Query and control systemd."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

# The directory for units of administrators, and of this collection.
UNIT_DIRECTORY = "/etc/systemd/system/"

# systemd's default timeout for stopping a unit.
_STOP = 90  # seconds
_SHOW = 20  # seconds


def systemctl(*arguments, timeout=_STOP):
    """Run ``systemctl``; raises NpuError if it fails or does not end within ``timeout`` seconds."""
    result = host_command.run(["systemctl"] + list(arguments), timeout)
    if result.rc != 0:
        raise NpuError("systemctl %s failed: %s" % (" ".join(arguments), result.text or "no output"))


def show(unit, *properties):
    """Properties of a systemd unit as a dict; empty on a host without systemd."""
    argv = ["systemctl", "show", unit, "-p", ",".join(properties)]
    try:
        result = host_command.run(argv, _SHOW)
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)


def main_pids(units):
    """{unit: ID of its main process} for the ``units`` that run; empty on a host without systemd."""
    try:
        result = host_command.run(["systemctl", "show", "-p", "Id,MainPID"] + list(units), _SHOW)
    except FileNotFoundError:
        return {}
    # One block for each unit, in this order. The Id of an alias is another name.
    found = {}
    for unit, block in zip(units, result.stdout.split("\n\n")):
        properties = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        pid = properties.get("MainPID", "")
        if pid.isdecimal() and int(pid):
            found[unit] = int(pid)
    return found


def need_reload(units):
    """Whether the file of one of the ``units`` was changed since systemd has read it, as by a run that was killed in between."""
    try:
        result = host_command.run(["systemctl", "show", "-p", "NeedDaemonReload"] + list(units), _SHOW)
    except FileNotFoundError:
        return False
    return "NeedDaemonReload=yes" in result.stdout.split()


def forget_failures(unit):
    """Reset the failed state: it prevents a start after repeated failures, and lists a removed unit until the next boot."""
    host_command.run(["systemctl", "reset-failed", unit], _SHOW)
