# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching the nodes: looking every so often, and starting the playbook itself when one is due.

Each recovery is a process of its own (_heal.recoveries), beside which the others are looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, sentence
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.recovery_plan import HealPlan, UnhealthyNode
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

# Seconds until what was tried in vain is tried again; it doubles from the interval on.
MOST = 600
# Seconds after which a watch that cannot look says so again; one that was never let in ends then. Long enough for systemd not to
# take it for something that ends again and again.
BLIND = 600
# Runs at once: each is a process of some 100 MB on the machine of the watch.
MOST_RUNS = 4
# A watch that was let in before ends after this many refused looks in a row. Its restart reads everything again.
REFUSALS = 3


class Nodes:
    """The Node objects of the cluster; with new credentials when the current ones are refused.

    Tokens are renewed and kubeconfigs rewritten, so a watch that runs for months reads them more than once.
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


class Run(Protocol):
    """A run of the playbook, in a process of its own."""

    def poll(self) -> int | None:
        """Its exit status, None while it goes on."""


@dataclasses.dataclass
class _Tried:
    """What has been tried for a node. ``what``: what was due; ``pause``: seconds from the end of the run to the next one."""

    what: tuple[Any, ...]
    pause: float
    not_before: float = 0.0


class Watch:
    """``look()``: a recovery_plan.HealPlan, may raise NpuError; ``start(excluded, label)``: a Run for all that is due but the hosts
    ``excluded``, whose lines begin with ``label``; ``say(line)``; ``most``: runs at once."""

    def __init__(
        self,
        look: Callable[[], HealPlan],
        start: Callable[[Sequence[str], str], Run],
        say: Callable[[str], None],
        interval: float,
        clock: Clock,
        most: int = 1,
    ) -> None:
        self._look, self._start, self._say, self._interval, self._clock, self._most = look, start, say, interval, clock, most
        self._told: list[str] | None = None
        self._waiting: list[str] = []  # those of which it was told that they wait for others
        self._tried: dict[str, _Tried] = {}
        self._runs: list[tuple[Run, list[UnhealthyNode]]] = []
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
        self._reap()
        try:
            plan = self._look()
        except NpuError as exc:
            self._blind(exc)
            return
        self._let_in, self._blind_since, self._refusals = True, None, 0
        if not self._runs:
            self._tell(plan.table())
        in_run = {entry.name for _run, entries in self._runs for entry in entries}
        # A node whose host this watch does not know may be in the inventory by now, which the run reads again.
        begin = [entry for entry in plan.due + plan.strangers if entry.name not in in_run]
        self._tried = {name: tried for name, tried in self._tried.items() if name in in_run or name in {one.name for one in begin}}
        if not any(self._is_time(entry) for entry in begin):
            return
        if len(self._runs) >= self._most:
            self._tell_waiting([entry.name for entry in begin], sorted(in_run))
            return
        self._begin(begin, [entry for _run, entries in self._runs for entry in entries], plan)

    def _is_time(self, entry: UnhealthyNode) -> bool:
        tried = self._tried.get(entry.name)
        return tried is None or tried.what != _what(entry) or self._clock.monotonic() >= tried.not_before

    def _begin(self, begin: list[UnhealthyNode], in_run: list[UnhealthyNode], plan: HealPlan) -> None:
        for entry in begin:
            before = self._tried.get(entry.name)
            same = before is not None and before.what == _what(entry)
            pause = min(before.pause * 2, MOST) if before is not None and same else self._interval
            self._tried[entry.name] = _Tried(_what(entry), pause)
        due = [entry for entry in plan.due if entry in begin]
        strangers = [entry for entry in plan.strangers if entry in begin]
        if due:
            self._say("Recovers %s:" % _names(due))
        if strangers:
            self._say("Reloads the inventory, for %s:" % _names(strangers))
        label = "[%s] " % _names(begin) if in_run else ""
        self._runs.append((self._start([entry.host or entry.name for entry in in_run], label), begin))
        self._waiting = []

    def _reap(self) -> None:
        """See which runs have ended."""
        for run, entries in list(self._runs):
            status = run.poll()
            if status is None:
                continue
            self._runs.remove((run, entries))
            for entry in entries:
                tried = self._tried[entry.name]
                tried.not_before = self._clock.monotonic() + tried.pause
            whose = "" if not self._runs else " of %s" % _names(entries)
            self._say("The recovery%s has ended with status %d; watches again." % (whose, status))
            self._told = None

    def _tell_waiting(self, names: list[str], others: list[str]) -> None:
        if names != self._waiting:
            self._waiting = names
            text = "%s: also due; as many recoveries are running as npu_heal_max_parallel and npu_upgrade_max_parallel allow (%s)."
            self._say(text % (", ".join(names), ", ".join(others)))

    def _blind(self, exc: NpuError) -> None:
        """The watch cannot read the nodes. Raises NpuError when that does not end by itself."""
        now = self._clock.monotonic()
        if self._blind_since is None:
            self._blind_since = self._reminded = now
        self._refusals = self._refusals + 1 if _is_refusal(exc) else 0
        # The runs that it has begun end with the watch.
        if not self._runs and self._refusals >= REFUSALS and (self._let_in or now - self._blind_since >= BLIND):
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


def _what(entry: UnhealthyNode) -> tuple[Any, ...]:
    return entry.verdict, entry.wedge and entry.wedge.since


def _names(entries: Iterable[UnhealthyNode]) -> str:
    return ", ".join(entry.name for entry in entries)
