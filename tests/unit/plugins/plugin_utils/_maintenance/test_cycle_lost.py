# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance whose record is gone: removed as the documentation and our own messages say, or with the Node object."""

from __future__ import annotations

import itertools
import re

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots

from support.fleet.commands_bench import OTHER, Commands
from support.fleet.fake_fleet import NEW, OLD, FakeCluster, Killed, Pods, die
from support.fleet.maintenance_bench import COMPONENTS, RECORD, STATE
from support.kube.field_owners import cordon_of
from support.paths import CHECKOUT

UPGRADE_MD = CHECKOUT / "docs" / "upgrade.md"
VERSION = "npuops.ascend/driver-version"


def giving_up():
    """The commands of docs/upgrade.md for a node that no run will come back for."""
    with open(UPGRADE_MD, encoding="utf-8") as file:
        (row,) = [line for line in file if line.startswith("| abandon a node that no run will continue")]
    commands = re.findall("`(kubectl (?:annotate|label|uncordon)[^`]*)`", row)
    assert len(commands) == 4, row
    return commands


def drop_slots(bench):
    """As the next node does that wants one: what a dead run left is dropped when nothing was heard of it for a while."""
    slots = maintenance_slots.Slots(FakeCluster(bench.world), "npu-operator", bench.world.clock)
    while slots.take("npu-z", "run-z", 1) is not None:
        bench.wait(31)
    slots.give("npu-z", "run-z")


def on_trial(bench):
    """Dies while the new driver is validated."""
    bench.host.validate = die
    with pytest.raises(Killed):
        bench.upgrade()
    del bench.host.validate
    assert (bench.host.driver, bench.host.good, bench.labels[STATE]) == (NEW, OLD, "validation-required")
    bench.wait(300)


@pytest.mark.parametrize("when", ["before", "after"])
def test_given_up_as_the_documentation_says_at_every_call(when):
    """What comes after is not taken for done before the driver is confirmed, and needs no other reboot than it would have."""
    tried = 0
    for at in itertools.count(1):
        bench = Commands()
        if not bench.dies("upgrade", at, when):
            break
        bench.wait(300)
        if RECORD not in bench.annotations:
            continue
        for command in giving_up():
            bench.kubectl(command)
        assert not bench.cordoned and bench.labels[COMPONENTS] == "enabled"
        armed, boots = bench.host.next is not None, bench.host.boots
        tried += bench.host.driver == NEW != bench.host.good
        verdict, outcome = bench.upgrade()
        assert verdict != "up-to-date" or bench.host.good == NEW, at
        if outcome is not None:
            assert outcome["outcome"] == "done", (at, outcome)
        assert (bench.host.driver, bench.host.good) == (NEW, NEW)
        assert bench.host.boots == max(boots, 1) and not armed
        assert STATE not in bench.labels and bench.upgrade() == ("up-to-date", None)
        drop_slots(bench)
        bench.assert_nothing_left()
    assert at > 12 and tried >= 3


def test_a_node_that_was_deleted_in_validation_is_validated_and_confirmed():
    bench = Commands()
    on_trial(bench)
    bench.kubectl("kubectl delete node npu-a")
    with pytest.raises(KeyError):
        bench.node
    bench.host._kubelet()  # systemctl restart kubelet
    bench.wait(60)
    bench.world.touch("npu-a", lambda node: node["status"]["nodeInfo"].update(containerRuntimeVersion="containerd://2.1.5"))
    (entry,) = bench.plan().entries
    assert entry.verdict == "on-trial" and any("run install afterwards" in note for note in entry.notes)
    assert bench.upgrade()[1]["outcome"] == "done"
    assert (bench.host.driver, bench.host.good, bench.host.boots) == (NEW, NEW, 1)
    assert bench.labels == {VERSION: "25.5.0", "npuops.ascend/firmware-version": bench.host.firmware} and not bench.cordoned
    assert bench.upgrade() == ("up-to-date", None)


def watched():
    """(a bench, the list of what the components' label said whenever something waited until they are gone)."""

    class Watched(Pods):
        def wait_components_gone(self, timeout):
            waited_for.append(bench.labels[COMPONENTS])
            return super().wait_components_gone(timeout)

    bench, waited_for = Commands(pods=Watched(None)), []
    bench.pods._world = bench.world
    return bench, waited_for


