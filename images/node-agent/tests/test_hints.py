# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes the agent look at the chips at once, though its next probe is an hour away."""

from __future__ import annotations

import json
import os
import time

import pytest
from fakes import HEALTHY, UNHEALTHY, wait_for
from test_node_conditions import told
from test_wedge_watch import A910, Chips, address, marker, sample  # noqa: F401

CHIPS = "npuops.ascend/ChipsHealthy"
AN_HOUR = 3600
LOST = "[ascend] [ERROR] [dms] [heart_beat_urgent_event 399] The device urgent heartbeat is lost! (device=0) "


@pytest.fixture
def agent(agent, api, address):  # noqa: F811
    agent.settings.update({"node-name": "node-1", "api-server": api.url, "probe-interval": AN_HOUR, "probe-timeout": 5})
    return agent


@pytest.fixture
def chips(agent):
    return Chips(agent)


def probed(agent, api):
    """Start the agent, and wait for its first probe."""
    agent.start()
    wait_for(lambda: told(api, CHIPS) == ("True", "ChipsHealthy"))


def hints(agent):
    """Their reasons so far."""
    entries = (json.loads(line) for line in agent.read_log().splitlines() if "probing the chips now" in line)
    return [entry["msg"].partition("; probing")[0] for entry in entries]


def kernel_says(agent, *lines):
    with open(agent.settings["kernel-log"], "a", encoding="utf-8") as stream:
        stream.write("".join("3,%d,%d,-;%s\n" % (number, number, line) for number, line in enumerate(lines)))


@pytest.mark.parametrize(
    "line",
    [
        LOST,
        "[ascend] [ERROR] [ubdrv] [ubdrv_set_heart_beat_lost 1092] Device heart beat lost, stop all msg send. (udevid=3)",
        "pcieport 0000:80:00.0: AER: Multiple Uncorrected (Fatal) error received: 0000:81:00.0",
        "pcieport 0000:80:00.0: AER: Uncorrectable (Non-Fatal) error message received from 0000:81:00.0",
        "pcieport 0000:80:00.0: pciehp: Slot(4): Link Down",
    ],
)
def test_a_line_of_the_kernel(agent, api, chips, ready, line):
    probed(agent, api)
    chips.list("Critical")
    kernel_says(agent, "usb 1-1: new high-speed USB device", line)
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    assert "kernel: " + line[:60] in agent.read_log()
    assert chips.runs() == 2


def test_what_the_kernel_says_of_others(agent, api, chips, ready):
    probed(agent, api)
    kernel_says(
        agent,
        "pcieport 0000:80:00.0: AER: Corrected error received: 0000:81:00.0",
        "[ascend] [ERROR] [dms] [f 1] Can not read rao data. (dev_id=1; ret=2; fail_cnt=3)",
        "\n SUBSYSTEM=x;heart beat lost",
        "heart" + "beat " * 5000,
    )
    kernel_says(agent, LOST)
    wait_for(lambda: chips.runs() == 2)
    assert hints(agent) == ["kernel: " + LOST]


def test_earlier_lines_and_floods(agent, api, chips, ready):
    kernel_says(agent, LOST.replace("device=0", "device=7"))
    probed(agent, api)
    kernel_says(agent, LOST)
    wait_for(lambda: hints(agent))
    assert hints(agent) == ["kernel: " + LOST], "what was there before is not new"
    for _ in range(3):
        kernel_says(agent, *[LOST] * 5000)
    wait_for(lambda: chips.runs() >= 2)
    kernel_says(agent, *["usb 1-1: new high-speed USB device"] * 5000)
    wait_for(lambda: sample(agent, 'probes_total{result="ok"}') >= 2)
    assert chips.runs() <= 4, "a flood leads to a few probes"


def test_without_a_kernel_log(agent, api, chips, ready):
    os.unlink(agent.settings["kernel-log"])
    probed(agent, api)
    wait_for(lambda: "the kernel log is not read" in agent.read_log())
    assert agent.read_log().count("restarting it") == 0


def test_the_device_plugin_hears_of_a_fault_first(agent, api, chips, ready, kubelet, plugins):
    chips.faults("echo 'Error Code : 80E18402'")
    plugin = plugins(devices={"Ascend910-0": HEALTHY, "Ascend910-1": HEALTHY})
    probed(agent, api)
    wait_for(lambda: len(kubelet.allocatable(A910)) == 2)
    chips.list("Alarm")
    plugin.update({"Ascend910-0": UNHEALTHY, "Ascend910-1": HEALTHY})
    wait_for(lambda: told(api, CHIPS) == ("False", "ChipsUnhealthy"))
    assert "80E18402" in api.conditions[CHIPS]["message"]
    # The health is the same, the fault is not.
    chips.faults("echo 'Error Code : 80E00209'")
    plugin.update({"Ascend910-0": HEALTHY, "Ascend910-1": HEALTHY})
    wait_for(lambda: told(api, CHIPS) == ("True", "ChipsHealthy"))
    assert "80E00209" in api.conditions[CHIPS]["message"]


def test_a_plugin_that_flaps_leads_to_few_probes(agent, api, chips, ready, plugins):
    plugin = plugins(devices={"Ascend910-0": HEALTHY})
    probed(agent, api)
    begun, before = time.monotonic(), chips.runs()
    while chips.runs() < before + 2:
        plugin.update({"Ascend910-0": UNHEALTHY})
        plugin.update({"Ascend910-0": HEALTHY})
        time.sleep(0.1)
    # Three seconds after the first probe at the soonest, and six after the second one.
    assert time.monotonic() - begun >= 6


def test_probes_after_hints_do_not_count_as_failures(agent, api, chips, ready):
    agent.settings["probe-failures"] = 1
    probed(agent, api)
    chips.set("fails")
    kernel_says(agent, LOST)
    wait_for(lambda: sample(agent, 'probes_total{result="failed"}') == 1)
    assert sample(agent, "probe_failures") == 0 and marker(agent, "driver-ready")
