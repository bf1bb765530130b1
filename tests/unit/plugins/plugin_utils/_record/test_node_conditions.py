# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_conditions, pending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.commands_bench import Commands
from support.fleet.fake_fleet import FakeCluster, Fate, Killed
from support.fleet.maintenance_bench import Bench, Wedged
from support.kube.stub import node

NOW = 1795264200.0  # 2026-11-21T12:30:00Z
FOREIGN = {"type": "MaintenanceInProgress", "status": "True", "reason": "Firmware", "message": "by hand"}


def types(found):
    return sorted(one["type"] for one in node_conditions.told_by(found))


def seen_in(bench, act):
    """What the Node's conditions were one after the other while ``act`` was under way."""
    seen = []
    after = bench.world.after_write

    def look():
        after()
        now = types(bench.node)
        if not seen or seen[-1] != now:
            seen.append(now)

    bench.world.after_write = look
    act()
    return seen


def test_they_follow_the_maintenance():
    bench = Bench()
    seen = seen_in(bench, bench.run)
    bench.assert_upgraded()
    assert seen == [
        [],
        ["MaintenanceInProgress"],
        ["DrainInProgress", "MaintenanceInProgress"],
        ["Drained", "MaintenanceInProgress"],
        [],
    ]


def test_they_tell_what_is_done_by_whom_and_since_when():
    bench = Bench()
    bench.run(until="validate")
    by_type = {one["type"]: one for one in node_conditions.told_by(bench.node)}
    assert by_type["Drained"]["reason"] == by_type["MaintenanceInProgress"]["reason"] == "NpuDriverUpgrade"
    assert by_type["Drained"]["message"] == "npuops.ascend: upgrade from 25.2.0 to 25.5.0, by the run run-1"
    assert by_type["MaintenanceInProgress"]["lastTransitionTime"] < by_type["Drained"]["lastTransitionTime"]
    assert {one["status"] for one in by_type.values()} == {"True"}
    # The kubelet's own are as they were.
    assert [one["type"] for one in bench.node["status"]["conditions"]][0] == "Ready"


def test_a_recovery_has_a_reason_of_its_own():
    bench = Wedged()
    bench.run(until="validate")
    assert {one["reason"] for one in node_conditions.told_by(bench.node)} == {"NpuRecovery"}


def test_a_node_that_is_given_back_is_due_and_no_more():
    bench = Bench()
    bench.run(until="reboot")
    assert types(bench.node) == ["Drained", "MaintenanceInProgress"]
    bench.world.touch("npu-a", lambda item: item["metadata"]["labels"].update({"npuops.ascend/skip": "true"}))
    bench.run()
    assert not bench.cordoned and types(bench.node) == ["MaintenancePlanned"]


def test_whoever_kills_a_run_and_starts_another_leaves_none():
    whole = Bench()
    whole.run()
    for at in range(1, len(whole.world.fate.calls) + 1):
        for when in ("before", "after"):
            bench = Bench()
            bench.world.fate = Fate(at, "kill", when)
            with pytest.raises(Killed):
                bench.run()
            assert not types(bench.node) or maintenance_record.decode(bench.node), f"killed {when} call {at}"
            bench.world.fate = Fate()
            bench.wait(300)
            bench.run(run="run-2")
            assert types(bench.node) == [], f"killed {when} call {at}"


def test_conditions_of_somebody_else_stay():
    bench = Bench()
    bench.world.touch("npu-a", lambda item: item["status"]["conditions"].append(dict(FOREIGN)))
    seen = seen_in(bench, bench.run)
    bench.assert_upgraded()
    assert ["DrainInProgress"] in seen and FOREIGN in bench.node["status"]["conditions"]


def test_a_node_that_is_due_is_planned_for_maintenance():
    bench = Commands()
    cluster, clock = FakeCluster(bench.world), bench.world.clock
    pending.label(cluster, ["npu-a"], [], clock=clock)
    assert types(bench.node) == ["MaintenancePlanned"]
    pending.label(cluster, [], ["npu-a"], clock=clock)
    assert types(bench.node) == []


def test_a_node_that_waits_for_approval_still_is():
    bench = Bench(state="upgrade-required")
    assert bench.run(auto=False, approval_wait=30)["outcome"] == "awaiting-approval"
    assert bench.labels["npu.openfuyao.com/driver-upgrade-state"] == "approval-required"
    assert types(bench.node) == ["MaintenancePlanned"]