def test_components_that_a_failed_upgrade_left_paused_return_with_the_driver():
    """The upgrade ended as failed, with neither driver working, and the host is in its trial boot all the same."""
    bench = Commands()
    bench.host.broken = {OLD, NEW}
    assert bench.upgrade()[1]["outcome"] == "failed"
    assert bench.labels[COMPONENTS] == "paused" and bench.cordoned and RECORD not in bench.annotations
    bench.host.broken = set()
    bench.host.trial = {"release": NEW, "generation": bench.host.generation, "boot_id": bench.host.boot_id}
    bench.host.driver = NEW
    (entry,) = bench.plan(retry=True, clear_halt=True).entries
    assert entry.verdict == "on-trial"
    assert bench.upgrade(retry=True, clear_halt=True)[1]["outcome"] == "done"
    assert bench.labels[COMPONENTS] == "enabled" and not bench.cordoned and bench.host.good == NEW


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_trial_that_does_not_validate_goes_back_with_one_reboot(gives_up):
    bench, waited_for = watched()
    on_trial(bench)
    waited_for.clear()
    for command in giving_up() if gives_up else giving_up()[:1]:
        bench.kubectl(command)
    bench.host.broken, bench.pods.npu, bench.pods.others = {NEW}, 2, 1
    _verdict, outcome = bench.upgrade()
    assert outcome["outcome"] == "failed" and "It is back on 25.2.0" in outcome["reason"]
    assert (bench.host.driver, bench.host.good, bench.host.boots) == (OLD, OLD, 2)
    # Who had come onto the node meanwhile was evicted, and not cut off.
    assert (bench.pods.npu, bench.pods.others) == (0, 0)
    assert waited_for == ["paused"]
    assert bench.labels[COMPONENTS] == "enabled" and bench.labels[STATE] == "upgrade-failed"
    assert bench.world.slots()["halted"]
    bench.assert_nothing_left()


def test_who_cannot_leave_a_node_in_service_keeps_it_from_going_back():
    class Stuck(Pods):
        def evict_others(self):
            if bench.host.boots:
                raise blocked
            return super().evict_others()

    from ansible_collections.npuops.ascend.plugins.plugin_utils._pods.blocker import Blocked

    blocked = Blocked("npu-a is not drained: the pod train/web-0 cannot go", [])
    bench = Commands(pods=Stuck(None))
    on_trial(bench)
    for command in giving_up():
        bench.kubectl(command)
    bench.host.broken = {NEW}
    _verdict, outcome = bench.upgrade()
    assert outcome["outcome"] == "halted" and "train/web-0 cannot go" in outcome["reason"]
    assert bench.host.boots == 1 and bench.cordoned and bench.labels[STATE] == "rollback-required"


def test_a_rollback_takes_a_trial_back_that_has_no_record():
    bench = Commands()
    on_trial(bench)
    bench.kubectl(giving_up()[0])
    verdict, outcome = bench.rollback()
    assert (verdict, outcome["outcome"]) == ("on-trial", "done")
    assert (bench.host.driver, bench.host.good, bench.host.boots) == (OLD, OLD, 2)
    assert bench.labels[VERSION] == "25.2.0" and STATE not in bench.labels
    bench.assert_nothing_left()
    assert bench.rollback()[1] is None and bench.host.boots == 2


def test_an_upgrade_to_another_driver_goes_back_first():
    bench = Commands()
    on_trial(bench)
    for command in giving_up():
        bench.kubectl(command)
    bench.wanted = OTHER
    assert bench.upgrade()[1]["outcome"] == "done"
    assert (bench.host.driver, bench.host.good, bench.host.previous) == (OTHER, OTHER, OLD)
    bench.assert_nothing_left()


@pytest.mark.parametrize("state", ["approval-required", "upgrade-required", "upgrade-failed"])
def test_to_validate_a_trial_needs_no_approval(state):
    """Whatever the label says."""
    bench = Commands()
    on_trial(bench)
    for command in giving_up():
        bench.kubectl(command)
    bench.kubectl("kubectl label node npu-a %s=%s" % (STATE, state))
    assert bench.plan(auto=False).entries[0].verdict == "on-trial"
    assert bench.run("run-9", auto=False)["outcome"] == "done"
    assert (bench.host.good, bench.host.boots) == (NEW, 1) and STATE not in bench.labels
    bench.assert_nothing_left()


