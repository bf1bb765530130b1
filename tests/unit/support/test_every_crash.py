# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The enumeration leaves no crash out, and hides none that went wrong."""

from __future__ import annotations

import json
import re
import threading

import pytest

from support.crash import every_crash
from support.crash.every_crash import FATES
from support.crash.gate import Fate, kind

CALLS = [
    "PATCH a maintenance:cordon/1",
    "PATCH a maintenance:cordon/2",
    "npu_trial_boot rebooted",
    "PUT slots:NODE",
    "PUT slots:none",
]


@pytest.fixture(autouse=True)
def _results(tmp_path, monkeypatch):
    monkeypatch.setattr(every_crash, "CHECKOUT", tmp_path)


class Runs:
    """Runs that make the calls CALLS; with `moved`, a heartbeat has put one more before them."""

    def __init__(self, moved=(), bad=()):
        self.moved, self.bad = set(moved), set(bad)
        self.lock = threading.Lock()
        self.made = []

    def __call__(self, node, fate, at):
        calls = (["PATCH a maintenance:cordon/9"] if (fate, at) in self.moved else []) + CALLS
        if isinstance(at, str):
            number = next((number for number, what in enumerate(calls, 1) if re.search(at, kind(what))), None)
        else:
            number = at
        reached = number is not None and number <= len(calls)
        with self.lock:
            self.made.append((fate, number))
        return {
            "node": node,
            "fate": fate.value,
            "at": number,
            "reached": reached,
            "call": calls[number - 1] if reached else None,
            "problems": ["rebooted twice"] if (fate, at) in self.bad else [],
        }


def test_all_is_every_fate_at_every_call(monkeypatch):
    monkeypatch.setenv("NPU_CRASH", "all")
    runs = Runs()
    every_crash.try_all(runs, CALLS, ["npu-a"], "crash.json")
    assert runs.made == [(fate, number) for fate in FATES for number in range(1, len(CALLS) + 2)]


def test_what_a_moved_number_missed_is_done_by_its_words(monkeypatch, tmp_path):
    monkeypatch.setenv("NPU_CRASH", "all")
    runs = Runs(moved={(Fate.KILL_AFTER, 3)})  # at "cordon" again, instead of at the reboot
    every_crash.try_all(runs, CALLS, ["npu-a", "npu-b", "npu-c"], "crash.json")
    assert runs.made.count((Fate.KILL_AFTER, 3)) == 2
    done = json.loads((tmp_path / ".cache" / "results" / "crash.json").read_text(encoding="utf-8"))["crashes"]
    assert {crash["call"] for crash in done if crash["fate"] == "kill-after"} >= {"npu_trial_boot rebooted"}


def test_what_is_never_reached_fails(monkeypatch):
    monkeypatch.setenv("NPU_CRASH", "all")
    with pytest.raises(AssertionError, match="there was no call"):
        every_crash.try_all(Runs(), [*CALLS, "npu_trial_boot confirmed"], ["npu-a"], "crash.json")


def test_spread_is_a_kill_and_a_silent_api_at_each_kind(monkeypatch):
    monkeypatch.setenv("NPU_CRASH", "spread")
    runs = Runs()
    every_crash.try_all(runs, CALLS, ["npu-a"], "crash.json")
    assert runs.made == [
        *((Fate.KILL_BEFORE, 1), (Fate.DARK_AFTER, 1), (Fate.KILL_AFTER, 3), (Fate.DARK_BEFORE, 3)),
        *((Fate.KILL_BEFORE, 4), (Fate.DARK_AFTER, 4), (Fate.KILL_AFTER, 5), (Fate.DARK_BEFORE, 5)),
    ]


def test_just_these(monkeypatch):
    monkeypatch.setenv("NPU_CRASH", "kill-after:2,dark-before:npu_trial_boot")
    runs = Runs()
    every_crash.try_all(runs, [], ["npu-a"], "crash.json")
    assert runs.made == [(Fate.KILL_AFTER, 2), (Fate.DARK_BEFORE, 3)]


def test_what_went_wrong_fails(monkeypatch):
    monkeypatch.setenv("NPU_CRASH", "all")
    with pytest.raises(AssertionError, match="rebooted twice"):
        every_crash.try_all(Runs(bad={(Fate.DARK_AFTER, 2)}), CALLS, ["npu-a", "npu-b"], "crash.json")


def test_a_crash_test_that_breaks_fails(monkeypatch):
    monkeypatch.setenv("NPU_CRASH", "kill-before:1")

    def broken(node, fate, at):
        raise RuntimeError("the lab is gone")

    with pytest.raises(AssertionError, match="the lab is gone"):
        every_crash.try_all(broken, [], ["npu-a"], "crash.json")
