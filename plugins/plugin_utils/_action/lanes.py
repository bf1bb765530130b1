# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions that are asked at once in threads, each with a limit: one that is never answered delays no other."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Lanes(Generic[_Answer]):
    """Threads that take one name after the other. One that does not come back is replaced, and what it finds later is lost."""

    def __init__(self, function: Callable[[str], _Answer], late: _Answer, limit: float) -> None:
        """``function``: must not raise; ``late``: what stands for its answer when ``limit`` seconds are over."""
        self._function, self._late, self._limit = function, late, limit
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        # None: it has begun.
        self._told: queue.SimpleQueue[tuple[str, _Answer | None]] = queue.SimpleQueue()
        self.given_up: set[str] = set()

    def run(self, names: Iterable[str], number: int) -> dict[str, _Answer]:
        """The answer for each of the names, which are distinct. ``number``: how many are asked at once, at least one."""
        names = list(names)
        for name in names:
            self._waiting.put(name)
        for _lane in range(min(max(number, 1), len(names))):
            self._start()
        answers: dict[str, _Answer] = {}
        deadlines: dict[str, float] = {}  # in the order in which they end
        while len(answers) < len(names):
            first = next(iter(deadlines.values()), None)
            try:
                name, answer = self._told.get(timeout=None if first is None else max(first - time.monotonic(), 0))
            except queue.Empty:
                name, answer = next(iter(deadlines)), self._late
                self.given_up.add(name)
                self._start()
            if answer is None:
                deadlines[name] = time.monotonic() + self._limit
            elif name not in answers:
                answers[name] = answer
                del deadlines[name]
        return answers

    def _start(self) -> None:
        # Each in its own copy of what Ansible keeps about the task that runs.
        threading.Thread(target=contextvars.copy_context().run, args=(self._lane,), daemon=True).start()

    def _lane(self) -> None:
        while True:
            try:
                name = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._told.put((name, None))
            self._told.put((name, self._function(name)))
            if name in self.given_up:
                return
