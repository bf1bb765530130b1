# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the API server a maintenance takes, of which there may be a hundred at once."""

from __future__ import annotations

from support.fleet.fake_fleet import CountingCluster, Host
from support.fleet.maintenance_bench import Bench


def test_waiting_for_a_host_takes_few_requests(monkeypatch):
    """The heartbeats, whose answers tell of the Node, and some looks in between as long as the host may be back any moment."""
    monkeypatch.setattr(Host, "BOOT_SECONDS", 600.0)
    bench = Bench()
    bench.cluster = CountingCluster
    assert bench.run()["outcome"] == "done"
    booted = bench.world.clock.now()
    # Those looks are fewer if many wait.
    alone = len(bench.world.read)
    late = [when for when, _path in bench.world.read if booted - 380 < when < booted - 30]
    assert not late, "the heartbeats alone tell of the Node when that is late"
    assert len(bench.world.read) < 75
    assert len(bench.world.fate.calls) < 30 + 600 / 10
    bench = Bench()
    bench.cluster = CountingCluster
    assert bench.run(order={"at_once": 100})["outcome"] == "done"
    assert len(bench.world.read) < 0.6 * alone
