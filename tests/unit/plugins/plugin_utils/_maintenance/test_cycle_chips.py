# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with chips that are not OK: what was so before is no reason against a driver, and the other chips serve on."""

from __future__ import annotations

import json

import pytest

from support.fleet.fake_fleet import LEASE, NEW, NODES, RESOURCE
from support.fleet.maintenance_bench import REBOOT_REQUIRED, RECORD, Bench, Wedged


def offer(bench, count):
    """The device plugin withdraws the others."""
    bench.world.touch("npu-a", lambda node: node["status"]["allocatable"].update({RESOURCE: str(count)}))


def after_each_boot(bench, number, word):
    choose = bench.host.choose

    def boot():
        choose()
        bench.host.health[number] = word

    bench.host.choose = boot


@pytest.mark.parametrize("health", [["Critical"], ["Warning", "OK", "Alarm"], ["Alarm"] * 8])
@pytest.mark.parametrize("withdrawn", [False, True])
def test_what_was_so_before_is_no_reason_against_a_driver(health, withdrawn):
    bench = Bench()
    bench.host.health[: len(health)] = health
    if withdrawn:
        offer(bench, 8 - sum(word != "OK" for word in health))
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert any("goes on with chips that are not OK: NPU 0 chip 0" in sentence for _step, sentence in bench.said)


def test_a_chip_that_is_better_than_before_is_none_either():
    bench = Bench()
    bench.host.health[2] = "Critical"
    after_each_boot(bench, 2, "Warning")
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()


def without_an_answer_before_the_reboot(bench):
    """npu-smi of the old driver hangs."""
    listed, before = bench.host.listed, bench.host.boot_id

    def list_chips():
        return None if bench.host.boot_id == before else listed()

    bench.host.listed = list_chips


def test_a_driver_is_not_blamed_for_chips_that_were_not_known_to_be_ok():
    bench = Bench()
    bench.host.health[:2] = ["Critical", "Alarm"]
    without_an_answer_before_the_reboot(bench)
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert bench.last["chips"] is None
    assert any("it is not known how they were before the reboot" in sentence for _step, sentence in bench.said)


def test_a_driver_with_which_no_chip_works_is_refused_also_then():
    bench = Bench()
    bench.host.worsens = {NEW: range(8)}
    without_an_answer_before_the_reboot(bench)
    assert bench.run()["outcome"] == "failed"
    bench.assert_rolled_back()


def test_a_driver_that_makes_a_chip_worse_is_rolled_back():
    bench = Bench()
    bench.host.health[0] = "Warning"
    bench.host.worsens = {NEW: [5]}
    outcome = bench.run()
    assert outcome["outcome"] == "failed"
    assert "worse than before: NPU 5 chip 0 (0000:06:00.0) is Critical, and was OK before. It is back on" in outcome["reason"]
    bench.assert_rolled_back()


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_chip_that_breaks_meanwhile_takes_no_other_out_of_service(withdrawn):
    """It is Critical with either driver: the old one is confirmed all the same."""
    bench = Bench()
    after_each_boot(bench, 3, "Critical")
    if withdrawn:
        offer(bench, 7)
    assert bench.run()["outcome"] == "failed"
    bench.assert_rolled_back()
    assert not bench.world.slots()["halted"].get("node")


def test_a_node_none_of_whose_chips_is_offered_does_not_serve():
    bench = Bench()
    bench.host.health[3] = "Critical"
    offer(bench, 6)
    assert "offers 6 of 8 %s after 300 s" % RESOURCE in bench.run()["reason"]


@pytest.mark.parametrize("killed_after", ["reboot-required", "validation-required"])
def test_another_run_compares_with_what_was_before_the_reboot(killed_after):
    class Stopped(BaseException):
        pass

    bench = Bench()
    bench.host.health[0] = "Alarm"
    bench.host.worsens = {NEW: [5]}

    def stop():
        node = bench.world.objects[NODES + "/npu-a"]
        record = json.loads(node["metadata"]["annotations"].get(RECORD, "{}"))
        if record.get("step") == killed_after and record["boot_id"]:
            bench.world.after_write = lambda: None
            raise Stopped()

    bench.world.after_write = stop
    with pytest.raises(Stopped):
        bench.run()
    bench.wait(120)
    outcome = bench.run(run="run-2")
    assert "NPU 5 chip 0" in outcome["reason"] and "NPU 0" not in outcome["reason"]
    bench.assert_rolled_back()


def test_a_recovery_gives_back_the_chips_that_answer():
    bench = Wedged()
    after_each_boot(bench, 3, "Critical")
    offer(bench, 7)
    assert bench.run()["outcome"] == "done"
    bench.assert_recovered()


def halt(bench, node=None):
    halted = {"who": "x", "why": "Two nodes are lost.", "when": "2026-01-01T00:00:00Z", "reason": "upgrade"}
    holders = {node: {"run": "run-0", "since": "2026-01-01T00:00:00Z"}} if node else {}
    slots = {"max": 1, "holders": holders, "halted": dict(halted, node=node) if node else halted}
    bench.world.put(LEASE, {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": json.dumps(slots)}}})


@pytest.mark.parametrize("node", [None, "npu-b"])
def test_a_halt_of_an_upgrade_stops_no_recovery(node):
    """Nor does the node that stands still because of it, and has the only slot."""
    bench = Wedged()
    bench.world.add("npu-b", annotations={RECORD: json.dumps({"run": "run-0", "generation": 1, "step": "reboot-required"})})
    halt(bench, node)
    assert bench.run()["outcome"] == "done"
    bench.wait(20)  # for the node agent
    assert bench.host.boots == 1 and not bench.cordoned and REBOOT_REQUIRED not in bench.labels
    assert bench.world.slots()["halted"]["why"] == "Two nodes are lost."
    assert list(bench.world.slots()["holders"]) == ([node] if node else [])


@pytest.mark.parametrize("recovers", [False, True])
def test_a_chip_that_is_gone_after_the_reboot(recovers):
    """A driver on trial is blamed; then, and after a recovery, the node serves with the others."""
    bench = Wedged() if recovers else Bench()
    choose = bench.host.choose

    def boot():
        choose()
        bench.host.health = ["OK"] * 7
        offer(bench, 7)

    bench.host.choose = boot
    outcome = bench.run()
    if recovers:
        assert outcome["outcome"] == "done"
        bench.assert_recovered()
    else:
        assert "its chips are worse than before: the chip 0000:08:00.0 is missing. It is back on" in outcome["reason"]
        bench.assert_rolled_back()


@pytest.mark.parametrize("kind", [Bench, Wedged])
def test_a_chip_that_returns_with_the_reboot_is_no_failure(kind):
    """It had fallen off the bus when the maintenance was planned."""
    bench = kind()
    bench.host.health = ["OK"] * 7
    offer(bench, 7)
    choose = bench.host.choose

    def boot():
        choose()
        bench.host.health = ["OK"] * 8
        offer(bench, 8)

    bench.host.choose = boot
    assert bench.run(order={"chips": 7, "offers": {RESOURCE: 7}})["outcome"] == "done"
    assert bench.host.boots == 1 and not bench.cordoned and not bench.world.slots()["halted"]