def test_without_a_target_a_trial_is_validated():
    """The registry does not answer, say."""
    bench = Commands()
    on_trial(bench)
    bench.kubectl(giving_up()[0])
    empty = {"version": "", "release": "", "digest": ""}
    assert bench.run("run-9", order={"target": empty})["outcome"] == "done"
    assert (bench.host.good, bench.host.boots) == (NEW, 1)
    bench.assert_nothing_left()


def test_what_the_next_boot_would_try_is_taken_back_when_it_is_not_wanted_any_more():
    """The run died inside of the call that reboots the host."""
    bench = Commands()
    rebooted = bench.host.rebooted

    def half_way(*_arguments):
        bench.host.next = NEW
        raise Killed()

    bench.host.rebooted = half_way
    with pytest.raises(Killed):
        bench.upgrade()
    bench.host.rebooted = rebooted
    for command in giving_up():
        bench.kubectl(command)
    bench.wanted = OLD
    (entry,) = bench.plan().entries
    assert entry.verdict == "in-flight" and "its next boot would try %s" % NEW in entry.notes[0]
    assert bench.upgrade()[1]["outcome"] == "withdrawn"
    assert bench.host.next is None and bench.host.boots == 0 and bench.upgrade() == ("up-to-date", None)
    bench.assert_nothing_left()


def test_what_is_there_by_now_is_given_back_without_another_maintenance():
    """The plan was made before a user gave the node up."""
    bench = Commands()
    bench.pods.on_drain = die
    with pytest.raises(Killed):
        bench.upgrade()
    bench.pods.on_drain = None
    bench.wait(300)
    bench.kubectl(giving_up()[0])
    outcome = bench.run("run-9", order={"target": {"version": "25.2.0", "release": OLD, "digest": ""}})
    assert (outcome["outcome"], bench.host.boots) == ("withdrawn", 0) and not bench.cordoned
    bench.wanted = OLD
    assert bench.upgrade() == ("up-to-date", None)
    bench.assert_nothing_left()


# --- garbage in the record, and what the message says then ---


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("wanted", [NEW, OLD])
def test_garbage_in_the_record_at_every_call(wanted, when, keeps):
    """``keeps``: a person had cordoned the node before."""
    for at in itertools.count(1):
        bench = Commands(cordoned=keeps)
        if not bench.dies("upgrade", at, when):
            break
        bench.wait(300)
        if RECORD not in bench.annotations:
            continue
        bench.kubectl("kubectl annotate node npu-a %s={garbage --overwrite" % RECORD)
        with pytest.raises(AssertionError) as refused:
            bench.upgrade()
        advice = re.findall(r"kubectl annotate node npu-a \S+-(?=[\s)])", str(refused.value))
        assert advice, str(refused.value)
        bench.kubectl(advice[0])
        bench.wanted = wanted
        for _number in range(2):
            _verdict, outcome = bench.upgrade()
            assert outcome is None or outcome["outcome"] in ("done", "withdrawn", "up-to-date"), (at, outcome)
        assert bench.host.driver == bench.host.good == wanted, at
        assert bench.labels[COMPONENTS] == "enabled" and STATE not in bench.labels, (at, bench.labels)
        assert bench.host.boots <= 1 if wanted == NEW else bench.host.boots <= 2
        drop_slots(bench)
        bench.assert_nothing_left(cordoned=keeps)
    assert at > 12


def test_what_a_recovery_left_without_its_record_is_given_back():
    bench = Commands(wedged=True)
    bench.pods.on_drain = die
    with pytest.raises(Killed):
        bench.heal()
    bench.pods.on_drain = None
    bench.wait(300)
    bench.kubectl(giving_up()[0])
    assert bench.heal()[1]["outcome"] == "done"
    assert not bench.cordoned and bench.host.boots == 1
    bench.wanted = OLD
    assert bench.upgrade() == ("up-to-date", None) and STATE not in bench.labels


# --- a label that a user removed ---


