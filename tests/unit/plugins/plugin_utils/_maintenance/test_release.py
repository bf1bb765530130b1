# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A person gives a node back that a maintenance left: at every call at which its run can have died, and after it failed."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.release import Order, Releasing
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots

from support.fleet.commands_bench import Commands
from support.fleet.fake_fleet import LEASE, NEW, OLD, FakeCluster, Fate, Killed
from support.fleet.maintenance_bench import COMPONENTS, LAST, RECORD, STATE, Bench
from support.kube.field_owners import cordon_of

WHO = "chen.wei (job 42)"


def release(bench, force=False, alive=(), check_mode=False):
    """(what was done or None, whether there was anything to do)."""
    cluster, clock = FakeCluster(bench.world), bench.world.clock
    slots = maintenance_slots.Slots(cluster, "npu-operator", clock)
    releasing = Releasing(cluster, slots, "npu-a", Order(WHO, "incident 4711", force), clock)
    dead = {bench.record["run"]} - set(alive) if RECORD in bench.annotations else set()
    there = releasing.run(dead, slots.view()["holders"].get("npu-a"), check_mode)
    return releasing.told if there else None


def assert_serves(bench):
    assert not bench.cordoned and bench.labels[COMPONENTS] == "enabled"
    assert RECORD not in bench.annotations and bench.labels.get(STATE) in (None, "upgrade-failed", "upgrade-required")


@pytest.mark.parametrize("when", ["before", "after"])
def test_released_at_every_call_and_upgraded_later(when):
    """Nothing is taken for done before the driver is confirmed, and no more reboots are needed than without."""
    tried = refused = 0
    for at in itertools.count(1):
        bench = Commands()
        if not bench.dies("upgrade", at, when):
            break
        bench.wait(300)
        if RECORD not in bench.annotations:
            continue
        certain = bench.record["boot_id"] is not None
        if certain:
            refused += 1
            before = bench.node
            with pytest.raises(NpuError, match="its reboot is certain, and the host may be on trial .* npuops.ascend.upgrade"):
                release(bench)
            assert bench.node == before
        assert "the upgrade from 25.2.0 to 25.5.0 by the run run-1 ended" in release(bench, force=certain), at
        assert_serves(bench)
        assert bench.world.slots()["holders"] == {}
        if LAST in bench.annotations:
            assert (bench.last["outcome"], bench.last["failure"]) == ("released", "Released by %s: Incident 4711." % WHO)
        assert release(bench) is None
        armed, boots = bench.host.next is not None, bench.host.boots
        tried += bench.host.driver == NEW != bench.host.good
        _verdict, outcome = bench.upgrade()
        if outcome is not None:
            assert outcome["outcome"] == "done", (at, outcome)
        assert (bench.host.driver, bench.host.good) == (NEW, NEW)
        assert bench.host.boots == max(boots, 1) and not armed
        bench.assert_nothing_left()
    assert at > 12 and tried >= 3 and refused >= 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_release_that_dies_is_repeated(when):
    for at in itertools.count(1):
        bench = Bench()
        bench.run(until="drain")
        bench.world.fate = Fate(at, "kill", when)
        try:
            release(bench)
        except Killed:
            bench.world.fate = Fate()
            release(bench)
            assert_serves(bench)
        else:
            break
    assert at > 2


def test_a_run_that_is_alive_keeps_its_node():
    bench = Bench()
    bench.run(until="drain")
    with pytest.raises(NpuError, match="the run run-1 is at work on it .step wait-for-jobs-required"):
        release(bench, force=True, alive=["run-1"])
    assert bench.cordoned and RECORD in bench.annotations


def test_check_mode_changes_nothing():
    bench = Bench()
    bench.run(until="drain")
    before = bench.node
    assert "it is uncordoned" in release(bench, check_mode=True)
    assert bench.node == before and bench.world.slots()["holders"]


@pytest.mark.parametrize("cordon", ["before", "keep", "since"])
def test_a_cordon_that_others_want_stays(cordon):
    bench = Bench()
    if cordon == "before":
        bench.cordon()
        bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of("kubectl-cordon")]))
    bench.run(until="drain")
    if cordon == "keep":
        bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({"npuops.ascend/keep-cordoned": "true"}))
    if cordon == "since":
        bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of("kubectl-cordon")]))
    told = release(bench)
    assert bench.cordoned and RECORD not in bench.annotations
    who = "the label npuops.ascend/keep-cordoned" if cordon == "keep" else "another client"
    assert told.endswith("it stays cordoned, which %s wants: kubectl uncordon npu-a" % who)


def test_a_node_that_a_failed_maintenance_left_serves_again():
    """It stays failed for the next upgrade, which is to be asked for with a retry."""
    bench = Commands()
    bench.host.broken = {NEW, OLD}
    assert bench.upgrade()[1]["outcome"] == "failed"
    assert bench.cordoned and bench.labels[COMPONENTS] == "paused"
    bench.host.broken = set()
    told = release(bench)
    assert told.startswith("it had been left out of service by the upgrade from") and "its components run again" in told
    assert_serves(bench)
    assert bench.labels[STATE] == "upgrade-failed" and bench.last["failure"].endswith("Released by %s: Incident 4711." % WHO)
    assert release(bench) is None
    bench.world.objects.pop(LEASE)  # npu_upgrade_clear_halt
    assert bench.upgrade(retry=True)[1]["outcome"] == "done"
    assert_serves(bench)


def test_a_record_that_is_gone():
    bench = Bench()
    bench.run(until="drain")
    bench.annotate(record=None)
    assert release(bench).startswith("a maintenance whose record is missing ended")
    assert_serves(bench)
    assert bench.world.slots()["holders"] == {} and release(bench) is None


def test_a_recovery_leaves_the_state_of_the_upgrade():
    bench = Commands(wedged=True)
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-failed"}))
    assert bench.dies("heal", 8, "after")
    bench.wait(300)
    if RECORD in bench.annotations:
        release(bench, force=True)
    assert bench.labels[STATE] == "upgrade-failed"


def test_a_node_that_a_failed_maintenance_left_is_kept_cordoned_by_its_label():
    bench = Bench()
    bench.host.broken = {NEW, OLD}
    bench.run()
    bench.world.objects.pop(LEASE)
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    bench.host.broken = set()
    bench.run("run-2", until="drain")
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({"npuops.ascend/keep-cordoned": "true"}))
    assert "left-cordoned" in bench.record["times"] and release(bench) and bench.cordoned


@pytest.mark.parametrize(
    "more", [{}, {"from": None, "to": None}, {"to": {}, "reason": None}, {"outcome": "failed", "failure": None}]
)
def test_a_last_maintenance_of_which_little_is_left(more):
    """Who may write annotations of Nodes may write anything there; the other nodes of the run are released all the same."""
    bench = Commands()
    text = json.dumps({"run": "run-0", "generation": 1, "times": {"left-cordoned": "x"}, **more})
    bench.cordon()
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of("npuops.ascend-maintenance")]))
    bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].update({LAST: text}))
    assert "it had been left out of service by the " in release(bench)
    assert not bench.cordoned


def test_a_cordon_without_a_mark():
    """The record of a maintenance came back from a backup, and a later run ended it without a word of the cordon."""
    bench = Commands()
    bench.cordon()
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of("npuops.ascend-maintenance")]))
    assert release(bench) == "a maintenance that has ended had cordoned it; it is uncordoned"
    assert_serves(bench)


def test_nodes_that_no_maintenance_left():
    bench = Commands()
    assert release(bench) is None
    bench.cordon()
    assert release(bench) is None and bench.cordoned
