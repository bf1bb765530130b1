# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching the nodes: looking every so often, and starting the playbook itself when one is due.

Each recovery is a process of its own, the same command without the watch. So a failure in one does not end the watch, nothing
piles up in a process that runs for months, and each reads the inventory anew.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.module_utils._host.heal_service import ASKING
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.plan import HealPlan, UnhealthyNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

# Seconds until what was tried in vain is tried again; it doubles from the interval on.
MOST = 600
# Seconds after which a watch that cannot look says so again; one that was never let in ends then. Long enough for systemd not to
# take it for something that ends again and again.
BLIND = 600
# Looks in a row that are refused until a watch ends that was let in before. Its start reads everything anew.
REFUSALS = 3


class Nodes:
    """The Node objects of the cluster; with other credentials when those that were there are refused.

    A token is renewed, a kubeconfig is written anew: who watches for months reads them more than once.
    """

    def __init__(self, connect: Callable[[], kube_client.Cluster]) -> None:
        """``connect()``: a _kube.client.Cluster, of the credentials as they are then."""
        self._connect, self._cluster = connect, connect()

    def now(self) -> float:
        """Seconds since 1970, by the clock of the API server."""
        return self._cluster.clock.now()

    def __call__(self) -> list[Object]:
        try:
            return self._cluster.list("/api/v1/nodes")
        except NpuError as exc:
            if not _is_refusal(exc):
                raise
        self._cluster = self._connect()
        return self._cluster.list("/api/v1/nodes")


def _is_refusal(exc: NpuError) -> bool:
    """Whether others than these credentials might do: the API server does not know, or does not let, who asks."""
    return isinstance(exc, kube_client.Unauthorized) or bool(exc.details.get("missing"))


class Watch:
    """``look()``: a _heal.plan.HealPlan, may raise NpuError; ``recover()``: the exit status of a run; ``say(line)``."""

    def __init__(
        self, look: Callable[[], HealPlan], recover: Callable[[], int], say: Callable[[str], None], interval: float, clock: Clock
    ) -> None:
        self._look, self._recover, self._say, self._interval, self._clock = look, recover, say, interval, clock
        self._told: list[str] | None = None
        self._tried: list[Any] | None = None
        self._pause, self._not_before = interval, 0.0
        self._let_in = False
        self._blind_since: float | None = None
        self._reminded, self._refusals = 0.0, 0

    def run(self, going: Callable[[], bool] = lambda: True) -> None:
        """Watch as long as ``going()``."""
        while going():
            self.step()
            self._clock.sleep(self._interval)

    def step(self) -> None:
        """One look, and what follows from it. Raises NpuError when there is no sense in another one."""
        try:
            plan = self._look()
        except NpuError as exc:
            self._blind(exc)
            return
        self._let_in, self._blind_since, self._refusals = True, None, 0
        self._tell(plan.table())
        # A node whose host this watch does not know may be in the inventory by now, which the run reads anew.
        begin = [(entry.name, entry.verdict, entry.wedge and entry.wedge.since) for entry in plan.due + plan.strangers]
        if not begin:
            self._tried = None
            return
        if begin == self._tried and self._clock.monotonic() < self._not_before:
            return
        self._pause = min(self._pause * 2, MOST) if begin == self._tried else self._interval
        if plan.due:
            self._say("Recovers %s:" % _names(plan.due))
        if plan.strangers:
            self._say("Reloads the inventory, for %s:" % _names(plan.strangers))
        status = self._recover()
        self._tried, self._not_before = begin, self._clock.monotonic() + self._pause
        self._say("The recovery has ended with status %d; watches again." % status)
        self._told = None

    def _blind(self, exc: NpuError) -> None:
        """Nobody is looking after the nodes. Raises NpuError when that does not end by itself."""
        now = self._clock.monotonic()
        if self._blind_since is None:
            self._blind_since = self._reminded = now
        self._refusals = self._refusals + 1 if _is_refusal(exc) else 0
        if self._refusals >= REFUSALS and (self._let_in or now - self._blind_since >= BLIND):
            raise NpuError(
                "The watch stops: it can no longer read the nodes. %s The service (npuops.ascend.heal_service) starts it again"
                " by itself; otherwise start it again with credentials that are valid." % sentence(exc.message)
            )
        if now - self._reminded >= BLIND:
            self._told, self._reminded = None, now
        self._tell([exc.message])

    def _tell(self, lines: list[str]) -> None:
        """Show what changed."""
        if lines != self._told:
            self._told = lines
            for line in lines:
                self._say(line)


def _names(entries: Iterable[UnhealthyNode]) -> str:
    return ", ".join(entry.name for entry in entries)


def own_command() -> list[str]:
    """The command line of this ansible-playbook, without the watch. Raises NpuError when it asks people for something."""
    asking = [word for word in sys.argv if word in ASKING]
    if asking:
        raise NpuError(
            "A watch cannot ask for passwords each time it starts a recovery: leave out %s. Use SSH keys, and files for vault"
            " passwords (--vault-password-file)." % ", ".join(asking)
        )
    return [sys.executable] + sys.argv + ["-e", '{"npu_heal_watch": false}']


def run(command: list[str], say: Callable[[str], None]) -> int:
    """Run a command, each line of its output said as it comes; returns its exit status. It ends with this process."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if process.stdout is None:
        raise AssertionError("it is a pipe")
    with process.stdout, _ends_with(process):
        for line in process.stdout:
            say(line.rstrip("\n"))
        return process.wait()


@contextlib.contextmanager
def _ends_with(process: subprocess.Popen[str]) -> Iterator[None]:
    """Terminate the process when this one is, or when the Ansible that this one is a worker of has gone."""

    def on_term(_signum: int, _frame: object) -> None:
        raise SystemExit(143)

    over, parent = threading.Event(), os.getppid()

    def guard() -> None:
        while not over.wait(1):
            if os.getppid() != parent:
                process.terminate()
                return

    before = signal.signal(signal.SIGTERM, on_term)
    threading.Thread(target=guard, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.signal(signal.SIGTERM, before)
        if process.poll() is None:
            process.terminate()
            process.wait()
