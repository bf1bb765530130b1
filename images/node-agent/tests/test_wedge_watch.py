# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The health watch as a process, with an npu-smi that does as told and an API server on loopback."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request

import pytest
from fakes import CHECKOUT, HEALTHY, PATIENCE, UNHEALTHY, free_port, wait_for

SAMPLES = os.path.join(CHECKOUT, "tests", "unit", "fixtures", "npu-smi")
A910 = "huawei.com/Ascend910"
WEDGED = "npuops.ascend/wedged"
LABEL = "npu.openfuyao.com/reboot-required"

# What npu-smi does is in the file "mode"; "hang" leaves a process behind that no kill of its group reaches, as one
# in state D, and it keeps what it inherited.
NPU_SMI = """#!/bin/bash
cd "$(dirname "$0")"
if [ "$3" = phyid-remap ]; then
    echo "$5" >> remapped
    . ./places
    exit
fi
if [ "$2" = -t ]; then
    echo "$*" >> asked
    . ./faults
    exit
fi
echo run >> runs
case $(cat mode) in
good) cat good ;;
fails) printf 'DrvMngGetConsoleLogLevel failed. (ret=4)\\ndcmi module initialize failed. ret is -8005\\n'; exit 187 ;;
occupied) printf 'dcmi model initialized failed, because the device is used. ret is -8020\\n'; exit 172 ;;
fewer) head -n 12 good; tail -n 1 good ;;
garbage) head -c 3000 /dev/urandom ;;
killed) kill -KILL $$ ;;
crashes) kill -SEGV $$ ;;
memory) printf 'dcmi module initialize failed. ret is -8003\\n'; exit 189 ;;
loader) echo 'npu-smi: error while loading shared libraries: libc_sec.so: cannot map zero-fill pages: Cannot allocate memory'; exit 127 ;;
hang) setsid bash -c 'while [ "$(cat mode)" = hang ]; do sleep 0.1; done' & sleep 1000 ;;
esac
"""


class Chips:
    """The simulated npu-smi of 8 chips. The compression engines of the CPU are also on the bus, but npu-smi lists none."""

    def __init__(self, agent):
        tools = os.path.join(agent.root, "driver", "tools")
        os.makedirs(tools)
        self._mode = os.path.join(tools, "mode")
        self._runs = os.path.join(tools, "runs")
        self.set("good")
        with open(os.path.join(tools, "npu-smi"), "w", encoding="utf-8") as stream:
            stream.write(NPU_SMI)
        os.chmod(os.path.join(tools, "npu-smi"), 0o755)
        with open(os.path.join(SAMPLES, "info_docs_8card_busy_23.0.rc3_namexxx.txt"), encoding="utf-8") as stream:
            table = stream.read()
        self._tools = tools
        self.faults("echo 'Error parameter of -t'; exit 215")
        self._table, self._good = table, os.path.join(tools, "good")
        self.list()
        os.makedirs(os.path.join(agent.root, "dev"))
        for number, device in enumerate(["0xd802"] * 8 + ["0xa250", "0xa250", "0xd9ff"]):
            function = os.path.join(agent.root, "pci", "0000:%02x:00.0" % number)
            os.makedirs(function)
            for name, value in (("vendor", "0x19e5"), ("class", "0x120000"), ("device", device)):
                with open(os.path.join(function, name), "w", encoding="utf-8") as stream:
                    stream.write(value + "\n")

    def list(self, *health):
        """npu-smi lists that health of the first chips."""
        lines = self._table.splitlines(keepends=True)
        first = [number for number, line in enumerate(lines) if re.match(r"\| \d+ .*\| OK ", line)]
        for number, word in zip(first, health):
            lines[number] = lines[number].replace("OK" + " " * (len(word) - 2), word, 1)
        with open(self._good + ".new", "w", encoding="utf-8") as stream:
            stream.write("".join(lines))
        os.rename(self._good + ".new", self._good)

    def faults(self, script):
        """What npu-smi does when it is asked for the fault codes of a chip; $5 is its card."""
        with open(os.path.join(self._tools, "faults.new"), "w", encoding="utf-8") as stream:
            stream.write(script + "\n")
        os.rename(os.path.join(self._tools, "faults.new"), os.path.join(self._tools, "faults"))

    def places(self, script):
        """What npu-smi does when it is asked which chip has a physical ID; $5 is that ID."""
        with open(os.path.join(self._tools, "places.new"), "w", encoding="utf-8") as stream:
            stream.write(script + "\n")
        os.rename(os.path.join(self._tools, "places.new"), os.path.join(self._tools, "places"))

    def asked(self):
        """The calls that asked for fault codes."""
        return self._lines("asked")

    def remapped(self):
        """The physical IDs that were asked for, in order."""
        return [int(line) for line in self._lines("remapped")]

    def _lines(self, name):
        try:
            with open(os.path.join(self._tools, name), encoding="utf-8") as stream:
                return stream.read().splitlines()
        except OSError:
            return []

    def set(self, mode):
        with open(self._mode + ".new", "w", encoding="utf-8") as stream:
            stream.write(mode + "\n")
        os.rename(self._mode + ".new", self._mode)

    def runs(self):
        try:
            return os.path.getsize(self._runs) // 4
        except OSError:
            return 0


