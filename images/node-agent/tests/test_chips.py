# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the process says of single chips: on the Node and in its metrics."""

from __future__ import annotations

import json
import os

import pytest
from fakes import wait_for
from test_node_conditions import CHIPS, told
from test_wedge_watch import Chips, address, page, sample, some_probes  # noqa: F401

from npu_node_agent import network_condition
from npu_node_agent.driver_condition import TYPE

NETWORK = network_condition.TYPE
HEALTH = 'chip_health{bus_id="%s",chip="0",health="%s",npu="%d"}'


@pytest.fixture
def agent(agent, api, address):  # noqa: F811
    agent.settings.update({"node-name": "node-1", "api-server": api.url, "probe-interval": 1, "probe-timeout": 0.9})
    return agent


@pytest.fixture
def chips(agent):
    return Chips(agent)


def message(api, kind=TYPE):
    return api.conditions[kind]["message"]


def test_chips_that_are_not_ok_are_told(agent, api, chips, ready):
    agent.start()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    wait_for(lambda: sample(agent, HEALTH % ("0000:c1:00.0", "OK", 0)) == 1)
    assert page(agent).count("npuops_node_agent_chip_health{") == 8

    chips.list("Critical", "Alarm")
    wait_for(lambda: told(api) == ("True", "ChipsUnhealthy"))
    ill = "NPU 0 chip 0 (0000:c1:00.0): Critical, NPU 1 chip 0 (0000:81:00.0): Alarm"
    assert message(api).endswith("responds; " + ill)
    assert told(api, CHIPS) == ("False", "ChipsUnhealthy") and message(api, CHIPS) == "7 of 8 chips serve; " + ill
    wait_for(lambda: sample(agent, HEALTH % ("0000:c1:00.0", "Critical", 0)) == 1)
    assert sample(agent, HEALTH % ("0000:c1:00.0", "OK", 0)) is None

    chips.list(*["Critical"] * 8)
    wait_for(lambda: told(api) == ("False", "AllChipsUnhealthy"))
    chips.list(*["Alarm"] * 8)
    wait_for(lambda: told(api) == ("True", "ChipsUnhealthy"))
    assert told(api, CHIPS) == ("True", "ChipsHealthy"), "all of them serve"
    # Nothing of it is a wedge.
    assert not api.events and os.path.exists(os.path.join(agent.run_dir, "driver-ready"))

    chips.set("fails")
    wait_for(lambda: told(api) == ("False", "DriverWedged"))
    wait_for(lambda: "npuops_node_agent_chip_health{" not in page(agent))
    assert told(api, CHIPS) == ("Unknown", "DriverWedged")


FAULT = 'chip_fault_info{bus_id="0000:c1:00.0",chip="0",code="%s",level="%s",meaning="%s",npu="0"}'


def test_fault_codes_of_chips_that_are_not_ok(agent, api, chips, ready):
    chips.faults("echo 'Error Code : ABCDEF12 80E18402'")
    agent.start()
    wait_for(lambda: told(api, CHIPS) == ("True", "ChipsHealthy"))
    some_probes(chips, 2)
    assert chips.asked() == [], "chips that are OK cost nothing"
    chips.list("Alarm")
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    meaning = "64 HBM rows are isolated after uncorrectable errors: no more can be"
    ill = "NPU 0 chip 0 (0000:c1:00.0): Alarm with 80E18402 (SeparateNPU: %s) and ABCDEF12" % meaning
    assert message(api, CHIPS) == "7 of 8 chips serve; " + ill
    # The driver does not work less.
    assert told(api) == ("True", "ChipsUnhealthy") and message(api).endswith("responds; " + ill)
    assert ill in agent.read_log()
    wait_for(lambda: sample(agent, FAULT % ("80E18402", "SeparateNPU", meaning)) == 1)
    assert sample(agent, FAULT % ("ABCDEF12", "", "")) == 1
    some_probes(chips, 3)
    assert chips.asked() == ["info -t health -i 0 -c 0"], "not at each probe"
    chips.faults("echo 'Error Code : 80E00209'")
    chips.list("Warning")
    wait_for(lambda: told(api, CHIPS) == ("True", "ChipsHealthy"))
    assert message(api, CHIPS).endswith(
        "serve; NPU 0 chip 0 (0000:c1:00.0): Warning with 80E00209 (NotHandleFault: HBM is hotter than 95 degrees Celsius)"
    )
    chips.list("OK")
    wait_for(lambda: "npuops_node_agent_chip_fault_info{" not in page(agent))


def test_a_port_that_is_down(agent, api, chips, ready):
    """The chip serves, and the node is no place for jobs of several nodes."""
    chips.faults("echo 'Error Code : 81078603 80E00209'")
    agent.start()
    wait_for(lambda: told(api, NETWORK) == ("True", "NoPortFaults"))
    chips.list("Warning")
    wait_for(lambda: told(api, NETWORK) == ("False", "PortFaults"))
    assert message(api, NETWORK) == (
        "1 of 8 chips report faults of their network ports; NPU 0 chip 0 (0000:c1:00.0)"
        " with 81078603 (NotHandleFault: the network port of the chip is down)"
    )
    assert told(api, CHIPS) == ("True", "ChipsHealthy")
    chips.faults("echo 'Error Code : 80E18402'")
    chips.list("Alarm")
    wait_for(lambda: told(api, NETWORK) == ("True", "NoPortFaults"))
    assert told(api, CHIPS) == ("False", "ChipsUnhealthy"), "a fault of the chip is none of its port"
    chips.set("fails")
    wait_for(lambda: told(api, NETWORK) == ("Unknown", "DriverWedged"))