def test_a_label_that_vanished_makes_no_node_upgraded():
    bench = Commands()
    (entry,) = bench.plan().entries
    target = {key: entry.target[key] for key in ("version", "release", "digest")}
    assert STATE not in bench.labels  # it was, until just before the node's turn
    outcome = bench.run("run-1", order={"target": target})
    assert outcome["outcome"] == "failed" and "its host runs %s" % OLD in outcome["reason"]
    assert "its label npu.openfuyao.com/driver-upgrade-state was removed" in outcome["reason"]
    assert bench.host.boots == 0 and not bench.cordoned
    verdict, outcome = bench.upgrade()
    assert (verdict, outcome["outcome"], bench.host.good) == ("ready", "done", NEW)


def test_a_label_that_vanishes_while_the_run_waits_for_approval():
    bench = Commands()
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    bench.world.clock.at(30, lambda: bench.kubectl("kubectl label node npu-a %s-" % STATE))
    outcome = bench.run("run-1", auto=False, approval_wait=100)
    assert outcome["outcome"] == "failed" and "its label npu.openfuyao.com/driver-upgrade-state was removed" in outcome["reason"]
    assert bench.host.boots == 0


def test_a_node_that_another_run_has_upgraded_is_up_to_date():
    bench = Commands()
    assert bench.upgrade()[1]["outcome"] == "done"
    assert bench.run("run-9")["outcome"] == "up-to-date"
    # But not one whose Node says something else than its host.
    bench.kubectl("kubectl label node npu-a %s=25.2.0" % VERSION)
    outcome = bench.run("run-9")
    assert outcome["outcome"] == "failed" and "Run npuops.ascend.install" in outcome["reason"]


def test_a_host_that_cannot_be_asked_is_not_up_to_date():
    bench = Commands()
    bench.host.reachable = False
    with pytest.raises(NpuError, match="did not answer"):
        bench.run("run-9")


def test_a_node_that_somebody_else_cordoned_meanwhile_stays_cordoned():
    bench = Commands()
    on_trial(bench)
    bench.kubectl(giving_up()[0])
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of("kubectl-cordon")]))
    assert maintenance_record.cordoned_by(bench.node) == "kubectl-cordon"
    assert bench.upgrade()[1]["outcome"] == "done" and bench.cordoned


@pytest.mark.parametrize("by", [[], [cordon_of("kubectl-cordon")]])
def test_a_node_that_was_given_up_and_cordoned_stays_cordoned(by):
    """Also where managedFields do not tell by whom."""
    bench = Commands()
    on_trial(bench)
    for command in giving_up():
        bench.kubectl(command)
    bench.world.touch("npu-a", lambda node: node["spec"].update(unschedulable=True))
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=by))
    assert bench.upgrade()[1]["outcome"] == "done" and bench.cordoned


def test_a_cordon_that_is_left_of_one_that_was_given_up_is_ours():
    bench = Commands()
    on_trial(bench)
    for command in giving_up():
        if "uncordon" not in command:
            bench.kubectl(command)
    assert bench.cordoned and STATE not in bench.labels
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of(maintenance_record.CORDON_MANAGER)]))
    assert bench.upgrade()[1]["outcome"] == "done" and not bench.cordoned


def test_a_cordon_of_ours_without_record_and_label_is_ours():
    """Given up in the drain, with the components put back, but not uncordoned."""

    def dies():
        raise Killed()

    bench = Commands(pods=Pods(None, on_drain=dies))
    bench.pods._world = bench.world
    with pytest.raises(Killed):
        bench.upgrade()
    bench.pods.on_drain = None
    for command in giving_up():
        if "uncordon" not in command:
            bench.kubectl(command)
    bench.kubectl("kubectl label node npu-a %s=enabled --overwrite" % COMPONENTS)
    drop_slots(bench)
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=[cordon_of(maintenance_record.CORDON_MANAGER)]))
    assert bench.cordoned
    assert bench.upgrade()[1]["outcome"] == "done" and not bench.cordoned


def test_components_that_somebody_lets_run_leave_before_the_way_back():
    """They hold the driver, and would never leave if they were not paused."""

    bench, waited_for = watched()
    on_trial(bench)
    bench.kubectl(giving_up()[0])
    bench.kubectl("kubectl label node npu-a %s=enabled --overwrite" % COMPONENTS)
    waited_for.clear()
    assert bench.rollback()[1]["outcome"] == "done"
    assert waited_for == ["paused"] and bench.labels[COMPONENTS] == "enabled"
    bench.assert_nothing_left()
