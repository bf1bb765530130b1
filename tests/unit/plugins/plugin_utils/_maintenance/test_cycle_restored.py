# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster is restored from a backup, and with it the record of a maintenance that ended long ago: the host knows better."""

from __future__ import annotations

import copy

import pytest

from support.fleet.fake_fleet import NEW, OLD, Killed
from support.fleet.maintenance_bench import APPROVAL_FOR, APPROVE, LAST, RECORD, STATE, TARGET, Bench, Wedged

THIRD = "25.7.0-k-cccccccccccc"
LATER = {"target": {"version": "25.7.0", "release": THIRD, "digest": "sha256:" + "c" * 64}}


def backups(bench, **options):
    """What a backup has that is taken after each write of a maintenance whose reboot is certain. ``options``: of its run."""
    check, found = bench.world.after_write, []

    def back_up():
        check()
        if RECORD in bench.annotations and bench.record["boot_id"] is not None:
            found.append(copy.deepcopy(bench.world.objects))

    bench.world.after_write = back_up
    assert bench.run(**options)["outcome"] == "done"
    bench.world.after_write = check
    return found


def of_an_approved_upgrade(bench):
    bench.annotate(approve="true")
    return backups(bench, auto=False)


def later(bench, **order):
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    return bench.run(run="run-2", order={**LATER, **order})


def restore(bench, backup):
    for path, item in copy.deepcopy(backup).items():
        bench.world.put(path, item)
    # The kubelet reports.
    bench.world.touch("npu-a", lambda node: node["status"]["nodeInfo"].update(bootID=bench.host.boot_id))
    bench.world.touch("npu-a", lambda node: node["status"].update(conditions=[{"type": "Ready", "status": "True"}]))
    bench.wait(7200)


def cases():
    """(number of the backup, whether the host does not answer when its record is taken up)"""
    for number, _backup in enumerate(of_an_approved_upgrade(Bench())):
        yield number, False
        yield number, True


@pytest.mark.parametrize(("number", "silent"), list(cases()))
def test_a_record_older_than_the_host_reboots_nothing(number, silent):
    bench = Bench()
    backup = of_an_approved_upgrade(bench)[number]
    assert later(bench)["outcome"] == "done" and (bench.host.driver, bench.host.good) == (THIRD, THIRD)
    boots = bench.host.boots
    restore(bench, backup)
    if silent:
        # For longer than it takes to take the record up.
        bench.host.reachable = False
        bench.world.clock.at(200.0, lambda: setattr(bench.host, "reachable", True))
    # What a plan has for a record whose reboot is certain.
    outcome = bench.run(run="run-3", order={"target": TARGET})
    assert (bench.host.driver, bench.host.good, bench.host.boots) == (THIRD, THIRD, boots), bench.said
    assert outcome["outcome"] == "failed" and "is older than what its host has seen" in outcome["reason"]
    assert "the host keeps its driver %s" % THIRD in outcome["reason"]
    # Its approval was used long ago.
    assert bench.labels[STATE] == "upgrade-required"
    bench.assert_nothing_left()


@pytest.mark.parametrize("number", range(len(of_an_approved_upgrade(Bench()))))
def test_a_host_that_was_silent_for_a_whole_run_is_asked_by_the_next(number):
    """Which driver it has is unknown: the first run neither labels the node with that of the old record nor lets it serve. Its own
    mark on the record makes that no newer."""
    bench = Bench()
    backup = of_an_approved_upgrade(bench)[number]
    assert later(bench)["outcome"] == "done"
    boots = bench.host.boots
    restore(bench, backup)
    bench.host.reachable = False
    outcome = bench.run(run="run-3", order={"target": TARGET})
    assert outcome["outcome"] == "halted" and bench.record["step"] in outcome["reason"], bench.said
    assert bench.record["step"] == bench.labels[STATE] and bench.cordoned
    bench.host.reachable = True
    outcome = bench.run(run="run-4", order={"target": TARGET})
    assert (bench.host.driver, bench.host.good, bench.host.boots) == (THIRD, THIRD, boots), bench.said
    assert outcome["outcome"] == "failed" and "the host keeps its driver %s" % THIRD in outcome["reason"]
    assert bench.labels[STATE] == "upgrade-required"
    bench.assert_nothing_left()


