# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Node conditions: what the process says of each state, and how the writer gets on with the API server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re

import pytest
from fakes import wait_for
from test_wedge_watch import Chips, maintenance, some_probes

from npu_node_agent import chips_condition, driver_condition
from npu_node_agent.changed import Changed
from npu_node_agent.driver_condition import NOT_LOADED, TYPE, works
from npu_node_agent.kube import Api
from npu_node_agent.metrics import Metrics
from npu_node_agent.node_conditions import NodeConditions

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
LONG_AGO = "2026-01-01T00:00:00Z"
FORBIDDEN = (403, 'nodes "node-1" is forbidden: User "agent" cannot patch resource "nodes/status"')


@pytest.fixture
def agent(agent, api):
    agent.settings.update({"node-name": "node-1", "api-server": api.url, "probe-interval": 1, "probe-timeout": 0.9})
    return agent


@pytest.fixture
def chips(agent):
    return Chips(agent)


CHIPS = chips_condition.TYPE


def told(api, kind=TYPE):
    """(status, reason) of the condition, or None."""
    found = api.conditions.get(kind)
    return found and (found["status"], found["reason"])


def both(driver, chips=None):
    """What the watch wants."""
    return {TYPE: driver, CHIPS: chips or chips_condition.unknown(driver)}


# What the process says


