# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster is restored from a backup, and with it the record of a maintenance that ended long ago: the host knows better."""

from __future__ import annotations

import copy

import pytest

from support.fleet.fake_fleet import NEW, Killed
from support.fleet.maintenance_bench import APPROVE, RECORD, STATE, TARGET, Bench, Wedged

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
    """Nobody knows which driver it has: the first run neither labels the node with that of the old record nor lets it serve. Its own
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
