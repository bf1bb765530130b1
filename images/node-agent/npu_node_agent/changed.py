# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a condition over the agent's state."""

from __future__ import annotations

import asyncio
from typing import Callable, Optional


class Changed:
    """One bell for all state of the event loop's thread: whoever changes something rings, waiters look again."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()

    def notify(self) -> None:
        """Make everybody who waits look at the state again."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    async def until(self, condition: Callable[[], bool], timeout: Optional[float] = None) -> bool:
        """Wait until ``condition()`` holds; False when ``timeout`` seconds (None: no limit) passed first."""
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await self._bell.wait()
        except TimeoutError:
            return False
        return True
