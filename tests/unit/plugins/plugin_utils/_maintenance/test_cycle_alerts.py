# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No maintenance begins while an alert of the user's fires, and one that has begun is finished."""

from __future__ import annotations

import time

from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.cycle import MaintenancePolicy
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

from support.fleet.maintenance_bench import RECORD, STATE, Bench

FIRES = "the alert CephDown fires (npu_upgrade_alerts)"


def alerts(wait=600):
    return {"url": "http://prometheus", "names": ["CephDown"], "wait": wait}


def firing(begin, end):
    """A bench on which the alert fires from then until then, in seconds from now."""
    bench = Bench()
    start = bench.world.clock.monotonic()
    bench.alerts = lambda: FIRES if begin <= bench.world.clock.monotonic() - start < end else None
    return bench


def test_a_node_waits_until_it_has_ended():
    bench = firing(0, 300)
    start = bench.world.clock.monotonic()
    assert bench.run(alerts=alerts())["outcome"] == "done"
    bench.assert_upgraded()
    assert any(sentence == "waits: " + FIRES for _step, sentence in bench.said)
    assert bench.world.clock.monotonic() - start >= 300
    # Who waits has no slot, which others could use.
    assert not any("begins" in sentence for _step, sentence in bench.said[:2])


def test_a_node_is_deferred_when_it_does_not_end():
    bench = firing(0, 1e9)
    outcome = bench.run(alerts=alerts())
    assert (outcome["outcome"], outcome["reason"]) == ("deferred", "Not begun: %s. Run again when that has ended." % FIRES)
    assert not bench.cordoned and bench.host.boots == 0 and bench.world.slots() is None
    assert bench.labels[STATE] == "upgrade-required" and RECORD not in bench.annotations
    # As the outcome says.
    bench.alerts = lambda: None
    assert bench.run("run-2", alerts=alerts())["outcome"] == "done"


def test_not_cordoned_if_it_fires_before_that():
    bench = firing(0, 0)
    assert bench.run(until="cordon", alerts=alerts())["outcome"] == "under-way"
    bench.alerts = lambda: FIRES
    outcome = bench.run(alerts=alerts())
    assert (outcome["outcome"], outcome["reason"]) == ("deferred", "Not cordoned: %s. Run again when that has ended." % FIRES)
    assert not bench.cordoned and bench.world.slots()["holders"] == {}


def test_what_is_cordoned_is_finished():
    bench = firing(0, 0)
    assert bench.run(until="drain", alerts=alerts())["outcome"] == "under-way" and bench.cordoned
    bench.alerts = lambda: FIRES
    assert bench.run(alerts=alerts())["outcome"] == "done"
    bench.assert_upgraded()


def test_who_waits_notices_that_the_window_closes():
    bench = firing(0, 1e9)
    closes = time.strftime("%H:%M", time.gmtime(bench.world.clock.now() + 100))
    outcome = bench.run(alerts=alerts(wait=3600), window=[{"from": "20:00", "to": closes}])
    assert outcome["outcome"] == "deferred" and "npu_upgrade_window" in outcome["reason"], outcome


def test_a_recovery_does_not_wait():
    settings = valid_settings.settings("npu_upgrade", {"alerts": alerts()})
    assert MaintenancePolicy.of(settings).alerts_wait == 600
    assert MaintenancePolicy.of(settings, recovers=True).alerts_wait == 0
