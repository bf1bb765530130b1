# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recoveries that a watch starts: processes with the same command without the watch.

So a failure in one does not end the watch, nothing piles up in a process that runs for months, and each reads the inventory again.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.heal_service import ASKING
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run

# Seconds that the last lines of a run may take. What it has left behind may hold its output open.
_LAST_LINES = 5
_TERMINATED = 143  # the exit status of what SIGTERM ended


def own_command() -> list[str]:
    """The command line of this ansible-playbook, without the watch. Raises NpuError when it asks people for something."""
    asking = [word for word in sys.argv if word in ASKING]
    if asking:
        raise NpuError(
            "A watch cannot ask for passwords each time it starts a recovery: leave out %s. Use SSH keys, and files for vault"
            " passwords (--vault-password-file)." % ", ".join(asking)
        )
    return [sys.executable] + sys.argv + ["-e", '{"npu_heal_watch": false}']


def without(hosts: Sequence[str], subset: str | None) -> list[str]:
    """The arguments that leave out these hosts of those that the command is for. ``subset``: its own --limit, or None."""
    if not hosts:
        return []
    return ["--limit", this_run.excluding(hosts, subset)]


class Recovery:
    """One of them; each line of its output is said as it comes."""

    def __init__(self, command: Sequence[str], say: Callable[[str], None]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        self._say = say
        self._reader = threading.Thread(target=self._tell, daemon=True)
        self._reader.start()

    def _tell(self) -> None:
        if self.process.stdout is not None:
            with self.process.stdout as lines:
                for line in lines:
                    self._say(line.rstrip("\n"))

    def poll(self) -> int | None:
        """The exit status, when all of its output has been said; None while it runs."""
        status = self.process.poll()
        if status is not None:
            self._reader.join(_LAST_LINES)
        return status

    def end(self) -> None:
        """Terminate it, unless it has ended."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


class Recoveries:
    """Those of one watch. They end with it: when this process is terminated, or the Ansible that it is a worker of has gone."""

    def __init__(self) -> None:
        self._begun: list[Recovery] = []
        self._starting = self._terminated = False
        self._over, self._parent = threading.Event(), os.getppid()

    def start(self, command: Sequence[str], say: Callable[[str], None]) -> Recovery:
        self._begun = [one for one in self._begun if one.process.poll() is None]
        self._starting = True
        self._begun.append(Recovery(command, say))
        self._starting = False
        if self._terminated:
            raise SystemExit(_TERMINATED)
        return self._begun[-1]

    def __enter__(self) -> Recoveries:
        self._before = signal.signal(signal.SIGTERM, self._on_term)
        threading.Thread(target=self._guard, daemon=True).start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._over.set()
        signal.signal(signal.SIGTERM, self._before)
        for one in self._begun:
            one.end()

    def _guard(self) -> None:
        while not self._over.wait(1):
            if os.getppid() != self._parent:
                for one in self._begun:
                    one.process.terminate()
                return

    def _on_term(self, _signum: int, _frame: object) -> None:
        self._terminated = True
        # A process that is just being started would be left behind.
        if not self._starting:
            raise SystemExit(_TERMINATED)
