# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual time, and tasks that take turns in it: one thread, so that the same schedule always takes the same course.

A task is a greenlet. It runs until it sleeps; then whatever is due next runs. Nothing else switches between tasks.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

import greenlet

START = 1_790_000_000.0  # seconds since 1970, in 2026


class Timeline:
    """``time``: seconds since 1970."""

    def __init__(self) -> None:
        self.time = START
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._hub = greenlet.getcurrent()

    def at(self, delay: float, action: Callable[[], object]) -> None:
        """Call ``action`` in ``delay`` seconds. It must not sleep."""
        heapq.heappush(self._agenda, (self.time + delay, next(self._order), action))

    def start(self, delay: float, task: Callable[[], None]) -> None:
        """Run ``task``, which may sleep, from ``delay`` seconds on. What it raises, ``run`` raises."""
        self.at(delay, greenlet.greenlet(task, self._hub).switch)

    def sleep(self, seconds: float) -> None:
        """For a task."""
        heapq.heappush(self._agenda, (self.time + max(seconds, 0.0), next(self._order), greenlet.getcurrent().switch))
        self._hub.switch()

    def run(self, until: Callable[[], bool], most: float) -> bool:
        """Let time pass until ``until()`` is true. False when that does not come about within ``most`` seconds."""
        end = self.time + most
        while not until():
            if not self._agenda or self._agenda[0][0] > end:
                return False
            self.time, _order, action = heapq.heappop(self._agenda)
            action()
        return True