@pytest.fixture
def agent(agent, api):
    agent.settings.update({"node-name": "node-1", "api-server": api.url})
    agent.settings.update({"probe-interval": 1, "probe-timeout": 0.9})
    return agent


@pytest.fixture
def chips(agent):
    return Chips(agent)


def marker(agent, name):
    try:
        with open(os.path.join(agent.run_dir, name), encoding="utf-8") as stream:
            return json.load(stream)
    except OSError:
        return None


def maintenance(agent, on):
    path = os.path.join(agent.run_dir, "maintenance")
    if on:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write('{"generation": 1}')
    else:
        os.unlink(path)


def some_probes(chips, number=4):
    """Wait for that many more probes."""
    before = chips.runs()
    wait_for(lambda: chips.runs() >= before + number)


EXPECTED = {"fails": "-8005", "fewer": "lists 2 of 8", "garbage": "cannot parse", "hang": "running for", "crashes": "SIGSEGV"}


@pytest.mark.parametrize("mode", EXPECTED)
def test_wedge_and_recovery(agent, api, chips, ready, kubelet, plugins, mode):
    before = marker(agent, "driver-ready")
    agent.start()
    plugins(devices={"Ascend910-0": HEALTHY})
    wait_for(lambda: kubelet.allocatable(A910))
    wait_for(lambda: chips.runs())
    assert marker(agent, "driver-ready") == before

    chips.set(mode)
    suspended = wait_for(
        lambda: marker(agent, "driver-suspended") if "output" in (marker(agent, "driver-suspended") or {}) else None
    )
    assert marker(agent, "driver-ready") is None
    assert {key: suspended[key] for key in before} == before
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", suspended["since"])
    assert suspended["reason"] and suspended["probes"] == 3
    assert EXPECTED[mode] in suspended["reason"] + suspended["output"]
    wait_for(lambda: kubelet.devices(A910) == {"Ascend910-0": UNHEALTHY})

    wait_for(lambda: WEDGED in api.annotations)
    annotation = json.loads(api.annotations[WEDGED])
    assert annotation == {key: suspended[key] for key in ("since", "probes", "reason", "output", "boot_id")}
    assert api.labels[LABEL] == "true"
    event = wait_for(lambda: list(api.events.values()))[0]
    assert event["reason"] == "RebootRequired" and "reason=recovery" in event["message"]
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "uid-1"}

    chips.set("good")
    wait_for(lambda: marker(agent, "driver-ready") == before)
    assert marker(agent, "driver-suspended") is None
    wait_for(lambda: kubelet.devices(A910) == {"Ascend910-0": HEALTHY})
    wait_for(lambda: not api.events)
    assert WEDGED not in api.annotations and LABEL not in api.labels


def test_two_failures_are_no_wedge(agent, api, chips, ready):
    agent.settings["probe-failures"] = 1000 - 1
    agent.start()
    wait_for(lambda: chips.runs())
    chips.set("fails")
    some_probes(chips, 3)
    chips.set("good")
    wait_for(lambda: "responds again after" in agent.read_log())
    assert marker(agent, "driver-ready") and not marker(agent, "driver-suspended")
    assert not api.calls("PATCH", "POST", "DELETE")


