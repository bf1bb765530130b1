# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report of which only a part took effect: nothing of it may stay when the chips respond again."""

from __future__ import annotations

import asyncio

import pytest
from test_node_conditions import until
from test_wedge_watch import LABEL, WEDGED

from npu_node_agent.changed import Changed
from npu_node_agent.kube import Api
from npu_node_agent.metrics import Metrics
from npu_node_agent.report import EVENTS, HEALTHY, Reporter

MARKER = {"since": "2026-11-21T21:14:51Z", "reason": "npu-smi failed", "output": "", "probes": 3, "boot_id": "b"}


@pytest.fixture
def reported(api):
    """reported(act): what ``act(reporter)`` brings about, with one that retries quickly."""

    def run(act):
        async def run_both():
            reporter = Reporter(Api(api.url, "", ""), "node-1", Changed(), Metrics(), retry=0.01)
            task = asyncio.create_task(reporter.run())
            reporter.want(HEALTHY)
            await until(lambda: api.requests)
            await asyncio.wait_for(act(reporter), 30)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(run_both())

    return run


def clean(api):
    return WEDGED not in api.annotations and LABEL not in api.labels and not api.events


@pytest.mark.parametrize("call", [("POST", EVENTS), ("PATCH", "/api/v1/nodes/node-1")])
def test_a_wedge_that_ends_before_its_report_succeeds(api, reported, call):
    """The Event is refused, or the answer to the annotation is lost; meanwhile the chips respond again."""

    async def act(reporter):
        if call[0] == "POST":
            api.refuses = lambda *asked: asked == call
        else:
            api.loses = lambda *asked: asked == call
        reporter.want(MARKER)
        await until(lambda: WEDGED in api.annotations)
        await until(lambda: call in api.calls("PATCH", "POST"))
        reporter.want(HEALTHY)
        await until(lambda: clean(api))

    reported(act)


def test_the_event_goes_by_a_later_try(api, reported):
    """The annotation is removed by the first one, of which the rest fails."""

    async def act(reporter):
        reporter.want(MARKER)
        await until(lambda: api.events)
        api.refuses = lambda method, _path: method == "DELETE"
        reporter.want(HEALTHY)
        await until(lambda: api.calls("DELETE"))
        assert WEDGED not in api.annotations and api.events
        api.refuses = lambda *_asked: False
        await until(lambda: clean(api))

    reported(act)