HOSTILE = {
    "hangs": "exec sleep 1000",
    "never ends": "exec yes 'Error Code : 80E18402'",
    "huge": "head -c 5000000 /dev/urandom",
    "control characters": "printf 'Error Code : \\033[31m80E18402\\033[0m\\n'",
    "ten thousand codes": "echo \"Error Code : $(seq -f '%08.0f' -s ' ' 10000)\"",
    "another chip": "echo 'NPU ID : 7'; echo 'Error Code : 80E18402'",
    "fails": "echo 'ret is -8005'; exit 187",
}


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
def test_answers_about_faults_that_are_none(agent, api, chips, ready, script):
    """The probe alone judges the driver, and the word of the chip counts."""
    chips.faults(script)
    chips.list("Alarm", "Critical", "Alarm")
    agent.start()
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    assert told(api, NETWORK) == ("Unknown", "FaultCodesNotKnown") and "NPU 2 chip 0" in message(api, NETWORK)
    assert "Critical, NPU" in message(api, CHIPS) and " with " not in message(api, CHIPS) and message(api, CHIPS).isprintable()
    some_probes(chips, 5)
    assert told(api) == ("True", "ChipsUnhealthy") and os.path.exists(os.path.join(agent.run_dir, "driver-ready"))
    assert "npuops_node_agent_chip_fault_info{" not in page(agent) and len(chips.asked()) <= 3


def test_a_thousand_codes(agent, api, chips, ready):
    chips.faults("echo \"Error Code : $(seq -f '%08.0f' -s ' ' 1000)\"")
    chips.list(*["Alarm"] * 8)
    agent.start()
    wait_for(lambda: "chip_fault_info{" in page(agent))
    assert page(agent).count("npuops_node_agent_chip_fault_info{") == 8 * 8
    wait_for(lambda: " more" in api.conditions.get(CHIPS, {"message": ""})["message"])
    assert len(message(api, CHIPS)) <= 1024


def test_a_probe_that_fails_is_no_news_of_the_chips(agent, api, chips, ready):
    agent.settings["probe-failures"] = 999
    chips.list(*["Critical"] * 8)
    agent.start()
    wait_for(lambda: told(api) == ("False", "AllChipsUnhealthy"))
    chips.set("fails")
    some_probes(chips, 4)
    assert told(api) == ("False", "AllChipsUnhealthy") and told(api, CHIPS) == ("False", "ChipsUnhealthy")


def test_what_is_known_of_the_agent_and_its_probes(agent, chips, ready):
    agent.start()
    wait_for(lambda: (sample(agent, "probe_duration_seconds_count") or 0) >= 2)
    found = page(agent)
    assert sample(agent, 'build_info{version="0.1.0"}') == 1
    assert sample(agent, 'probe_duration_seconds_bucket{le="+Inf"}') >= 2 and sample(agent, "probe_duration_seconds_sum") > 0
    counts = [
        sample(agent, 'probe_duration_seconds_bucket{le="%s"}' % bound)
        for bound in (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0)
    ]
    assert None not in counts and counts == sorted(counts)
    assert "# TYPE npuops_node_agent_probe_duration_seconds histogram" in found
    assert sample(agent, "chips_expected") is None, "nothing is recorded"


def test_a_chip_that_is_gone_from_a_bus_that_was_renumbered(agent, chips, ready, spec):
    """Which one it is, is not known. The CDI spec still describes it, which install would not change."""
    for number in range(3):
        open(os.path.join(agent.root, "dev", "davinci%d" % number), "w", encoding="utf-8").close()
    with open(os.path.join(agent.plugin_dir, "chips.json"), "w", encoding="utf-8") as stream:
        json.dump({"0000:%02x:00.0" % bus: 1 for bus in range(0x80, 0x89)}, stream)
    agent.start()
    wait_for(lambda: sample(agent, "chips_expected") == 9)
    assert sample(agent, 'chips{source="pci"}') == 8 and "npuops_node_agent_chip_missing{" not in page(agent)
    assert "8 of 9 chips are on the PCI bus" in agent.read_log()
    wait_for(lambda: sample(agent, "cdi_spec_valid") == 1)


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
    assert told(api, CHIPS) == ("False", "ChipsMissing") and sample(agent, "chips_expected") == 9
    assert message(api, CHIPS) == "8 of 9 chips: 0000:c4:00.0 is missing from the PCI bus since a reboot"
    assert message(api).endswith("responds; 8 of 9 chips: 0000:c4:00.0 is missing from the PCI bus since a reboot")
    assert sample(agent, 'chip_missing{bus_id="0000:c4:00.0"}') == 1
    # What is missing is said first, and does not hide what else there is; that no chip serves is worse than both.
    chips.list("Alarm")
    wait_for(lambda: message(api).endswith("since a reboot; NPU 0 chip 0 (0000:c1:00.0): Alarm"))
    assert told(api) == ("True", "ChipsMissing")
    chips.list(*["Critical"] * 8)
    wait_for(lambda: told(api) == ("False", "AllChipsUnhealthy"))
    assert "0000:c4:00.0 is missing" in message(api)
    # That shows without the driver, too.
    chips.set("fails")
    wait_for(lambda: told(api) == ("False", "DriverWedged"))
    assert told(api, CHIPS) == ("False", "ChipsMissing")
    chips.set("good")
    chips.list("OK")
    wait_for(lambda: told(api) == ("True", "ChipsMissing"))
    remember()
    wait_for(lambda: told(api) == ("True", "DriverResponds"))
    wait_for(lambda: sample(agent, 'chip_missing{bus_id="0000:c4:00.0"}') is None)
