# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several controllers on one fake fleet at once, in virtual time and always in the same order.

`SharedClock.run` gives each a thread, but only one of them runs: until it sleeps, which is when the one that is due next goes on.
"""

from __future__ import annotations

import threading

from support.fleet.fake_fleet import Clock


class SharedClock(Clock):
    """The clock of a World that `run` shares among several."""

    def __init__(self):
        super().__init__()
        self._sleepers = {}  # thread -> (when it is due, its turn)
        self._idle = threading.Event()

    def sleep(self, seconds):
        thread = threading.current_thread()
        if thread not in self._sleepers:
            super().sleep(seconds)
            return
        turn = threading.Event()
        self._sleepers[thread] = (self.time + seconds, turn)
        self._idle.set()
        turn.wait()

    def run(self, functions, most=100_000):
        """Run all of `functions` to their end; returns what each returned, or the exception it raised."""
        results = [None] * len(functions)

        def body(number, function, thread_turn):
            thread_turn.wait()
            try:
                results[number] = function()
            except BaseException as exc:
                results[number] = exc
            finally:
                del self._sleepers[threading.current_thread()]
                self._idle.set()

        end = self.time + most
        for number, function in enumerate(functions):
            turn = threading.Event()
            thread = threading.Thread(target=body, args=(number, function, turn), daemon=True)
            self._sleepers[thread] = (self.time, turn)
            thread.start()
        while self._sleepers:
            when, turn = min(self._sleepers.values(), key=lambda entry: entry[0])
            assert when < end, "they wait for each other"
            super().sleep(max(when - self.time, 0))
            self._idle.clear()
            turn.set()
            self._idle.wait()
        return results
