# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for conditions on the agent's state."""

from __future__ import annotations

import asyncio
from typing import Callable, Optional


class Changed:
    """One notification for all state in the event loop's thread: after each change, all waiters check their condition again."""

    def __init__(self) -> None:
        self._bell = asyncio.Event()

    def notify(self) -> None:
        """Let all waiters check their condition again."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    async def until(self, condition: Callable[[], bool], timeout: Optional[float] = None) -> bool:
        """Wait until ``condition()`` holds; False if ``timeout`` seconds (None: no limit) pass first."""
        try:
            async with asyncio.timeout(timeout):
                while not condition():
                    await self._bell.wait()
        except TimeoutError:
            return False
        return True