def test_a_probe_that_fails_says_nothing_of_single_chips(agent, address, chips, ready):
    """Otherwise each one would end the alerts about a chip, and the node would serve no chip until the next one."""
    agent.settings["probe-failures"] = 1000 - 1
    chips.list("Critical")
    agent.start()
    wait_for(lambda: sample(agent, 'probes_total{result="ok"}'))
    chips.set("fails")
    wait_for(lambda: (sample(agent, "probe_failures") or 0) >= 2)
    assert sample(agent, 'chips{source="npu-smi"}') == 8


def test_a_healthy_node_is_read_once_for_each_report_and_gets_one_condition(agent, api, chips, ready):
    agent.start()
    some_probes(chips, 5)
    assert api.calls("PATCH", "POST", "DELETE") == []
    assert sorted(api.requests) == [("GET", "/api/v1/nodes/node-1")] * 2 + api.status_patches()
    assert len(api.status_patches()) == 1


def test_an_occupied_chip_is_no_failure(agent, chips, ready):
    chips.set("occupied")
    agent.start()
    some_probes(chips, 5)
    wait_for(lambda: "without a result" in agent.read_log())
    assert marker(agent, "driver-ready")


@pytest.mark.parametrize("mode", ["killed", "memory", "loader"])
def test_trouble_of_the_node_is_no_verdict(agent, address, api, chips, ready, mode):
    """A node that ran out of memory is not rebooted, but the trouble is reported: in the log, as a metric, and once as an Event."""
    agent.start()
    wait_for(lambda: chips.runs())
    chips.set(mode)
    some_probes(chips, 5)
    event = wait_for(lambda: list(api.events.values()))[0]
    assert event["reason"] == "NPUProbeImpossible" and event["type"] == "Warning"
    assert event["involvedObject"]["name"] == "node-1" and "cannot be probed: npu-smi info" in event["message"]
    assert "without a result" in agent.read_log()
    assert sample(agent, "probes_undecided") >= 3 and sample(agent, "probe_failures") == 0
    assert sample(agent, 'probes_total{result="undecided"}') >= 3
    assert marker(agent, "driver-ready") and not marker(agent, "driver-suspended")
    chips.set("good")
    wait_for(lambda: sample(agent, "probes_undecided") == 0)
    assert len(api.calls("POST")) == 1 and not api.calls("PATCH")


def test_an_npu_smi_of_another_module_is_no_failure(agent, address, chips, ready):
    """validate and status also look at the chips, and their npu-smi may be slow within its time limit."""
    from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi

    held = chips_npu_smi.NpuSmi("/nowhere", timeout=3000, lock=os.path.join(agent.run_dir, "npu-smi.lock"))._lock(3000)
    agent.start()
    wait_for(lambda: (sample(agent, "probes_undecided") or 0) >= 3, "three looks without a result")
    assert marker(agent, "driver-ready") and not sample(agent, 'probes_total{result="failed"}')
    os.close(held)
    wait_for(lambda: sample(agent, 'probes_total{result="ok"}'), "a look that found chips")


def fail_twice(agent, chips):
    """Of the six probes that would have to fail one after another."""
    agent.settings["probe-failures"] = 6
    chips.set("fails")
    agent.start()
    wait_for(lambda: (sample(agent, "probe_failures") or 0) >= 2)


def test_trouble_of_the_node_neither_counts_nor_ends_a_row_of_failures(agent, address, chips, ready):
    fail_twice(agent, chips)
    chips.set("killed")
    wait_for(lambda: (sample(agent, "probes_undecided") or 0) >= 2)
    before = sample(agent, "probe_failures")
    assert before >= 2 and marker(agent, "driver-ready")
    chips.set("fails")
    # the marker is there first, and what happened is written into it next
    assert wait_for(lambda: (marker(agent, "driver-suspended") or {}).get("probes")) == 6


def test_a_driver_that_answers_that_its_chips_are_taken_ends_a_row_of_failures(agent, address, chips, ready):
    """Failures that are days apart, while a job holds all chips, are none in a row."""
    fail_twice(agent, chips)
    chips.set("occupied")
    wait_for(lambda: sample(agent, "probe_failures") == 0)
    assert marker(agent, "driver-ready")