def test_it_follows_the_driver(agent, api, chips, ready):
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    assert "25.5.0" in api.conditions[TYPE]["message"]
    assert told(api, CHIPS) == ("True", "ChipsHealthy")
    assert api.conditions[CHIPS]["message"] == "All 8 chips of this node serve"
    chips.set("fewer")
    wait_for(lambda: told(api) == ("False", "DriverWedged"))
    wedged = api.conditions[TYPE]
    assert told(api, CHIPS) == ("Unknown", "DriverWedged") and "lists 2 of 8 chips" in api.conditions[CHIPS]["message"]
    assert "lists 2 of 8 chips" in wedged["message"] and "npuops.ascend.heal" in wedged["message"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", wedged["lastTransitionTime"])
    chips.set("good")
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    maintenance(agent, True)
    wait_for(lambda: told(api) == ("False", "DriverInMaintenance"))
    assert told(api, CHIPS) == ("Unknown", "DriverInMaintenance")
    maintenance(agent, False)
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    ready()
    wait_for(lambda: told(api) == ("False", "DriverNotLoaded"))
    assert told(api, CHIPS) == ("Unknown", "DriverNotLoaded")
    assert api.conditions["Ready"] == READY, "conditions of others stay"
    # Of each change, both are told in one call.
    assert len(api.status_patches()) == 6


def test_a_driver_that_did_not_load_says_why(agent, api, chips, ready):
    ready()

    def failed(**marker):
        path = os.path.join(agent.run_dir, "driver-failed")
        with open(path + ".new", "w", encoding="utf-8") as stream:
            json.dump({"boot_id": agent.boot_id, "reason": "insmod failed", "cause": "", **marker}, stream)
        os.rename(path + ".new", path)

    failed(boot_id="of the boot before")
    agent.start()
    wait_for(lambda: told(api) == ("False", "DriverNotLoaded"))
    step = os.path.join(agent.run_dir, "driver-step")
    with open(step, "w", encoding="utf-8") as stream:
        stream.write("loading the module drv_devmng\n")
    wait_for(lambda: told(api) == ("False", "DriverLoading"))
    assert told(api, CHIPS) == ("Unknown", "DriverLoading")
    os.unlink(step)
    failed()
    wait_for(lambda: told(api) == ("False", "DriverFailed"))
    assert "insmod failed" in api.conditions[TYPE]["message"]
    failed(cause="NoDriverForKernel", reason="no release for kernel 9.9.9" + "." * 2000)
    wait_for(lambda: told(api) == ("False", "NoDriverForKernel"))
    assert "kernel 9.9.9" in api.conditions[TYPE]["message"] and len(api.conditions[TYPE]["message"]) == 1024
    os.unlink(os.path.join(agent.run_dir, "driver-failed"))
    ready(agent.boot_id)
    wait_for(lambda: told(api) == ("True", "DriverResponds"))


def test_a_driver_counts_as_working_once_its_chips_have_answered(agent, api, chips, ready):
    """Rules that look once, at the start of a node, would be satisfied by a driver that loads and does not work."""
    agent.settings["probe-failures"] = 6
    chips.set("fails")
    agent.start()
    some_probes(chips, 3)
    assert told(api) is None and told(api, CHIPS) is None
    wait_for(lambda: told(api) == ("False", "DriverWedged"))


def test_a_driver_that_is_loaded_anew_has_to_answer_anew(agent, api, chips, ready):
    agent.settings["probe-failures"] = 999
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    ready()
    wait_for(lambda: told(api) == ("False", "DriverNotLoaded"))
    chips.set("fails")
    ready(agent.boot_id)
    some_probes(chips, 3)
    assert told(api) == ("False", "DriverNotLoaded")


def test_trouble_of_the_node_changes_nothing(agent, api, chips, ready):
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    chips.set("memory")
    some_probes(chips, 5)
    assert told(api) == ("True", "DriverResponds") and len(api.status_patches()) == 1


def test_a_chip_that_is_occupied_works(agent, api, chips, ready):
    chips.set("occupied")
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    assert told(api, CHIPS) == ("Unknown", "ChipsNotListed")


def test_an_agent_that_is_replaced_changes_nothing(agent, api, chips, ready):
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    assert agent.stop() == 0
    agent.start()
    some_probes(chips, 3)
    assert told(api) == ("True", "DriverResponds") and len(api.status_patches()) == 1


def test_a_refusal_keeps_nothing_else_from_being_reported(agent, api, chips, ready):
    api.refusals = [FORBIDDEN] * 1000
    chips.set("fails")
    agent.start()
    wait_for(lambda: "npuops.ascend/wedged" in api.annotations and api.events)
    wait_for(lambda: "may not write the conditions" in agent.read_log())
    assert told(api) is None and os.path.exists(os.path.join(agent.run_dir, "driver-suspended"))


# How it is written


def test_reasons_are_none_of_a_maintenance():
    """The controller takes conditions whose reason begins with Npu for its own, and removes them."""
    drivers = [works({}), NOT_LOADED, driver_condition.IN_MAINTENANCE, driver_condition.wedged({}), driver_condition.failed({})]
    assert {verdict.status for verdict in drivers} == {"True", "False"}
    well, ill = ({"npu": 0, "chip": 0, "bus_id": "0000:c1:00.0", "health": health} for health in ("OK", "Critical"))
    chips = [chips_condition.listed(*found) for found in (([], None), ([], "7 of 8"), ([well], None), ([well, ill], None))]
    chips += map(chips_condition.unknown, drivers)
    assert {verdict.status for verdict in chips} == {"True", "False", "Unknown"}
    for verdict in drivers + chips:
        assert re.fullmatch(r"(?!Npu)[A-Z][A-Za-z]+", verdict.reason) and verdict.message
    assert re.fullmatch(r"[a-z.]+/[A-Za-z]+", TYPE) and re.fullmatch(r"[a-z.]+/[A-Za-z]+", CHIPS)
    wedged = driver_condition.wedged({"reason": "x" * 5000})
    assert len(wedged.message) <= 1024 and len(chips_condition.unknown(wedged).message) <= 1024
    assert len(chips_condition.listed([ill] * 64, "m" * 500).message) <= 1024


@pytest.fixture
def metrics():
    return Metrics()


def pending(metrics):
    return "npuops_node_agent_report_pending 1.0\n" in metrics.render()


@pytest.fixture
def written(api, caplog, metrics):
    """written(act): what ``act(conditions)`` brings about, with a writer that retries and beats quickly."""
    caplog.set_level(logging.INFO)

    def run(act, heartbeat=3600.0, retry=0.01):
        async def run_both():
            changed = Changed()
            condition = NodeConditions(Api(api.url, "", ""), "node-1", changed, metrics, heartbeat=heartbeat, retry=retry)
            task = asyncio.create_task(condition.run())
            await asyncio.wait_for(act(condition), 30)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(run_both())

    return run


async def until(holds):
    while not holds():
        await asyncio.sleep(0.01)


def there(api, status="True", reason="DriverResponds", **fields):
    api.node["status"]["conditions"].append(
        {"type": TYPE, "status": status, "reason": reason, "message": "m", "lastTransitionTime": LONG_AGO, **fields}
    )


def test_the_transition_is_that_of_the_status(api, written):
    there(api)

    async def act(condition):
        condition.want(both(works({"version": "25.5.1"})))
        await until(lambda: "25.5.1" in api.conditions[TYPE]["message"])
        assert api.conditions[TYPE]["lastTransitionTime"] == LONG_AGO
        condition.want(both(NOT_LOADED))
        await until(lambda: told(api) == ("False", "DriverNotLoaded"))
        assert api.conditions[TYPE]["lastTransitionTime"] == api.conditions[TYPE]["lastHeartbeatTime"] > LONG_AGO

    written(act)
    assert api.conditions["Ready"] == READY


def test_each_condition_has_its_own_transition(api, written):
    """And the one that says another thing than the Node is written with the other, which does not change."""
    there(api, message=works({}).message)
    well = chips_condition.listed([{"npu": 0, "chip": 0, "bus_id": "0000:c1:00.0", "health": "OK"}], None)

    async def act(condition):
        condition.want(both(works({}), well))
        await until(lambda: CHIPS in api.conditions)
        assert api.conditions[TYPE]["lastTransitionTime"] == LONG_AGO
        assert api.conditions[CHIPS]["lastTransitionTime"] > LONG_AGO
        there(api, "False", "Broken", type="example.com/Other")
        condition.want(both(works({})))
        await until(lambda: told(api, CHIPS) == ("Unknown", "DriverResponds"))
        assert api.conditions[TYPE]["lastTransitionTime"] == LONG_AGO
        assert told(api, "example.com/Other") == ("False", "Broken")

    written(act)


def test_what_is_said_already_is_not_written(api, written):
    there(api, message=works({}).message)
    there(api, "Unknown", type=CHIPS, message=chips_condition.unknown(works({})).message)

    async def act(condition):
        condition.want(both(works({})))
        await until(lambda: api.calls("GET"))
        condition.want(both(NOT_LOADED))
        await until(api.status_patches)

    written(act)
    assert len(api.status_patches()) == 1


def test_a_heartbeat_writes_it_again(api, written):
    async def act(condition):
        condition.want(both(works({})))
        await until(lambda: TYPE in api.conditions)
        since = api.conditions[TYPE]["lastTransitionTime"]
        with api.lock:
            api.node["status"]["conditions"] = [READY]
        await until(lambda: TYPE in api.conditions)
        assert api.conditions[TYPE]["lastTransitionTime"] >= since

    written(act, heartbeat=0.2)


def test_nobody_to_write_to(api, written, caplog):
    async def act(condition):
        with api.stopped():
            condition.want(both(works({})))
            await until(lambda: "cannot write the conditions" in caplog.text)
            condition.want(both(NOT_LOADED))
        await until(lambda: told(api) == ("False", "DriverNotLoaded"))

    written(act)


def test_a_conflict_is_retried(api, written):
    api.refusals = [(409, "the object has been modified")] * 2

    async def act(condition):
        condition.want(both(works({})))
        await until(lambda: TYPE in api.conditions)

    written(act)
    assert len(api.status_patches()) == 3


def test_a_write_whose_answer_is_lost_is_repeated_although_the_verdict_is_the_old_one_again(api, written):
    """What the Node has is not known then."""

    async def act(condition):
        condition.want(both(works({})))
        await until(lambda: TYPE in api.conditions)
        api.loses = lambda _method, path: path.endswith("/status")
        condition.want(both(NOT_LOADED))
        await until(lambda: api.conditions[TYPE]["status"] == "False")
        api.loses = lambda _method, _path: False
        condition.want(both(works({})))
        await until(lambda: api.conditions[TYPE]["status"] == "True")

    written(act, retry=0.3)


def test_conditions_that_cannot_be_written_any_more_are_pending(api, written, metrics):
    async def act(condition):
        condition.want(both(works({})))
        await until(lambda: TYPE in api.conditions)
        assert not pending(metrics)
        api.refusals = [FORBIDDEN] * 1000
        await until(lambda: pending(metrics))
        api.refusals = []
        await until(lambda: not pending(metrics))

    written(act, heartbeat=0.02)


def test_a_refusal_is_told_once_and_the_next_heartbeat_tries_again(api, written, caplog, metrics):
    api.refusals = [FORBIDDEN] * 3

    async def act(condition):
        condition.want(both(works({})))
        await until(lambda: len(api.status_patches()) == 3)
        assert not pending(metrics), "without the admission policy, it never may"
        await until(lambda: TYPE in api.conditions)

    written(act, heartbeat=0.05)
    assert caplog.text.count("may not write the conditions") == 1
    assert len(api.status_patches()) == 4


def test_without_an_api_server_nothing_is_done(caplog):
    async def act():
        condition = NodeConditions(None, "node-1", Changed(), Metrics())
        condition.want(both(NOT_LOADED))
        task = asyncio.create_task(condition.run())
        await asyncio.sleep(0.05)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(act())
