# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking work beside the event loop."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from npu_node_agent.background import Background


def test_a_thread_that_takes_its_time_to_end_does_not_refuse_the_next_call():
    mine = threading.local()

    class SlowEnd:
        def __del__(self):
            time.sleep(0.2)

    def work():
        mine.kept = SlowEnd()  # taken down with the thread, after the work has returned
        return threading.current_thread()

    async def twice():
        background = Background("test")
        first = await background.call(work, 10)
        assert first.is_alive()
        return await background.call(lambda: "done", 10)

    assert asyncio.run(twice()) == "done"


def test_a_call_that_does_not_return_refuses_the_next_until_it_does():
    returns = threading.Event()

    async def scenario():
        background = Background("test")
        with pytest.raises(TimeoutError):
            await background.call(returns.wait, 0.05)
        assert background.busy
        with pytest.raises(TimeoutError, match="not returned yet"):
            await background.call(lambda: "too early", 10)
        returns.set()
        while background.busy:
            await asyncio.sleep(0.01)
        return await background.call(lambda: "done", 10)

    assert asyncio.run(scenario()) == "done"


def test_an_error_arrives_where_the_call_was_made():
    def work():
        raise ValueError("no")

    async def scenario():
        background = Background("test")
        with pytest.raises(ValueError, match="no"):
            await background.call(work, 10)
        return background.busy

    assert asyncio.run(scenario()) is False
