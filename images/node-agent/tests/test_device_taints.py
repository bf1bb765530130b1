# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DeviceTaintRules for chips that do not serve: what the process keeps, and how the writer gets on with the API server."""

from __future__ import annotations

import asyncio
import copy
import logging
import os

import pytest
from fakes import wait_for
from test_node_conditions import CHIPS, FORBIDDEN, told, until
from test_wedge_watch import Chips, maintenance, some_probes

from npu_node_agent import taint_rule
from npu_node_agent.changed import Changed
from npu_node_agent.device_taints import RULES, DeviceTaints
from npu_node_agent.kube import Api
from npu_node_agent.physical_ids import PhysicalIds

# The card n has the chip with the physical ID 7 - n: nothing may take one for the other.
REVERSED = """printf '\\tChip Physical ID :%d\\n\\tNPU ID :%d\\n\\tChip ID :0\\n' "$5" $((7 - $5))"""


def device(physical, name=None):
    attributes = {"deviceType": {"string": "Ascend910B"}, "physicId": {"int": physical}}
    return {"name": name or "npu-%d" % physical, "attributes": attributes}


def published(*devices, node="node-1", pool="node-1", driver="npu.huawei.com", generation=1):
    """A ResourceSlice."""
    spec = {"nodeName": node, "driver": driver, "pool": {"name": pool, "generation": generation}, "devices": list(devices)}
    return {"metadata": {"name": "slice"}, "spec": spec}


@pytest.fixture
def agent(agent, api):
    agent.settings.update({"node-name": "node-1", "api-server": api.url, "probe-interval": 1, "probe-timeout": 0.9})
    agent.settings["device-taints"] = "true"
    api.slices = [published(*map(device, range(8)))]
    return agent


@pytest.fixture
def chips(agent):
    chips = Chips(agent)
    chips.places(REVERSED)
    return chips


# What the process keeps


def test_a_chip_that_does_not_serve_has_a_rule_until_it_serves(agent, api, chips, ready):
    chips.faults("echo 'Error Code : ABCDEF12 80E18402'")
    agent.start()
    wait_for(lambda: told(api, CHIPS) == ("True", "ChipsHealthy"))
    chips.list("Critical", "OK", "Alarm")
    wait_for(lambda: len(api.taints()) == 2)
    assert api.taints() == {"npu-7": "80E18402", "npu-5": "80E18402"}
    assert api.rules["node-1.npu-7.npuops"] == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": "node-1.npu-7.npuops",
            "labels": {"npuops.ascend/node": "node-1"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "uid-1"}],
            "resourceVersion": "1",
        },
        "spec": {
            "deviceSelector": {"driver": "npu.huawei.com", "pool": "node-1", "device": "npu-7"},
            "taint": {"key": "npuops.ascend/unhealthy", "value": "80E18402", "effect": "None"},
        },
    }
    chips.list("Critical", "OK", "OK")
    wait_for(lambda: api.taints() == {"npu-7": "80E18402"})
    # Why may change.
    chips.faults("echo 'Error Code : NA'")
    chips.list("UNKNOWN")
    wait_for(lambda: api.taints() == {"npu-7": "UNKNOWN"})
    chips.list("OK")
    wait_for(lambda: not api.taints())
    assert "npu-7 is 80E18402" in agent.read_log()


def test_a_chip_that_serves_has_none(agent, api, chips, ready):
    """As the device plugin offers it."""
    chips.faults("echo 'Error Code : 81078603'")
    chips.list("Warning", "Alarm")
    agent.start()
    wait_for(lambda: "Alarm with 81078603" in api.conditions.get(CHIPS, {"message": ""})["message"])
    some_probes(chips, 3)
    assert not api.taints() and chips.remapped() == [], "chips that serve cost nothing"
    assert [path for _method, path in api.requests if "resource.k8s.io" in path] == [
        RULES + "?labelSelector=npuops.ascend%2Fnode%3Dnode-1&limit=128"
    ]


