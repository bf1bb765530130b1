# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking calls outside of the event loop, with a time limit."""

from __future__ import annotations

import asyncio
import threading
from typing import Callable, TypeVar

Result = TypeVar("Result")


class Background:
    """Runs one function at a time in a separate thread.

    The thread is a daemon and is never joined, so that a call that hangs in the kernel blocks neither the agent nor the exit of the
    process. asyncio's own executor would block both.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = False

    @property
    def busy(self) -> bool:
        """Whether the last call is still running."""
        return self._busy

    async def call(self, function: Callable[[], Result], timeout: float) -> Result:
        """The result of ``function()``. Raises TimeoutError after ``timeout`` seconds, and is busy until the function returns."""
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
            # Before the result is delivered, because the next call may come while this thread still exits.
            self._busy = False
            try:
                loop.call_soon_threadsafe(deliver, *outcome)
            except RuntimeError:
                pass  # the loop is closed, because the agent has stopped

        self._busy = True
        try:
            threading.Thread(target=work, name=self._name, daemon=True).start()
        except RuntimeError:
            self._busy = False  # the thread could not be created
            raise
        async with asyncio.timeout(timeout):
            return await result
