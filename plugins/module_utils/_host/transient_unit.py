# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs in transient units of systemd: they outlive the connection that started them, and systemd knows how they ended."""

from __future__ import annotations

import collections

from ansible_collections.npuops.ascend.plugins.module_utils._host import command as host_command
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd

_CALL = 20  # seconds
_TIMED_OUT = (124, 137)  # exit statuses of timeout(1), and of a program that it had to kill

# code: its exit status, None if it is not known; timed_out: whether it was stopped at its limit; active: ActiveState of the unit
End = collections.namedtuple("End", "code timed_out active")


def start(unit, description, log, limit, argv, properties=()):
    """Start ``argv`` as ``unit``, for at most ``limit`` seconds, with its output in the file ``log``: the Result of systemd-run.

    ``properties``: more of them, as NAME=VALUE.
    """
    stop(unit)
    systemd.forget_failures(unit)
    run = ["systemd-run", "--quiet", "--unit=" + unit, "--remain-after-exit", "--description=" + description]
    run += ["--property=" + text for text in ("StandardOutput=file:" + log, "StandardError=inherit", *properties)]
    # systemd replaces variables in a command line (systemd.service(5)).
    words = [word.replace("$", "$$") for word in argv]
    return host_command.run(run + ["timeout", "--kill-after=60", str(limit)] + words, _CALL)


def stop(unit):
    """End the unit; one that has ended gives up its name."""
    host_command.run(["systemctl", "stop", unit], _CALL)


def running(unit):
    """Whether the unit has not ended. If systemd does not answer, it has."""
    return runs(systemd.show(unit, "ActiveState", "SubState"))


def runs(properties):
    """Whether a unit with these properties (ActiveState, SubState) has not ended."""
    active = properties.get("ActiveState")
    return active in ("activating", "deactivating") or (active, properties.get("SubState")) == ("active", "running")


def end(unit):
    """The End of a ``unit`` that was started in this boot, None while it runs. If systemd does not answer, it is busy."""
    found = systemd.show(unit, "ActiveState", "SubState", "ExecMainStatus", "Result")
    active, status, result = found.get("ActiveState"), found.get("ExecMainStatus", ""), found.get("Result")
    if active is None or runs(found):
        return None
    ended = (active, found.get("SubState")) == ("active", "exited") or (active, result) == ("failed", "exit-code")
    code = int(status) if ended and status.isdecimal() else None
    # timeout(1) ends itself by the signal with which it had to kill the program.
    killed = (active, result, status) == ("failed", "signal", "9")
    return End(code, killed or code in _TIMED_OUT, active)
