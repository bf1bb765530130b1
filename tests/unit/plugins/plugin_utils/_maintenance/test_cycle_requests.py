# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the API server a maintenance takes, of which there may be a hundred at once."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.fake_fleet import CHIPS, NODES, RESOURCE, CountingCluster, Host, WatchingCluster
from support.fleet.maintenance_bench import RECORD, Bench


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


def test_with_a_watch_the_node_is_read_when_it_changes(monkeypatch):
    monkeypatch.setattr(Host, "BOOT_SECONDS", 600.0)
    bench = Bench()
    bench.cluster = WatchingCluster
    assert bench.run()["outcome"] == "done"
    reboots = next(seconds for seconds, (_step, told) in zip(bench.told, bench.said) if told.startswith("reboots"))
    back = next(seconds for seconds, (_step, told) in zip(bench.told, bench.said) if told.startswith("validates"))
    assert back - reboots < 600 + 9  # its kubelet takes 6 s to say so
    assert len(bench.world.read) < 30
    # After each heartbeat, another one.
    assert len([path for _when, path in bench.world.watched if path == NODES + "/npu-a"]) < 600 / 20 + 10


def test_chips_that_the_node_offers_late_are_seen_at_once():
    """A kubelet tells of them up to 10 s after the device plugin does, and that one takes its time, too."""
    bench, offered = Bench(), []
    bench.cluster = WatchingCluster
    bench.world.touch("npu-a", lambda node: node["status"]["allocatable"].update({RESOURCE: "0"}))
    validate = bench.host.validate

    def offer():
        offered.append(bench.world.clock.now())
        bench.world.touch("npu-a", lambda node: node["status"]["allocatable"].update({RESOURCE: str(CHIPS)}))

    def validated(version):
        bench.world.clock.at(95, offer)
        return validate(version)

    bench.host.validate = validated
    assert bench.run()["outcome"] == "done"
    assert bench.world.clock.now() - offered[0] < 1
    # After each heartbeat one, and where the next look is due.
    looks = [when for when, path in bench.world.read if offered[0] - 95 < when and path == NODES + "/npu-a"]
    assert len(looks) < 95 / 10 + 8


def test_a_node_that_changes_all_the_time_is_read_once_a_second(monkeypatch):
    """By its own kubelet, for example, which may write whatever it wants there."""
    monkeypatch.setattr(Host, "BOOT_SECONDS", 100.0)
    bench = Bench()
    bench.cluster = WatchingCluster

    def change():
        bench.world.touch("npu-a", lambda _node: None)
        bench.world.clock.at(0.1, change)

    bench.world.clock.at(0.1, change)
    assert bench.run()["outcome"] == "done"
    assert len(bench.world.read) < 120 + 20


def test_a_heartbeat_comes_often_enough_with_a_shorter_limit(monkeypatch):
    monkeypatch.setattr(Host, "BOOT_SECONDS", 300.0)
    bench, beats = Bench(), []
    bench.cluster = WatchingCluster
    bench.world.on_write = lambda _path, body: beats.append(bench.world.clock.now()) if is_beat(body) else None
    assert bench.run(heartbeat_limit=24)["outcome"] == "done"
    assert max(later - earlier for earlier, later in zip(beats, beats[1:])) <= 14


def test_with_a_watch_an_approval_counts_at_once():
    """Without one, after 18 seconds at most."""
    bench = Bench()
    bench.cluster = WatchingCluster
    approved = bench.world.clock.now() + 400
    bench.world.clock.at(400, lambda: bench.annotate(approve="true"))
    assert bench.run(auto=False, approval_wait=900)["outcome"] == "done"
    cordoned = maintenance_record.seconds_of(bench.last["times"]["cordon-required"])
    assert cordoned - approved < 3
    assert len([when for when, _path in bench.world.read if when < approved]) < 20


def test_the_heart_beats_before_a_host_that_hangs_is_asked(monkeypatch):
    """Each call ends after 70 seconds; together with the heartbeat before it, that is less than the limit of 90."""
    monkeypatch.setattr(Host, "BOOT_SECONDS", 113.0)
    bench, beats, hangs = Bench(), [], [3]
    bench.cluster = WatchingCluster
    view = bench.host.view

    def hanging(*arguments):
        if bench.host.boots and hangs[0]:
            hangs[0] -= 1
            bench.world.clock.sleep(70)
            raise HostUnreachable("timed out")
        return view(*arguments)

    bench.host.view = hanging
    bench.world.on_write = lambda _path, body: beats.append(bench.world.clock.now()) if is_beat(body) else None
    assert bench.run()["outcome"] == "done" and not hangs[0]
    assert max(later - earlier for earlier, later in zip(beats, beats[1:])) < 85


def is_beat(body):
    return RECORD in body.get("metadata", {}).get("annotations", {})