def test_failures_do_not_count_while_the_driver_is_not_ready_or_under_maintenance(agent, chips, ready):
    chips.set("fails")
    maintenance(agent, True)
    agent.start()
    time.sleep(2)
    assert chips.runs() == 0 and marker(agent, "driver-ready")
    maintenance(agent, False)
    wait_for(lambda: marker(agent, "driver-suspended"))
    # a suspended driver under maintenance is left alone, too
    maintenance(agent, True)
    chips.set("good")
    time.sleep(1.5)
    assert marker(agent, "driver-suspended")
    maintenance(agent, False)
    wait_for(lambda: marker(agent, "driver-ready"))


def test_without_marker_nothing_is_probed(agent, chips, api):
    chips.set("fails")
    agent.start()
    time.sleep(1.5)
    assert chips.runs() == 0 and not api.calls("PATCH", "POST", "DELETE") and os.listdir(agent.run_dir) == []


def test_a_maintenance_between_two_failures_starts_the_count_anew(agent, address, chips, ready):
    """By the agent's own count: a probe that is ended for being late, on a busy machine, may not have begun."""
    failed = 'probes_total{result="failed"}'
    agent.settings["probe-failures"] = 6
    chips.set("fails")
    agent.start()
    wait_for(lambda: (sample(agent, failed) or 0) >= 3)
    maintenance(agent, True)
    wait_for(lambda: sample(agent, 'driver_state{state="maintenance"}') == 1)
    before = sample(agent, failed)
    maintenance(agent, False)
    wait_for(lambda: marker(agent, "driver-suspended"))
    assert sample(agent, failed) >= before + 6


def test_agent_restart_while_wedged(agent, api, chips, ready):
    agent.start()
    chips.set("fails")
    wait_for(lambda: api.events)
    suspended = marker(agent, "driver-suspended")
    agent.kill()
    agent.start()
    some_probes(chips)
    assert marker(agent, "driver-suspended") == suspended
    assert len(api.events) == 1
    assert len(api.calls("POST")) == 1
    agent.kill()
    chips.set("good")
    agent.start()
    wait_for(lambda: not api.events and WEDGED not in api.annotations)
    assert marker(agent, "driver-ready")


def test_killed_between_rename_and_details(agent, api, chips, ready):
    os.rename(os.path.join(agent.run_dir, "driver-ready"), os.path.join(agent.run_dir, "driver-suspended"))
    chips.set("fails")
    agent.start()
    wait_for(lambda: WEDGED in api.annotations)
    chips.set("good")
    wait_for(lambda: WEDGED not in api.annotations and marker(agent, "driver-ready"))


def test_a_wedge_of_an_earlier_boot_ends_with_the_first_success(agent, api, chips, ready):
    agent.start()
    chips.set("fails")
    wait_for(lambda: api.events)
    agent.kill()
    # the reboot: /run is empty, another boot ID, the boot unit publishes
    os.unlink(os.path.join(agent.run_dir, "driver-suspended"))
    with open(agent.boot_id_file, "w", encoding="utf-8") as stream:
        stream.write("99999999-2222-3333-4444-555555555555\n")
    agent.start()
    time.sleep(1)
    assert api.labels[LABEL] == "true"
    chips.set("good")
    ready(agent.boot_id)
    wait_for(lambda: WEDGED not in api.annotations and LABEL not in api.labels and not api.events)


def test_api_server_away(agent, api, chips, ready):
    agent.start()
    wait_for(lambda: api.requests)
    with api.stopped():
        chips.set("fails")
        wait_for(lambda: marker(agent, "driver-suspended"))
        wait_for(lambda: "cannot report" in agent.read_log())
    wait_for(lambda: api.labels.get(LABEL) == "true" and api.events)
    with api.stopped():
        chips.set("good")
        wait_for(lambda: marker(agent, "driver-ready"))
        chips.set("fails")
        wait_for(lambda: marker(agent, "driver-suspended"))
        chips.set("good")
        wait_for(lambda: marker(agent, "driver-ready"))
    wait_for(lambda: LABEL not in api.labels and WEDGED not in api.annotations and not api.events)