def test_the_rules_stay_while_nothing_is_known_of_the_chips(agent, api, chips, ready):
    """A driver that does not respond says nothing of its chips, a maintenance neither, and its end is no news."""
    chips.list("Critical")
    agent.start()
    wait_for(lambda: api.taints() == {"npu-7": "Critical"})
    writes = [("POST", RULES)]

    def written():
        return [call for call in api.calls("POST", "PATCH", "DELETE") if call[1].startswith(RULES)]

    chips.set("fails")
    wait_for(lambda: told(api, CHIPS) == ("Unknown", "DriverWedged"))
    # Another agent finds it so.
    assert agent.stop() == 0
    agent.start()
    some_probes(chips, 3)
    chips.set("occupied")
    some_probes(chips, 3)
    maintenance(agent, True)
    wait_for(lambda: told(api, CHIPS) == ("Unknown", "DriverInMaintenance"))
    maintenance(agent, False)
    ready(agent.boot_id)
    some_probes(chips, 3)
    assert written() == writes
    chips.set("good")
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    some_probes(chips, 2)
    assert written() == writes and api.taints() == {"npu-7": "Critical"}


def test_a_rule_stays_while_npu_smi_does_not_tell_which_chip_it_is_about(agent, api, chips, ready):
    chips.list("Critical")
    agent.start()
    wait_for(lambda: api.taints() == {"npu-7": "Critical"})
    assert agent.stop() == 0
    chips.places("exit 1")
    agent.start()
    wait_for(lambda: "no device of npu.huawei.com on this node is" in agent.read_log())
    assert api.taints() == {"npu-7": "Critical"} and not api.calls("DELETE")
    # What it does tell is enough: the device 5 is a chip that serves.
    other = copy.deepcopy(api.rules["node-1.npu-7.npuops"])
    other["metadata"]["name"], other["spec"]["deviceSelector"]["device"] = "node-1.npu-5.npuops", "npu-5"
    api.rules["node-1.npu-5.npuops"] = other
    chips.places("[ $5 = 7 ] && exit 1\n" + REVERSED)
    chips.list("Critical", "Critical")
    wait_for(lambda: set(api.taints()) == {"npu-7", "npu-6"})


def test_another_agent_removes_what_is_out_of_date(agent, api, chips, ready):
    chips.list("Critical")
    agent.start()
    wait_for(api.taints)
    assert agent.stop() == 0
    chips.list("OK")
    agent.start()
    wait_for(lambda: not api.taints())


def test_nothing_is_asked_without_the_setting(agent, api, chips, ready):
    agent.settings["device-taints"] = "false"
    chips.list("Critical")
    agent.start()
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    some_probes(chips, 3)
    assert not [path for _method, path in api.requests if "resource.k8s.io" in path] and chips.remapped() == []


def test_a_cluster_without_the_api_keeps_nothing_else_from_being_reported(agent, api, chips, ready):
    api.taint_refusal = (404, "the server could not find the requested resource")
    chips.list("Critical")
    agent.start()
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    wait_for(lambda: "device taints are not possible here: 404" in agent.read_log())
    chips.list("Critical", "Critical")
    wait_for(lambda: api.conditions[CHIPS]["message"].startswith("6 of 8"))
    chips.set("fails")
    wait_for(lambda: os.path.exists(os.path.join(agent.run_dir, "driver-suspended")))
    assert agent.read_log().count("device taints are not possible here") == 1
    assert len([path for _method, path in api.requests if "resource.k8s.io" in path]) == 1, "it is tried rarely"


def test_an_npu_smi_that_hangs_when_it_is_asked_for_a_chip(agent, api, chips, ready):
    """It is ended, no second one is started at once, and the probes go on."""
    chips.places("exec sleep 1000")
    chips.list("Critical")
    agent.start()
    wait_for(lambda: "no device of npu.huawei.com on this node is NPU 0 chip 0 (0000:c1:00.0)" in agent.read_log())
    some_probes(chips, 2)
    assert told(api) == ("True", "ChipsUnhealthy") and not api.taints() and len(chips.remapped()) == 1


# How it is written