@pytest.mark.parametrize("number", range(len(of_an_approved_upgrade(Bench()))))
def test_a_run_that_died_while_its_host_was_silent_is_finished(number):
    """The same without a backup: the host has seen nothing newer."""
    bench, count = Bench(), 0
    bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].update({APPROVE: "true"}))
    check = bench.world.after_write

    def dies():
        nonlocal count
        check()
        if RECORD in bench.annotations and bench.record["boot_id"] is not None:
            count += 1
            if count == number + 1:
                raise Killed()

    bench.world.after_write = dies
    with pytest.raises(Killed):
        bench.run(auto=False)
    bench.world.after_write = check
    bench.wait(7200)
    bench.host.reachable = False
    assert bench.run(run="run-2")["outcome"] == "halted"
    bench.host.reachable = True
    assert bench.run(run="run-3")["outcome"] == "done", bench.said
    bench.assert_upgraded()


def test_an_approval_that_comes_back_counts_for_no_other_version():
    """The backup is of a node that had been asked and approved, and was not rebooted yet."""
    bench = Bench()
    assert bench.run(auto=False)["outcome"] == "awaiting-approval"
    bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].update({APPROVE: "true"}))
    backup = copy.deepcopy(bench.world.objects)
    assert bench.run(run="run-2", auto=False)["outcome"] == "done"
    boots = bench.host.boots
    restore(bench, backup)
    assert bench.run(run="run-3", order=LATER, auto=False)["outcome"] == "awaiting-approval"
    assert bench.host.boots == boots and APPROVE not in bench.annotations


def test_a_later_trial_goes_back_to_the_driver_that_is_confirmed():
    bench = Bench()
    backup = of_an_approved_upgrade(bench)[0]
    confirmed = bench.host.confirmed

    def dies(*_args):
        raise Killed()

    bench.host.confirmed = dies
    with pytest.raises(Killed):
        later(bench)
    bench.host.confirmed = confirmed
    assert (bench.host.driver, bench.host.good) == (THIRD, NEW)
    restore(bench, backup)
    assert bench.run(run="run-3", order={"target": TARGET})["outcome"] == "done"
    assert (bench.host.driver, bench.host.good, bench.host.tries) == (NEW, NEW, {NEW: 1, THIRD: 1})
    bench.assert_nothing_left()


def test_an_old_recovery_reboots_no_host_twice():
    bench = Wedged()
    found = backups(bench)
    bench.wait(60)
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    assert bench.upgrade(run="run-2")["outcome"] == "done"
    boots = bench.host.boots
    restore(bench, found[0])
    bench.run(run="run-3")
    assert bench.host.boots == boots and RECORD not in bench.annotations and not bench.cordoned


def approved(bench, run="run-1"):
    """What a backup has of a node that was asked and approved, and was not rebooted yet."""
    assert bench.run(run, auto=False)["outcome"] == "awaiting-approval"
    bench.annotate(approve="true")
    return copy.deepcopy(bench.world.objects)


def back_to_the_old_driver(bench):
    """A user rolls the host back, for which no approval was asked."""
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    target = {"version": "25.2.0", "release": OLD, "digest": None}
    assert bench.run("back", order={"target": target, "reason": "rollback"})["outcome"] == "done"


def restored_approval(**options):
    """A bench whose node was restored to an approval that has been used, for the version that is wanted again."""
    bench = Bench(**options)
    backup = approved(bench)
    assert bench.run("run-2", auto=False)["outcome"] == "done"
    back_to_the_old_driver(bench)
    restore(bench, backup)
    assert bench.annotations[APPROVE] == "true" and bench.host.generation == 2
    return bench


def test_an_approval_that_comes_back_is_used_once():
    """For the very version that it was given for, and used for."""
    bench = restored_approval()
    boots = bench.host.boots
    outcome = bench.run("run-3", auto=False)
    assert outcome["outcome"] == "awaiting-approval" and bench.host.boots == boots, bench.said
    assert "may have been used for a maintenance that its host has seen (generation 2)" in outcome["reason"]
    assert outcome["reason"].endswith("approve-reboot=true npuops.ascend/approval-for=25.5.0 --overwrite")
    assert APPROVE not in bench.annotations and bench.annotations[APPROVAL_FOR] == "25.5.0"
    assert bench.labels[STATE] == "approval-required" and not bench.cordoned and RECORD not in bench.annotations
    # The next one is new, and counts at once.
    bench.annotate(approve="true")
    assert bench.run("run-4", auto=False)["outcome"] == "done" and bench.host.boots == boots + 1, bench.said
    assert bench.host.good == NEW and APPROVE not in bench.annotations


