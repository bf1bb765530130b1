# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller dies at call k, for every k: the next run finishes, and the node has rebooted once.

A maintenance of one node with one pod that has to leave. All mutating calls count, those to the API and those to the host.
At call k = 1, 2, ... until a run ends without reaching k, the controller is killed before the call reaches its target
(`kill-before`) and right after it did (`kill-after`), or the API is gone for some time without the call (`dark-before`) or
after it (`dark-after`). Every other time the node is in somebody else's cordon, which must stay.

What a run of the tests covers is chosen by the environment, because all of it takes an hour:
  NPU_CRASH=spread   the default: a kill at each kind of call, before it or after it
  NPU_CRASH=all      all four, at every k (make crash-test)
  NPU_CRASH="kill-after:7,dark-before:npu_boot rebooted"   just these, by number or by a pattern in the
                   call's words, in which NODE stands for the node
make test crashes at three calls (dev/test). The nodes share the work. The table of what was done is in .cache/results/crash.json.
"""

from __future__ import annotations

import collections
import json
import os
import re
import threading
import time

import pytest
from crash import Fate, Gate
from lab import CHECKOUT
from rollout import NPU_NODES, OTHER, TAKEOVER, proof, run, upgrade, version_of, watch
from workloads import Team

DARK = 30
KILLS = (Fate.KILL_BEFORE, Fate.KILL_AFTER)
FATES = (*KILLS, Fate.DARK_BEFORE, Fate.DARK_AFTER)
NODES = os.environ.get("NPU_CRASH_NODES", ",".join(NPU_NODES)).split(",")


class Agenda:
    """What is still to be done, for several nodes at once. A fate ends when a run did not reach its k."""

    def __init__(self, wanted: str, calls: list[str]) -> None:
        self._lock = threading.Lock()
        self._next = dict.fromkeys(FATES if wanted == "all" else (), 1)
        self._fixed = collections.deque()
        if wanted == "spread":  # by words: a heartbeat more or less moves the numbers
            self._fixed.extend((KILLS[position % 2], f"^{re.escape(what)}$") for position, what in enumerate(dict.fromkeys(calls)))
        elif wanted != "all":
            self._fixed.extend((Fate(fate), int(at) if at.isdigit() else at)
                               for fate, _colon, at in (word.partition(":") for word in wanted.split(",")))

    def take(self) -> tuple[Fate, int | str] | None:
        with self._lock:
            if self._fixed:
                return self._fixed.popleft()
            for fate, at in self._next.items():
                self._next[fate] = at + 1
                return fate, at
            return None

    def end(self, fate: Fate) -> None:
        with self._lock:
            self._next.pop(fate, None)


def crash(lab, team: Team, node: str, fate: Fate, at: int | str) -> dict:
    """One maintenance with a crash, and the run after it. What was wrong is in `problems`."""
    version = OTHER[version_of(lab, node)]
    foreign = (len(at) if isinstance(at, str) else at + FATES.index(fate)) % 2 == 0
    lab.kubectl("uncordon", node)
    team.wait_available(f"on-{node}", 1)
    if foreign:
        lab.kubectl("cordon", node)
    gate = Gate(at.replace("NODE", node) if isinstance(at, str) else at, fate, dark=DARK)
    common = {"npu_driver_version": version, "npu_upgrade_max_parallel": len(NODES)}
    begun = time.monotonic()
    with watch(lab) as observer:
        problems = []
        with run(lab, f"--limit={node}", gate=gate, **common) as first:
            status = first.wait()
        if gate.dead or (fate in (Fate.DARK_BEFORE, Fate.DARK_AFTER) and status != 0):
            with run(lab, f"--limit={node}", **common, **TAKEOVER) as second:
                if second.wait() != 0:
                    problems.append(f"the second run fails: {second.text[-3000:]}")
        elif status != 0:
            problems.append(f"exit status {status} without a crash: {first.text[-3000:]}")
        problems += proof(lab, observer, {node: 1}, version, max_parallel=0, only=node)
    call = gate.calls[gate.at - 1] if gate.reached else None
    return {"node": node, "fate": fate.value, "at": gate.at, "reached": gate.reached, "foreign_cordon": foreign,
            "call": call and call.what.replace(node, "NODE"), "target": call and call.target,
            "seconds": round(time.monotonic() - begun, 1), "problems": problems}


def work(lab, team: Team, node: str, agenda: Agenda, done: list[dict]) -> None:
    while item := agenda.take():
        fate, at = item
        try:
            result = crash(lab, team, node, fate, at)
        except BaseException as error:  # pylint: disable=broad-exception-caught  # told below, by the test
            result = {"node": node, "fate": fate.value, "at": at, "reached": True, "problems": [f"{type(error).__name__}: {error}"]}
        done.append(result)
        if not result["reached"]:
            agenda.end(fate)
            if isinstance(at, str):
                result["problems"].append(f"there was no call {at}")
        print(json.dumps({key: value for key, value in result.items() if key != "problems"}),
              *result["problems"], sep="\n    ", flush=True)
        if result["problems"]:
            return  # this node is no longer what the next crash would begin with


@pytest.fixture
def pods(idle):
    """One pod on each node that has to leave it. It has nowhere else to go, and comes back afterwards."""
    with Team(idle, "crash-test") as team:
        for node in NODES:
            team.deploy(f"on-{node}", node=node, budget={"maxUnavailable": 1})
        yield team


def reference(lab, node: str) -> list[str]:
    """The calls of a maintenance that nothing disturbs."""
    gate = Gate()
    with watch(lab) as observer:
        version = OTHER[version_of(lab, node)]
        text = upgrade(lab, f"--limit={node}", gate=gate, npu_driver_version=version, npu_upgrade_max_parallel=len(NODES))
        assert proof(lab, observer, {node: 1}, version, only=node) == [], text[-3000:]
    return [call.what.replace(node, "NODE") for call in gate.calls]


@pytest.mark.core
def test_every_crash_is_survived(idle, pods):
    wanted, calls = os.environ.get("NPU_CRASH", "spread"), []
    if wanted in ("all", "spread"):
        # The second one: both releases are staged then, as for every crash.
        reference(idle, NODES[0])
        calls = reference(idle, NODES[0])
        assert len(calls) > 5, calls  # or the proxies see nothing
    agenda = Agenda(wanted, calls)
    done: list[dict] = []
    workers = [threading.Thread(target=work, args=(idle, pods, node, agenda, done)) for node in NODES]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    report = CHECKOUT / ".cache" / "results" / "crash.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps({"calls": calls, "crashes": done}, indent=1), encoding="utf-8")
    bad = [result for result in done if result["problems"]]
    assert not bad, json.dumps(bad, indent=1)
    assert done
    if wanted == "all":
        # A heartbeat more or less moves the numbers; no call may have been left out by that.
        for fate in FATES:
            hit = {result["call"] for result in done if result["fate"] == fate.value and result["reached"]}
            assert set(calls) <= hit, f"{fate.value}: never at {sorted(set(calls) - hit)}"
