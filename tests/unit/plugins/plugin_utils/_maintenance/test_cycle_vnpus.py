# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual NPUs that change in the drain of an upgrade: while no process uses the chips, wherever a run is cut short."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots

from support.fleet.fake_fleet import CHIPS, NEW, OLD, RESOURCE, Fate, Killed
from support.fleet.maintenance_bench import APPROVE, COMPONENTS, TARGET, Bench

SKIP = "npuops.ascend/skip"
LAYOUT = [{"chips": [0], "templates": {"vir06_1c_16g": 2}}]
VNPUS = [{"chip": 0, "id": number, "template": "vir06_1c_16g"} for number in (100, 101)]
DIVIDED = {RESOURCE: str(CHIPS - 1), RESOURCE + "-6c.1cpu.16g": "2"}


class VnpuBench(Bench):
    """The node has the release already; its device plugin offers what the host has since it started last."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.layout, self.times, self.problem = None, 0, None
        validation, go_down = self.host.validation, self.host.go_down
        self.host.divide = self._divide
        self.host.validation = lambda version: dict(validation(version), vnpus=VNPUS if self.layout else [])

        def down():
            go_down()
            if self.layout:
                self.world.touch("npu-a", lambda node: node["status"].update(allocatable=DIVIDED))

        self.host.go_down = down

    def _divide(self, layout):
        assert self.cordoned and self.pods.npu == 0 and self.labels[COMPONENTS] == "paused", "somebody may use the chips"
        assert self.record["boot_id"] is None
        if self.problem:
            raise NpuError(self.problem)
        self.times += 1
        self.layout = layout

    def run(self, run="run-1", until="done", order=None, layout="its own", **policy):
        target = dict(TARGET, release=OLD, version=OLD.split("-")[0])
        return super().run(
            run, until, {"target": target, "vnpu_layout": LAYOUT if layout == "its own" else layout, **(order or {})}, **policy
        )


def test_in_the_drain_of_a_maintenance():
    bench = VnpuBench()
    assert bench.run()["outcome"] == "done"
    assert (bench.layout, bench.times, bench.host.boots) == (LAYOUT, 1, 1)
    bench.assert_nothing_left()
    told = [sentence for _step, sentence in bench.said]
    assert "virtual NPUs: create them" in told
    assert any("waits until the node offers" in text for text in told) is False, "the node offers what the host says"


def test_without_a_layout_they_stay():
    bench = VnpuBench()
    assert bench.run(layout=None)["outcome"] == "done"
    assert (bench.layout, bench.times) == (None, 0)


def test_a_layout_that_cannot_be_gives_the_node_back():
    bench = VnpuBench()
    bench.problem = "Virtual NPU 100 could not be created"
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "100 could not be created" in outcome["reason"]
    assert (bench.host.boots, bench.labels[COMPONENTS]) == (0, "enabled")
    bench.assert_nothing_left()


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_call(when):
    for at in itertools.count(1):
        bench = VnpuBench()
        bench.world.fate = Fate(at, "kill", when)
        try:
            bench.run()
        except Killed:
            pass
        else:
            break
        bench.world.fate = Fate()
        for number in range(2, 8):
            if bench.run(run="run-%d" % number)["outcome"] != "busy":
                break
        assert bench.layout == LAYOUT and bench.host.boots == 1, at
        bench.assert_nothing_left()
    assert at > 10


def test_an_upgrade_with_it():
    bench = VnpuBench()
    assert bench.run(order={"target": TARGET})["outcome"] == "done"
    assert (bench.layout, bench.host.driver, bench.host.good) == (LAYOUT, NEW, NEW)
    bench.assert_nothing_left()


@pytest.mark.parametrize("split", [False, True], ids=["one-process", "a-process-for-each-step"])
def test_a_node_that_is_given_back_after_they_changed_tells_so(split):
    bench = VnpuBench()
    divide = bench.host.divide

    def skipped_meanwhile(layout):
        divide(layout)
        if not split:
            bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({SKIP: "true"}))

    bench.host.divide = skipped_meanwhile
    if split:
        assert bench.run(until="reboot")["outcome"] == "under-way"
        bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({SKIP: "true"}))
    outcome = bench.run()
    assert (outcome["outcome"], bench.times, bench.host.boots) == ("deferred", 1, 0)
    told = "Its virtual NPUs have changed, and stay: create them."
    assert outcome["reason"].endswith(told) and bench.last["failure"].endswith(told)
    bench.assert_nothing_left()


@pytest.mark.parametrize("who", ["skip", "halt", "approval"])
def test_who_stops_it_before_they_change_is_heard(who):
    bench = VnpuBench()
    if who == "approval":
        bench.annotate(approve="true")
    components_gone = bench.pods.wait_components_gone

    def stops(limit):
        components_gone(limit)
        if who == "skip":
            bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({SKIP: "true"}))
        elif who == "halt":
            maintenance_slots.Slots(bench.cluster(bench.world), "npu-operator", bench.world.clock).halt("somebody", "stop")
        else:
            bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].pop(APPROVE))

    bench.pods.wait_components_gone = stops
    outcome = bench.run(auto=who != "approval")
    assert outcome["outcome"] == {"skip": "deferred", "halt": "halted", "approval": "awaiting-approval"}[who]
    assert bench.times == 0 and "virtual NPUs" not in outcome["reason"]