def test_who_approves_again_while_the_run_waits_is_heard():
    bench = restored_approval()
    boots = bench.host.boots
    bench.world.clock.at(100.0, lambda: bench.annotate(approve="true"))
    assert bench.run("run-3", auto=False, approval_wait=600)["outcome"] == "done", bench.said
    assert bench.host.boots == boots + 1


def test_what_is_approved_after_a_run_has_asked_counts_at_once():
    """The Node was registered again, or restored to a time before its first approval: a run asks, and a person answers."""
    bench = Bench()
    backup = copy.deepcopy(bench.world.objects)
    approved(bench)
    assert bench.run("run-2", auto=False)["outcome"] == "done"
    back_to_the_old_driver(bench)
    restore(bench, backup)
    assert LAST not in bench.annotations
    approved(bench, "run-3")
    assert bench.run("run-4", auto=False)["outcome"] == "done", bench.said


def test_another_host_does_not_tell_what_this_node_has_missed():
    """Under a wrong alias: its number would take the node's own, new approval away, or leave the old one."""
    bench = Bench()
    backup = copy.deepcopy(bench.world.objects)
    approved(bench)
    assert bench.run("run-2", auto=False)["outcome"] == "done"
    restore(bench, backup)
    bench.world.touch("npu-a", lambda node: node["status"]["nodeInfo"].update(bootID="another"))
    assert bench.run("run-3", auto=False)["outcome"] == "awaiting-approval"
    assert LAST not in bench.annotations


def test_a_run_that_needs_no_approval_does_not_keep_an_old_one():
    bench = restored_approval()
    bench.pods.blocked = True
    bench.host.holders = [{"pid": 1, "command": "x", "device": "/dev/davinci0"}]
    assert bench.run("run-3")["outcome"] == "deferred"
    assert APPROVE not in bench.annotations


def before_the_intent(bench):
    """What a backup has that is taken while a maintenance with an approval has begun, and its reboot is not certain."""
    bench.annotate(approve="true")
    check, found = bench.world.after_write, []

    def back_up():
        check()
        if RECORD in bench.annotations and bench.record["boot_id"] is None:
            found.append(copy.deepcopy(bench.world.objects))

    bench.world.after_write = back_up
    assert bench.run(auto=False)["outcome"] == "done"
    bench.world.after_write = check
    return found


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("later_runs", [0, 1, 2])
@pytest.mark.parametrize("number", range(len(before_the_intent(Bench()))))
def test_the_approval_of_a_record_that_comes_back_is_used_once(number, later_runs, silent):
    """The record says that the reboot is yet to be, and the host has been rebooted for it."""
    bench = Bench()
    backup = before_the_intent(bench)[number]
    if later_runs:
        back_to_the_old_driver(bench)
    if later_runs > 1:
        assert later(bench)["outcome"] == "done"
    restore(bench, backup)
    boots = bench.host.boots
    if silent:
        bench.host.reachable = False
        bench.run("run-3", auto=False)
        bench.host.reachable = True
    outcome = bench.run("run-4", auto=False)
    if outcome["outcome"] == "failed":
        assert "is older than what its host has seen" in outcome["reason"], bench.said
        # What a person approves now counts at once.
        assert bench.last["generation"] >= bench.host.generation
        outcome = bench.run("run-5", auto=False)
    assert outcome["outcome"] == "awaiting-approval" and bench.host.boots == boots, bench.said
    assert APPROVE not in bench.annotations and not bench.cordoned and RECORD not in bench.annotations
    bench.annotate(approve="true")
    assert bench.run("run-6", auto=False)["outcome"] == "done" and bench.host.boots == boots + 1, bench.said


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("number", range(len(before_the_intent(Bench()))))
def test_an_approval_of_a_run_that_died_before_the_intent_still_counts(number, silent):
    """The same without a backup: nothing was used."""
    bench, count = Bench(), 0
    bench.annotate(approve="true")
    check = bench.world.after_write

    def dies():
        nonlocal count
        check()
        if RECORD in bench.annotations and bench.record["boot_id"] is None:
            count += 1
            if count == number + 1:
                raise Killed()

    bench.world.after_write = dies
    with pytest.raises(Killed):
        bench.run(auto=False)
    bench.world.after_write = check
    bench.wait(7200)
    if silent:
        bench.host.reachable = False
        bench.run("run-2", auto=False)
        bench.host.reachable = True
    assert bench.run("run-3", auto=False)["outcome"] == "done", bench.said
    bench.assert_upgraded()