SICK = [{"npu": 3, "chip": 1, "bus_id": "0000:c1:00.0", "health": "Critical"}]
WELL = [{**SICK[0], "health": "OK"}]
NAME = "node-1.npu-6.npuops"


class Places:
    """An npu-smi that has the chips ``places``, by their physical IDs."""

    def __init__(self):
        self.places = {6: (3, 1)}
        self.asked = []

    def place(self, number):
        self.asked.append(number)
        return self.places.get(number, (number, 0))


@pytest.fixture
def places():
    return Places()


@pytest.fixture
def written(api, caplog, places):
    """written(act): what ``act(taints)`` brings about, with a writer that retries and refreshes quickly."""
    caplog.set_level(logging.INFO)
    api.slices = [published(device(3), device(6), device(9))]

    def run(act, refresh=3600.0):
        async def run_both():
            taints = DeviceTaints(Api(api.url, "", ""), "node-1", PhysicalIds(places), Changed(), refresh=refresh, retry=0.01)
            task = asyncio.create_task(taints.run())
            await asyncio.wait_for(act(taints), 30)
            task.cancel()
            await asyncio.wait([task])

        asyncio.run(run_both())

    return run


def test_a_chip_is_asked_for_once(api, written, places):
    """The likely one first: most cards have one chip. It is only taken for one that it is."""

    def listed(first, second):
        return [{**SICK[0], "health": first}, {"npu": 9, "chip": 0, "bus_id": "0000:c2:00.0", "health": second}]

    async def act(taints):
        taints.want(listed("Critical", "OK"))
        await until(lambda: api.taints() == {"npu-6": "Critical"})
        taints.want(listed("OK", "OK"))
        await until(lambda: not api.taints())
        taints.want(listed("Critical", "OK"))
        await until(lambda: api.taints() == {"npu-6": "Critical"})
        assert places.asked == [3, 6]
        taints.want(listed("Critical", "Critical"))
        await until(lambda: api.taints() == {"npu-6": "Critical", "npu-9": "Critical"})
        assert places.asked == [3, 6, 9]
        # When a chip goes, others may have its number.
        places.places = {9: (3, 1)}
        taints.want(SICK)
        await until(lambda: api.taints() == {"npu-9": "Critical"})

    written(act)


@pytest.mark.parametrize(
    "slices",
    [
        [],
        [published(device(6), pool="other")],
        [published(device(6), node="node-2")],
        [published(device(6), driver="gpu.example.com")],
        [published(device(6), generation=1), published(device(3), generation=2)],
        [published({"name": "npu-6"})],
        [published({"name": "npu-6", "attributes": {"physicId": {"string": "6"}}})],
        [published(device(6, "../nodes"))],
    ],
)
def test_a_chip_that_no_slice_has_is_told_once_and_looked_for_again(api, written, caplog, slices):
    devices, api.slices = api.slices, slices

    async def act(taints):
        taints.want(SICK)
        await until(lambda: len([path for _method, path in api.requests if "resourceslices" in path]) > 3)
        assert not api.taints()
        api.slices = devices
        await until(lambda: api.taints() == {"npu-6": "Critical"})

    written(act, refresh=0.02)
    assert caplog.text.count("no device of npu.huawei.com on this node is NPU 3 chip 1 (0000:c1:00.0)") == 1


def test_each_device_of_a_chip_has_a_rule_and_no_more_than_64(api, written):
    api.slices = [published(*(device(6, "npu-6-%d" % number) for number in range(70)))]

    async def act(taints):
        taints.want(SICK)
        await until(lambda: len(api.taints()) == 64)
        taints.want(WELL)
        await until(lambda: not api.taints())

    written(act)
    assert len(api.calls("POST")) == 64


def test_a_rule_that_is_gone_comes_back(api, written):
    async def act(taints):
        taints.want(SICK)
        await until(api.taints)
        with api.lock:
            api.rules.clear()
        await until(api.taints)

    written(act, refresh=0.05)