def test_in_check_mode_nothing_is_written():
    bench = Commands()
    pending.label(FakeCluster(bench.world), ["npu-a"], [], check_mode=True, clock=bench.world.clock)
    assert types(bench.node) == []


def test_nothing_to_write_where_all_is_right():
    found = node("npu-a", labels={maintenance_record.LABEL_STATE: "upgrade-required"})
    found["status"]["conditions"] += node_conditions.patch(found, NOW)["status"]["conditions"]
    assert node_conditions.patch(found, NOW + 60) is None


def test_a_record_that_nobody_can_read_changes_none():
    found = node("npu-a", annotations={maintenance_record.ANNOTATION_RECORD: json.dumps({"format": 2})})
    found["status"]["conditions"].append(dict(FOREIGN, reason="NpuDriverUpgrade"))
    assert node_conditions.patch(found, NOW) is None


DRIVER = {
    "type": "npuops.ascend/DriverReady",
    "status": "True",
    "reason": "DriverResponds",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}


def driver(found):
    """What the condition of the node agent says."""
    (one,) = [one for one in found["status"]["conditions"] if one["type"] == DRIVER["type"]]
    return one["status"], one["reason"]


def with_driver(**fields):
    bench = Bench()
    bench.world.touch("npu-a", lambda item: item["status"]["conditions"].append(dict(DRIVER, **fields)))
    return bench


def test_a_driver_is_not_said_to_work_while_its_agent_is_paused():
    """No other client would say so: the agent leaves before the reboot, and is back after it."""
    bench = with_driver()
    bench.run(until="drain")
    assert driver(bench.node) == ("True", "DriverResponds")
    bench.run(until="reboot")
    assert bench.labels["npuops.ascend/components"] == "paused"
    assert driver(bench.node) == ("False", "DriverInMaintenance")
    (one,) = [one for one in bench.node["status"]["conditions"] if one["type"] == DRIVER["type"]]
    assert one["lastTransitionTime"] > DRIVER["lastTransitionTime"] and "agent" in one["message"]
    bench.run()
    bench.assert_upgraded()
    assert driver(bench.node) == ("False", "DriverInMaintenance"), "the agent's to change"


def test_what_the_agent_says_of_a_broken_driver_stays():
    bench = with_driver(status="False", reason="DriverWedged")
    bench.run()
    assert driver(bench.node) == ("False", "DriverWedged")


def test_a_node_that_nobody_maintains_keeps_what_its_agent_said():
    found = node("npu-a", labels={"npuops.ascend/components": "paused"})
    found["status"]["conditions"].append(dict(DRIVER))
    assert node_conditions.patch(found, NOW) is None


CHIPS = dict(DRIVER, type="npuops.ascend/ChipsHealthy")
NETWORK = dict(DRIVER, type="npuops.ascend/NetworkReady")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (CHIPS, ("True", "ChipsHealthy")),
        (CHIPS, ("False", "ChipsUnhealthy")),
        (CHIPS, ("False", "ChipsMissing")),
        (NETWORK, ("True", "NoPortFaults")),
        (NETWORK, ("False", "PortFaults")),
    ],
)
def test_nothing_is_known_of_the_chips_while_the_agent_is_paused(condition, said):
    bench = with_driver()
    status, reason = said
    bench.world.touch("npu-a", lambda item: item["status"]["conditions"].append(dict(condition, status=status, reason=reason)))

    def chips():
        (one,) = [one for one in bench.node["status"]["conditions"] if one["type"] == condition["type"]]
        return one["status"], one["reason"]

    bench.run(until="drain")
    assert chips() == said
    bench.run(until="reboot")
    assert chips() == ("Unknown", "DriverInMaintenance") and driver(bench.node) == ("False", "DriverInMaintenance")
    bench.run()
    bench.assert_upgraded()
    assert chips() == ("Unknown", "DriverInMaintenance"), "the agent's to change"
    assert types(bench.node) == [], "it is none of a maintenance"


def test_what_is_unknown_already_is_not_written_again():
    found = node("npu-a", labels={"npuops.ascend/components": "paused"}, annotations={"npuops.ascend/maintenance": "{}"})
    found["status"]["conditions"] += [dict(DRIVER, status="False"), dict(CHIPS, status="Unknown")]
    assert node_conditions.patch(found, NOW) is None
