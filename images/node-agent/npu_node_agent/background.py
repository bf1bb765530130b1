# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking work beside the event loop, which never waits for it longer than it wants to."""

from __future__ import annotations

import asyncio
import threading
from typing import Callable, TypeVar

Result = TypeVar("Result")


class Background:
    """Runs one function at a time in a thread of its own.

    The thread is a daemon and nobody joins it: a call that hangs in the kernel keeps neither the agent from working
    nor the process from ending. asyncio's own executor would do both.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = False

    @property
    def busy(self) -> bool:
        """Is the last call still running?"""
        return self._busy

    async def call(self, function: Callable[[], Result], timeout: float) -> Result:
        """``function()``; TimeoutError after ``timeout`` seconds, and then busy until it returns after all."""
        if self.busy:
            raise TimeoutError("the last call has not returned yet")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Result] = loop.create_future()

        def deliver(method: str, value: object) -> None:
            if not result.done():
                getattr(result, method)(value)

        def work() -> None:
            outcome: tuple[str, object]
            try:
                outcome = ("set_result", function())
            except Exception as exc:
                outcome = ("set_exception", exc)
            # Before anybody hears of it: the thread itself lives on for a moment, and the next call may come in that.
            self._busy = False
            try:
                loop.call_soon_threadsafe(deliver, *outcome)
            except RuntimeError:
                pass  # the loop is closed: the agent has stopped meanwhile

        self._busy = True
        try:
            threading.Thread(target=work, name=self._name, daemon=True).start()
        except RuntimeError:
            self._busy = False  # no thread to be had
            raise
        async with asyncio.timeout(timeout):
            return await result
