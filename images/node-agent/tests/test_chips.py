# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the process says of single chips: on the Node and in its metrics."""

from __future__ import annotations

import json
import os

import pytest
from fakes import wait_for
from test_node_condition import told
from test_wedge_watch import Chips, address, page, sample  # noqa: F401

from npu_node_agent.node_condition import TYPE

HEALTH = 'chip_health{bus_id="%s",chip="0",health="%s",npu="%d"}'


@pytest.fixture
def agent(agent, api, address):  # noqa: F811
    agent.settings.update({"node-name": "node-1", "api-server": api.url, "probe-interval": 1, "probe-timeout": 0.9})
    return agent


@pytest.fixture
def chips(agent):
    return Chips(agent)


def message(api):
    return api.conditions[TYPE]["message"]


def test_chips_that_are_not_ok_are_told(agent, api, chips, ready):
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    wait_for(lambda: sample(agent, HEALTH % ("0000:c1:00.0", "OK", 0)) == 1)
    assert page(agent).count("npuops_node_agent_chip_health{") == 8

    chips.list("Critical", "Alarm")
    wait_for(lambda: told(api) == ("True", "ChipsUnhealthy"))
    assert message(api).endswith("responds; NPU 0 chip 0 (0000:c1:00.0): Critical, NPU 1 chip 0 (0000:81:00.0): Alarm")
    wait_for(lambda: sample(agent, HEALTH % ("0000:c1:00.0", "Critical", 0)) == 1)
    assert sample(agent, HEALTH % ("0000:c1:00.0", "OK", 0)) is None

    chips.list(*["Critical"] * 8)
    wait_for(lambda: told(api) == ("False", "AllChipsUnhealthy"))
    chips.list(*["Alarm"] * 8)
    wait_for(lambda: told(api) == ("True", "ChipsUnhealthy"))
    # Nothing of it is a wedge.
    assert not api.events and os.path.exists(os.path.join(agent.run_dir, "driver-ready"))

    chips.set("fails")
    wait_for(lambda: told(api) == ("False", "DriverWedged"))
    wait_for(lambda: "npuops_node_agent_chip_health{" not in page(agent))


def test_a_chip_that_is_gone_is_missed(agent, api, chips, ready):
    memory = os.path.join(agent.settings["plugin-dir"] if "plugin-dir" in agent.settings else agent.plugin_dir, "chips.json")
    found = {name: 1 for name in os.listdir(os.path.join(agent.root, "pci")) if name < "0000:08"}

    def remember(**more):
        with open(memory + ".new", "w", encoding="utf-8") as stream:
            json.dump({**found, **more}, stream)
        os.rename(memory + ".new", memory)

    remember(**{"0000:c4:00.0": 1})
    agent.start()
    wait_for(lambda: told(api) == ("True", "ChipsMissing"))
    assert message(api).endswith("responds; 8 of 9 chips: 0000:c4:00.0 is missing from the PCI bus since a reboot")
    assert sample(agent, 'chip_missing{bus_id="0000:c4:00.0"}') == 1
    # What is missing is said first, and does not hide what else there is; that no chip serves is worse than both.
    chips.list("Alarm")
    wait_for(lambda: message(api).endswith("since a reboot; NPU 0 chip 0 (0000:c1:00.0): Alarm"))
    assert told(api) == ("True", "ChipsMissing")
    chips.list(*["Critical"] * 8)
    wait_for(lambda: told(api) == ("False", "AllChipsUnhealthy"))
    assert "0000:c4:00.0 is missing" in message(api)
    chips.list("OK")
    wait_for(lambda: told(api) == ("True", "ChipsMissing"))
    remember()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    wait_for(lambda: sample(agent, 'chip_missing{bus_id="0000:c4:00.0"}') is None)
