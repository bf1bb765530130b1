# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which crashes are still to be tried, and trying them on several nodes at once.

What is tried is chosen by the environment, because all of it takes half an hour:
  NPU_CRASH=spread   the default: at each kind of call a kill and a silent API, one of them before it and the other after it
  NPU_CRASH=all      all four fates, at call 1, 2, ... until a run ends without reaching it; then at every kind of call
                     that was missed, because a heartbeat more or less moves the numbers (make crash-test)
  NPU_CRASH="kill-after:7,dark-before:npu_trial_boot rebooted"   just these, by number or by a pattern in the
                     call's kind, in which NODE stands for the node
  NPU_CRASH_NODES    the nodes that share the work, with commas between
"""

from __future__ import annotations

import collections
import json
import os
import re
import threading
from collections.abc import Callable

from support.crash.gate import Fate, kind
from support.paths import CHECKOUT

KILLS = (Fate.KILL_BEFORE, Fate.KILL_AFTER)
FATES = (*KILLS, Fate.DARK_BEFORE, Fate.DARK_AFTER)
# At every other kind of call; together they are all fates.
SPREAD = ((Fate.KILL_BEFORE, Fate.DARK_AFTER), (Fate.KILL_AFTER, Fate.DARK_BEFORE))

# (node, fate, at) -> {"node", "fate", "at", "reached", "call", "problems", ...}
Crash = Callable[[str, Fate, "int | str"], dict]


class Agenda:
    """What is still to be done, for several workers at once.

    :param wanted: see NPU_CRASH
    :param calls: the calls of a run that nothing disturbs, in their order; without a node's name
    """

    def __init__(self, wanted: str, calls: list[str]) -> None:
        self.wanted = wanted
        self.kinds = list(dict.fromkeys(map(kind, calls)))
        self._lock = threading.Lock()
        self._next = dict.fromkeys(FATES if wanted == "all" else (), 1)
        self._fixed = collections.deque()
        if wanted == "spread":
            self._fixed.extend((fate, _exactly(what)) for place, what in enumerate(self.kinds) for fate in SPREAD[place % 2])
        elif wanted != "all":
            self._fixed.extend(
                (Fate(fate), int(at) if at.isdigit() else at)
                for fate, _colon, at in (word.partition(":") for word in wanted.split(","))
            )

    def take(self) -> tuple[Fate, int | str] | None:
        with self._lock:
            if self._fixed:
                return self._fixed.popleft()
            for fate, at in self._next.items():
                self._next[fate] = at + 1
                return fate, at
            return None

    def end(self, fate: Fate) -> None:
        """A run did not reach its number: there is none beyond it."""
        with self._lock:
            self._next.pop(fate, None)

    def missed(self, done: list[dict]) -> list[tuple[Fate, str]]:
        """(fate, kind of call) that no crash has been at. Empty unless all crashes are wanted (`all`)."""
        hit = {(result["fate"], kind(result["call"])) for result in done if result["reached"]}
        fates = FATES if self.wanted == "all" else ()
        return [(fate, what) for fate in fates for what in self.kinds if (fate.value, what) not in hit]

    def again(self, missed: list[tuple[Fate, str]]) -> None:
        with self._lock:
            self._fixed.extend((fate, _exactly(what)) for fate, what in missed)


def _exactly(what: str) -> str:
    return f"^{re.escape(what)}$"


def wanted() -> str:
    return os.environ.get("NPU_CRASH", "spread")


def needs_calls() -> bool:
    """Whether the choice goes by the calls of a run that nothing disturbs."""
    return wanted() in ("all", "spread")


def try_all(crash: Crash, calls: list[str], nodes: list[str], report: str) -> None:
    """All crashes that are wanted, shared by the nodes; AssertionError with everything that went wrong.

    :param calls: of a run that nothing disturbs; may be empty unless `needs_calls`
    :param report: the name of the file in .cache/results with what was done
    """
    agenda = Agenda(wanted(), calls)
    done: list[dict] = []
    _share(crash, nodes, agenda, done)
    if missed := agenda.missed(done):
        agenda.again(missed)
        _share(crash, nodes, agenda, done)
    path = CHECKOUT / ".cache" / "results" / report
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"calls": calls, "crashes": done}, indent=1), encoding="utf-8")
    bad = [result for result in done if result["problems"]]
    assert not bad, json.dumps(bad, indent=1)
    assert done
    assert not agenda.missed(done), f"never crashed at {agenda.missed(done)}"


def _share(crash: Crash, nodes: list[str], agenda: Agenda, done: list[dict]) -> None:
    workers = [threading.Thread(target=_work, args=(crash, node, agenda, done)) for node in nodes]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _work(crash: Crash, node: str, agenda: Agenda, done: list[dict]) -> None:
    while item := agenda.take():
        fate, at = item
        try:
            result = crash(node, fate, at)
        except BaseException as error:  # pylint: disable=broad-exception-caught  # told below, by the test
            result = {
                "node": node,
                "fate": fate.value,
                "at": at,
                "reached": True,
                "call": "",
                "problems": [f"{type(error).__name__}: {error}"],
            }
        done.append(result)
        if not result["reached"]:
            agenda.end(fate)
            if isinstance(at, str):
                result["problems"].append(f"there was no call {at} in {result.get('calls')}")
        print(
            json.dumps({key: value for key, value in result.items() if key != "problems"}),
            *result["problems"],
            sep="\n    ",
            flush=True,
        )
        if result["problems"]:
            return  # this node is no longer what the next crash would begin with
