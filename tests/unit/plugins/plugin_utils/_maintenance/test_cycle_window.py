# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance begins only while the window is open, by the clock of the cluster, and is finished whenever."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.cycle import MaintenancePolicy
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

from support.fleet.fake_fleet import LEASE, Fate, Killed
from support.fleet.maintenance_bench import APPROVE, LAST, RECORD, STATE, Bench

START = 1_700_000_000  # of a bench's clock: 2023-11-14 22:13:20 UTC, a Tuesday
LEFT = "The maintenance window (npu_upgrade_window) is closed: it opens at %s UTC. Run again then."


def until(seconds):
    """A window that closes in so many seconds, a whole minute, and opens on the next day again."""
    return [{"from": "20:00", "to": time.strftime("%H:%M", time.gmtime(START + seconds))}]


def opening(seconds):
    return [{"from": time.strftime("%H:%M", time.gmtime(START + seconds)), "to": "20:00"}]


def lease(holders):
    annotations = {"npuops.ascend/slots": json.dumps({"max": 1, "halted": None, "holders": holders})}
    return {"metadata": {"name": "npu-maintenance", "annotations": annotations}}


def waiting():
    """A bench on which another node has the slot."""
    bench = Bench()
    record = {"run": "run-9", "generation": 1, "heartbeat": "2023-11-14T22:13:20Z", "step": "drain-required"}
    bench.world.add("npu-b", annotations={RECORD: json.dumps(record)})
    bench.world.put(LEASE, lease({"npu-b": {"run": "run-9", "since": "2023-11-14T22:13:20Z"}}))
    return bench


def assert_untouched(bench):
    assert not bench.cordoned and bench.host.boots == 0
    assert bench.labels[STATE] == "upgrade-required" and RECORD not in bench.annotations
    assert (bench.world.slots() or {"holders": {}})["holders"] == {}


def test_outside_of_it_no_maintenance_begins():
    bench = Bench()
    outcome = bench.run(window=opening(100))
    assert (outcome["outcome"], outcome["reason"]) == ("deferred", LEFT % "Tue 2023-11-14 22:15")
    assert_untouched(bench)
    assert bench.world.slots() is None  # none was taken either


def test_it_begins_as_soon_as_it_opens():
    bench = Bench()
    bench.wait(100)
    assert bench.run(window=opening(100))["outcome"] == "done"
    bench.assert_upgraded()


def test_what_has_begun_is_finished():
    bench = Bench()
    assert bench.run(until="drain", window=until(40))["outcome"] == "under-way" and bench.cordoned
    bench.wait(3600)
    assert bench.run(window=until(40))["outcome"] == "done"
    bench.assert_upgraded()


def test_who_waits_for_a_slot_goes_when_it_closes():
    bench = waiting()
    outcome = bench.run(window=until(100))
    assert (outcome["outcome"], outcome["reason"]) == ("deferred", LEFT % "Wed 2023-11-15 20:00")
    assert 100 <= bench.world.clock.now() - START < 150
    assert list(bench.world.slots()["holders"]) == ["npu-b"] and not bench.cordoned


def test_a_slot_that_comes_too_late_is_given_back():
    bench = waiting()
    bench.world.clock.at(101, lambda: bench.world.put(LEASE, lease({})))
    assert bench.run(window=until(100))["outcome"] == "deferred"
    assert 101 <= bench.world.clock.now() - START < 115  # and not only when it looks at its node again
    assert_untouched(bench)
    assert LAST not in bench.annotations


def test_a_hook_before_the_cordon_may_take_too_long():
    bench = Bench()
    assert bench.run(until="cordon", window=until(40))["outcome"] == "under-way"
    bench.wait(60)
    outcome = bench.run(window=until(40))
    assert (outcome["outcome"], outcome["reason"]) == ("deferred", LEFT % "Wed 2023-11-15 20:00")
    assert_untouched(bench)


def test_what_a_dead_run_has_not_cordoned_is_given_back():
    bench = Bench()
    bench.world.fate = Fate(at=3)
    with pytest.raises(Killed):
        bench.run(window=until(40))
    assert not bench.cordoned and RECORD in bench.annotations
    bench.world.fate = Fate()
    assert bench.run("run-2", window=until(40))["outcome"] == "deferred"
    assert_untouched(bench)


def test_approvals_are_asked_for_outside_of_it():
    bench = Bench()
    assert bench.run(auto=False, window=opening(100))["outcome"] == "awaiting-approval"
    assert bench.labels[STATE] == "approval-required"
    bench.annotate(approve="true")
    assert bench.run(auto=False, window=opening(100))["outcome"] == "deferred"
    assert bench.annotations[APPROVE] == "true"
    bench.wait(100)
    assert bench.run(auto=False, window=opening(100))["outcome"] == "done"


def test_a_failed_driver_is_rolled_back_outside_of_it():
    bench = Bench()
    assert bench.run(until="validate", window=until(40))["outcome"] == "under-way"
    bench.wait(3600)
    assert bench.run(window=until(40), order={"failure": "the hook failed"})["outcome"] == "failed"
    assert bench.host.driver == bench.host.good and not bench.cordoned


def test_recoveries_are_not_bound_by_it():
    given = valid_settings.settings("npu_upgrade", {"window": opening(100)})
    assert MaintenancePolicy.of(given).window.refusal(START)
    assert MaintenancePolicy.of(given, recovers=True).window.refusal(START) is None
