# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run counts, what it leaves on a node that does not work, and what it must not take from other clients."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.fake_fleet import NEW, NODES, OLD
from support.fleet.maintenance_bench import COMPONENTS, LAST, RECORD, STATE, Bench


def fails(**policy):
    bench = Bench()
    bench.host.broken = {NEW}
    assert bench.run(**policy)["outcome"] == "failed" and bench.last["outcome"] == "rolled-back"
    return bench


def another_failed(bench, run):
    """Another node of the fleet, on which ``run`` has failed."""
    bench.world.add("npu-b", state="upgrade-failed", annotations={LAST: json.dumps({"run": run, "generation": 1})})


# --- npu_upgrade_max_failures ---


@pytest.mark.parametrize(("most", "halts"), [(0, False), (1, True), (2, False)])
def test_as_many_failures_as_are_allowed_halt_and_no_number_does_not(most, halts):
    assert bool(fails(max_failures=most).world.slots()["halted"]) is halts


@pytest.mark.parametrize(("run", "halts"), [("run-1", True), ("run-0", False)], ids=["of-this-run", "of-an-earlier-run"])
def test_failures_count_for_the_run_they_are_of(run, halts):
    bench = Bench()
    bench.host.broken = {NEW}
    another_failed(bench, run)
    bench.run(max_failures=2)
    assert bool(bench.world.slots()["halted"]) is halts


# --- no driver works ---


@pytest.mark.parametrize("loads", [False, True], ids=["does-not-load", "chips-do-not-answer"])
def test_components_do_not_run_where_no_driver_works(loads):
    """Also if they ran again already, because the driver was ready, until its chips turned out not to answer."""
    bench = Bench()
    bench.host.broken, bench.host.incurable = ({NEW}, True) if loads else ({NEW, OLD}, False)
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "does not work either" in outcome["reason"]
    assert bench.cordoned and bench.labels[COMPONENTS] == "paused" and bench.labels[STATE] == "upgrade-failed"
    assert maintenance_record.left_cordoned(bench.node)


# --- others write at the same time ---


def meanwhile(bench, step, change):
    """``change(node)`` by another client, just before the patch that says ``step`` takes effect."""
    before, done = bench.world.on_write, []

    def on_write(path, body):
        before(path, body)
        if path == NODES + "/npu-a" and body["metadata"].get("labels", {}).get(STATE) == step and not done:
            done.append(True)
            bench.world.touch("npu-a", change)

    bench.world.on_write = on_write
    return done


def test_a_cordon_of_a_person_at_the_same_time_stays():
    """Whether it was cordoned before is what the Node says that is patched, and not the one that was read before."""
    bench = Bench()
    done = meanwhile(bench, "wait-for-jobs-required", lambda node: node["spec"].update(unschedulable=True))
    assert bench.run()["outcome"] == "done" and done
    assert bench.cordoned and bench.last["unschedulable"] is True


def edit(node):
    record = json.loads(node["metadata"]["annotations"][RECORD])
    node["metadata"]["annotations"][RECORD] = json.dumps(dict(record, attempt=2))


@pytest.mark.parametrize("step", ["pod-deletion-required", "reboot-required", "validation-required", "uncordon-required"])
def test_a_record_that_a_person_edits_is_not_overwritten(step):
    """It has the name of this run still."""
    bench = Bench()
    done = meanwhile(bench, step, edit)
    outcome = bench.run()
    assert done and outcome["outcome"] == "busy" and "was changed, and not by this run" in outcome["reason"]
    assert bench.record["attempt"] == 2
    # The next run goes on from what the person wrote.
    assert bench.run(run="run-2")["outcome"] == "done" and bench.last["attempt"] == 2