def test_a_rule_whose_creation_was_not_answered_goes_with_the_fault(api, written):
    async def act(taints):
        taints.want(WELL)
        await until(lambda: api.requests)
        api.loses = lambda method, _path: method == "POST"
        taints.want(SICK)
        await until(api.taints)
        taints.want(WELL)
        api.loses = lambda *_asked: False
        await until(lambda: not api.taints())

    written(act)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_rule_that_a_person_gave_an_effect_is_left_to_that_person(api, written, effect):
    async def act(taints):
        taints.want(SICK)
        await until(api.taints)
        with api.lock:
            api.rules[NAME]["spec"]["taint"]["effect"] = effect
        taints.want([{**SICK[0], "health": "UNKNOWN"}])
        await until(lambda: taints._done == taints._wanted)
        taints.want(WELL)
        await until(lambda: taints._done == ())

    written(act)
    assert api.rules[NAME]["spec"]["taint"] == {"key": taint_rule.KEY, "value": "Critical", "effect": effect}


def test_rules_of_others_stay(api, written):
    """Of another node whose label is the same, and those without the label."""
    other = taint_rule.rule("node-1", "npu-0", "Critical")
    other["spec"]["deviceSelector"]["pool"] = "node-1.example.com"
    mine = taint_rule.rule("node-1", "npu-1", "Critical")
    mine["metadata"].update(name="by-hand", labels={})
    old = taint_rule.rule("node-1", "npu-2", "Critical")
    api.rules = {rule["metadata"]["name"]: rule for rule in (other, mine, old)}

    async def act(taints):
        taints.want(WELL)
        await until(lambda: old["metadata"]["name"] not in api.rules)

    written(act)
    assert sorted(api.rules) == ["by-hand", other["metadata"]["name"]]


def test_nobody_to_write_to(api, written, caplog):
    async def act(taints):
        with api.stopped():
            taints.want(SICK)
            await until(lambda: "cannot write the device taints, retrying" in caplog.text)
        await until(api.taints)

    written(act)


@pytest.mark.parametrize("refusal", [FORBIDDEN, (404, "not found"), (422, "denied by a policy")])
def test_a_refusal_is_told_once_and_tried_again_later(api, written, caplog, refusal):
    api.taint_refusal = refusal

    async def act(taints):
        taints.want(SICK)
        await until(lambda: len(api.requests) >= 3)
        api.taint_refusal = None
        await until(api.taints)

    written(act, refresh=0.02)
    assert caplog.text.count("device taints are not possible here") == 1


def test_a_rule_that_is_there_already_is_no_problem(api, written):
    """Made by a person, or by a request whose answer was lost."""
    found = taint_rule.rule("node-1", "npu-6", "mine")
    found["metadata"]["labels"] = {}
    api.rules = {NAME: found}

    async def act(taints):
        taints.want(SICK)
        await until(lambda: taints._done == taints._wanted)

    written(act)
    assert api.rules == {NAME: found} and found["spec"]["taint"]["value"] == "mine"


@pytest.mark.parametrize(
    "chip, value",
    [
        ({"health": "Critical"}, "Critical"),
        ({"health": "Alarm", "codes": ["80E18402", "81078603"]}, "80E18402"),
        # An unknown code says nothing to the device plugin.
        ({"health": "Critical", "codes": ["ABCDEF12"]}, "Critical"),
        # What npu-smi prints may be no label value.
        ({"health": "Not OK"}, "UNKNOWN"),
        ({"health": "-"}, "UNKNOWN"),
    ],
)
def test_the_value_says_why(chip, value):
    assert taint_rule.value(chip) == value


def test_the_label_fits():
    for node in ("npu-a", "n" * 63 + ".example.com", "n" * 62 + "-.x"):
        assert len(taint_rule.label(node)) <= 63 and taint_rule.label(node)[-1].isalnum()


def test_without_an_api_server_nothing_is_done(places):
    async def act():
        taints = DeviceTaints(None, "node-1", PhysicalIds(places), Changed())
        taints.want(SICK)
        task = asyncio.create_task(taints.run())
        await asyncio.sleep(0.05)
        assert not task.done() and places.asked == []
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(act())