def test_somebody_else_writes_at_the_same_time(agent, api, chips, ready):
    api.conflicts = 2
    agent.start()
    chips.set("fails")
    wait_for(lambda: api.events)
    assert api.labels[LABEL] == "true" and api.conflicts == 0


@pytest.mark.parametrize(
    "labels, annotations",
    [
        ({"npu.openfuyao.com/driver-upgrade-state": "approval-required"}, {}),
        ({}, {"npuops.ascend/maintenance": '{"step": "approval-required"}'}),
    ],
)
def test_the_label_stays_while_an_approval_is_pending(agent, api, chips, ready, labels, annotations):
    api.labels.update(labels)
    api.annotations.update(annotations)
    agent.start()
    chips.set("fails")
    wait_for(lambda: api.events)
    chips.set("good")
    wait_for(lambda: WEDGED not in api.annotations)
    assert api.labels[LABEL] == "true"


# Metrics


def page(agent, path="/metrics"):
    """The page, as soon as the agent listens."""

    def read():
        try:
            with urllib.request.urlopen("http://%s%s" % (agent.settings["metrics-address"], path), timeout=PATIENCE) as answer:
                return answer.read().decode()
        except urllib.error.URLError:
            return None

    return wait_for(read)


def sample(agent, name):
    """The value of ``name`` (with its labels) on the page."""
    match = re.search(r"^npuops_node_agent_%s (\S+)$" % re.escape(name), page(agent), re.M)
    return float(match.group(1)) if match else None


@pytest.fixture
def address(agent):
    agent.settings["metrics-address"] = "127.0.0.1:%d" % free_port()


def test_metrics(agent, address, api, chips, ready, kubelet, plugins, spec):
    agent.start()
    plugins(devices={"Ascend910-0": HEALTHY})
    wait_for(lambda: kubelet.allocatable(A910))
    kubelet.allocate(A910, "Ascend910-0")
    wait_for(lambda: sample(agent, "probe_last_success_timestamp_seconds"))
    assert abs(sample(agent, "probe_last_success_timestamp_seconds") - time.time()) < 10
    assert sample(agent, 'driver_state{state="ready"}') == 1 and sample(agent, 'driver_state{state="suspended"}') == 0
    assert sample(agent, 'driver_info{release="25.5.0-6.6-abc",version="25.5.0"}') == 1
    assert sample(agent, 'chips{source="pci"}') == sample(agent, 'chips{source="npu-smi"}') == 8
    assert sample(agent, 'devices{health="Healthy",resource="huawei.com/Ascend910"}') == 1
    assert sample(agent, 'allocations_total{resource="huawei.com/Ascend910",result="ok"}') == 1
    assert sample(agent, "cdi_spec_valid") == 0  # the spec names chips 0 to 3, which have no device node here
    assert sample(agent, "probe_failures") == 0
    chips.set("fewer")
    wait_for(lambda: sample(agent, 'chips{source="npu-smi"}') == 2)
    chips.set("fails")
    wait_for(lambda: sample(agent, 'chips{source="npu-smi"}') == 0)
    wait_for(lambda: sample(agent, 'driver_state{state="suspended"}') == 1)
    assert sample(agent, 'driver_state{state="ready"}') == 0 and sample(agent, "probe_failures") >= 3
    wait_for(lambda: sample(agent, 'devices{health="Unhealthy",resource="huawei.com/Ascend910"}') == 1)
    assert page(agent, "/healthz") == "ok\n"


def test_alert_rules_use_what_is_published(agent, address, chips, ready):
    agent.start()
    wait_for(lambda: sample(agent, "probe_last_success_timestamp_seconds"))
    with open(os.path.join(CHECKOUT, "roles", "npu_node_agent", "files", "alerts.yml"), encoding="utf-8") as stream:
        rules = stream.read()
    published = set(re.findall(r"^# TYPE (\S+)", page(agent), re.M))
    # With a colon before it, it is recorded by another rule.
    used = set(re.findall(r"(?<!:)\bnpuops_node_agent_\w+", rules))
    assert used and used <= published
