# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several nodes in maintenance at once: a driver that fails is tried on one node of its kind, and a halt holds at once."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.cycle import Cycle, MaintenanceRequest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import Slots

from support.fleet.fake_fleet import CHIPS, LEASE, NEW, NODES, OLD, RESOURCE, FakeCluster, Pods, World
from support.fleet.maintenance_bench import RECORD, STATE, TARGET, Bench, policy_of
from support.fleet.together import SharedClock

NAMES = ("npu-a", "npu-b", "npu-c")


class Fleet:
    """Nodes of one kind; what was touched is known of each."""

    def __init__(self, names=NAMES, **node):
        self.world = World(SharedClock())
        for name in names:
            self.world.add(name, **node)
        self.cordoned = []  # names, in the order in which they were for the first time
        self.most = 0  # cordoned at once
        self.world.after_write = self._look
        self.said = []

    def _look(self):
        names = [name for name in self.world.hosts if self.world.node(name)["spec"].get("unschedulable")]
        self.cordoned += [name for name in names if name not in self.cordoned]
        self.most = max(self.most, len(names))

    def cycle(self, name, run="run-1", pods=None, order=None, **policy):
        """A function that takes the node through its maintenance."""
        wanted = dict({"target": TARGET, "resource": RESOURCE, "chips": CHIPS}, **(order or {}))
        made = Cycle(
            FakeCluster(self.world),
            self.world.hosts[name],
            pods or Pods(self.world),
            MaintenanceRequest(name, run, **wanted),
            policy_of(**{"max_parallel": 3, **policy}),
            self.world.clock,
            lambda step, seconds, sentence: self.said.append((name, sentence)),
        )
        return made.run

    def run(self, *functions):
        results = self.world.clock.run(functions)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result["outcome"] if isinstance(result, dict) else result for result in results]

    def slots(self):
        return Slots(FakeCluster(self.world), "npu-operator", self.world.clock)

    def untouched(self, name):
        host, node = self.world.hosts[name], self.world.node(name)
        return (
            host.boots == 0
            and host.next is None
            and not node["spec"].get("unschedulable")
            and RECORD not in node["metadata"]["annotations"]
        )


def test_a_bad_driver_is_tried_on_one_node():
    fleet = Fleet()
    for host in fleet.world.hosts.values():
        host.broken = {NEW}
    outcomes = fleet.run(*[fleet.cycle(name) for name in NAMES])
    assert sorted(outcomes) == ["failed", "halted", "halted"]
    assert len(fleet.cordoned) == 1
    assert all(fleet.untouched(name) for name in NAMES if name not in fleet.cordoned)
    assert fleet.world.slots()["holders"] == {}


@pytest.mark.parametrize("max_parallel", [1, 3])
def test_each_serves_before_the_next_one(max_parallel):
    """Side by side, by two runs. With several slots, the first one of its kind serves, and then the others go together."""
    fleet = Fleet()
    begun = {}

    def look():
        fleet._look()
        for name in fleet.cordoned:
            begun.setdefault(name, fleet.world.clock.now())

    fleet.world.after_write = look
    cycles = [
        fleet.cycle(name, "run-%d" % (number % 2), node_soak=3600, max_parallel=max_parallel) for number, name in enumerate(NAMES)
    ]
    assert fleet.run(*cycles) == ["done"] * 3
    first, second, third = sorted(begun.values())
    assert second - first > 3600 and (third - second > 3600) == (max_parallel == 1)
    assert any("serves for 60 min before another node begins" in sentence for _name, sentence in fleet.said)


def in_racks(racks):
    """(a fleet whose nodes are in these racks, the sets of nodes that are cordoned at once)."""
    fleet, together = Fleet(), set()
    for name, rack in zip(NAMES, racks, strict=True):
        fleet.world.touch(name, lambda node, rack=rack: node["metadata"]["labels"].update({"example.com/rack": rack}))

    def look():
        fleet._look()
        together.add(frozenset(name for name in NAMES if fleet.world.node(name)["spec"].get("unschedulable")))

    fleet.world.after_write = look
    return fleet, together


def test_one_of_each_domain_at_a_time():
    """npu-a and npu-b are in one rack; without the limit, all three would go together, as the driver is known to work."""
    fleet, together = in_racks("112")
    domain = {"label": "example.com/rack", "max_parallel": 1}
    cycles = [fleet.cycle(name, order={"proved": True}, max_parallel=0, domain=domain) for name in NAMES]
    assert fleet.run(*cycles) == ["done"] * 3
    assert not any({"npu-a", "npu-b"} <= set(names) for names in together)
    assert any("npu_upgrade_domain allows 1 of example.com/rack=1 at once" in sentence for _name, sentence in fleet.said)


def test_who_goes_back_does_not_wait_for_a_node_that_serves():
    fleet = Fleet()
    fleet.run(fleet.cycle("npu-a"))
    begun = fleet.world.clock.now()
    assert fleet.run(fleet.cycle("npu-b", "run-2", order={"reason": "rollback"}, node_soak=3600)) == ["done"]
    assert fleet.world.clock.now() - begun < 3600


def test_a_good_driver_is_confirmed_on_one_node_first():
    fleet = Fleet()
    good_then = []

    def look():
        known = len(fleet.cordoned)
        fleet._look()
        if known == 1 < len(fleet.cordoned):
            good_then.append(fleet.world.hosts[fleet.cordoned[0]].good)

    fleet.world.after_write = look
    assert fleet.run(*[fleet.cycle(name) for name in NAMES]) == ["done"] * 3
    assert good_then == [NEW], "another node was cordoned before the first one's driver was confirmed"
    assert fleet.most == 2, "then they go side by side"
    first = fleet.cordoned[0]
    assert any("%s is the first of its kind" % first in sentence for name, sentence in fleet.said if name != first)


def test_kinds_do_not_wait_for_each_other():
    fleet = Fleet()
    others = {"pool": "310P " + NEW}
    assert fleet.run(fleet.cycle("npu-a"), fleet.cycle("npu-b", order=others)) == ["done"] * 2
    assert fleet.most == 2


def test_a_kind_that_has_the_driver_already_needs_no_first_node():
    fleet = Fleet()
    assert fleet.run(fleet.cycle("npu-a", order={"proved": True}), fleet.cycle("npu-b", order={"proved": True})) == ["done"] * 2
    assert fleet.most == 2


def test_a_later_run_knows_what_was_confirmed():
    fleet = Fleet()
    assert fleet.run(fleet.cycle("npu-a")) == ["done"]
    assert fleet.run(fleet.cycle("npu-b", "run-2"), fleet.cycle("npu-c", "run-2")) == ["done"] * 2
    assert fleet.most == 2


def test_a_halt_holds_before_the_intent():
    """One fails while another one, cordoned already, is being emptied."""
    fleet = Fleet()
    fleet.world.hosts["npu-a"].broken = {NEW}
    slow = Pods(fleet.world, npu=5, others=5, seconds=60)
    known = {"proved": True}
    outcomes = fleet.run(fleet.cycle("npu-a", order=known), fleet.cycle("npu-b", pods=slow, order=known))
    assert outcomes == ["failed", "halted"]
    assert fleet.cordoned == ["npu-a", "npu-b"] and fleet.untouched("npu-b")
    assert fleet.world.node("npu-b")["metadata"]["labels"][STATE] == "upgrade-required"
    assert slow.npu, "what was not evicted yet stays"


def test_a_halt_holds_while_jobs_are_waited_for():
    fleet = Fleet()

    class Jobs(Pods):
        def wait_for_jobs(self):
            for _second in range(3600):
                self._world.clock.sleep(1)
                self._beat()
            raise AssertionError("it waited for them all")

    def halt():
        fleet.world.clock.sleep(100)
        fleet.slots().halt("somebody", "npu-z burns.")

    assert fleet.run(fleet.cycle("npu-a", pods=Jobs(fleet.world)), halt) == ["halted", None]
    assert fleet.untouched("npu-a")


def test_nothing_keeps_a_node_from_its_end_once_its_reboot_is_intended():
    fleet = Fleet()

    def halt():
        while fleet.world.hosts["npu-a"].boots == 0:
            fleet.world.clock.sleep(1)
        fleet.slots().halt("somebody", "npu-z burns.")

    assert fleet.run(fleet.cycle("npu-a"), halt) == ["done", None]


def test_a_halt_that_is_ended_too_early():
    """The first node is on its way back; who ends the halt meanwhile gets no second node for the same driver."""
    fleet = Fleet()
    fleet.world.hosts["npu-a"].broken = fleet.world.hosts["npu-b"].broken = {NEW}

    def impatient():
        while fleet.world.hosts["npu-a"].boots == 0:
            fleet.world.clock.sleep(1)
        fleet.slots().clear_halt()
        return fleet.cycle("npu-b", "run-2")()

    assert fleet.run(fleet.cycle("npu-a"), impatient) == ["failed", "halted"]
    assert fleet.cordoned == ["npu-a"] and fleet.untouched("npu-b")


def test_two_nodes_that_a_dead_run_cordoned_for_another_driver():
    """Both were let in while their driver was proved; the run that goes on with them wants one that is not."""
    fleet = Fleet()
    for name in ("npu-a", "npu-b"):
        fleet.run(lambda name=name: fleet.cycle(name, "dead", order={"proved": True})("reboot"))
        fleet.world.hosts[name].broken = {"25.6.0-k-cccccccccccc"}
    assert fleet.cordoned == ["npu-a", "npu-b"]
    wanted = {"target": {"version": "25.6.0", "release": "25.6.0-k-cccccccccccc", "digest": "sha256:c"}}
    outcomes = fleet.run(*[fleet.cycle(name, "run-2", order=wanted) for name in ("npu-a", "npu-b")])
    assert "failed" in outcomes
    assert sum(host.boots > 0 for host in fleet.world.hosts.values()) <= 1


@pytest.mark.parametrize("names", [("npu-a", "npu-b")])
def test_drivers_before_are_taken_for_proved_by_nobody(names):
    """A rollback goes by the same rule: what was good once may not be good any more."""
    fleet = Fleet(names)
    for host in fleet.world.hosts.values():
        host.broken = {OLD}
        host.driver = host.good = NEW
    back = {"target": {"version": "25.2.0", "release": OLD, "digest": None}, "reason": "rollback"}
    assert sorted(fleet.run(*[fleet.cycle(name, order=back) for name in names])) == ["failed", "halted"]
    assert len(fleet.cordoned) == 1
    assert NODES + "/npu-a" in fleet.world.objects


# --- the ways out of a halt, as docs/upgrade.md tells them ---


def stuck(names=NAMES):
    """A fleet whose first node did not come back from its reboot, and was repaired since."""
    fleet = Fleet(names)
    host = fleet.world.hosts["npu-a"]
    host.returns = False
    assert fleet.run(fleet.cycle("npu-a", reboot={"timeout": 600})) == ["halted"]
    assert "finish npu-a first: ansible-playbook npuops.ascend.upgrade." in fleet.slots().halted()
    host.returns = True
    host.boot()
    return fleet


@pytest.mark.parametrize("max_parallel", [1, 3])
def test_run_again_when_the_host_is_repaired(max_parallel):
    """It goes on with that node, then with the others."""
    fleet = stuck()
    order = {"in_flight": ("npu-a",)}
    cycles = [fleet.cycle(name, "run-2", order=order, max_parallel=max_parallel) for name in NAMES]
    assert fleet.run(*cycles) == ["done"] * 3
    assert [fleet.world.hosts[name].boots for name in NAMES] == [1, 1, 1]
    assert fleet.slots().halted() is None and fleet.cordoned[0] == "npu-a"


def test_run_again_when_the_host_is_not_repaired():
    fleet = stuck()
    fleet.world.hosts["npu-a"].reachable = False
    order = {"in_flight": ("npu-a",)}
    outcomes = fleet.run(*[fleet.cycle(name, "run-2", order=order, reboot={"timeout": 600}) for name in NAMES])
    assert outcomes == ["halted"] * 3 and fleet.untouched("npu-b") and fleet.untouched("npu-c")


def test_run_again_without_the_node():
    """With --limit: the halt holds for all that the run does not go on with."""
    fleet = stuck()
    assert fleet.run(fleet.cycle("npu-b", "run-2")) == ["halted"]


@pytest.mark.parametrize("reason", ["upgrade", "rollback"])
def test_go_back_on_all_nodes(reason):
    """A halted upgrade does not bar the way back; a halted rollback does."""
    fleet = Fleet(("npu-a", "npu-b"))
    for host in fleet.world.hosts.values():
        host.driver = host.good = NEW
    fleet.slots().halt("the run run-1", "npu-c failed.", reason)
    back = {"target": {"version": "25.2.0", "release": OLD, "digest": None}, "reason": "rollback"}
    outcomes = fleet.run(*[fleet.cycle(name, "run-2", order=back) for name in ("npu-a", "npu-b")])
    assert outcomes == (["done"] * 2 if reason == "upgrade" else ["halted"] * 2)
    assert fleet.slots().halted("upgrade"), "an upgrade is still halted until somebody ends that"


def test_a_rollback_that_fails_halts_rollbacks_too():
    fleet = Fleet()
    fleet.slots().halt("the run run-1", "npu-z failed.")
    for host in fleet.world.hosts.values():
        host.driver = host.good = NEW
        host.broken = {OLD}
    back = {"target": {"version": "25.2.0", "release": OLD, "digest": None}, "reason": "rollback"}
    assert sorted(fleet.run(*[fleet.cycle(name, "run-2", order=back) for name in NAMES])) == ["failed", "halted", "halted"]
    assert "rollback -e npu_upgrade_clear_halt=true" in fleet.slots().halted("rollback")


# --- what waiting costs the API server ---


class Counting(FakeCluster):
    """Notes when it was asked for something."""

    def __init__(self, world, asked):
        super().__init__(world)
        self.asked = asked

    def get(self, path):
        self.asked.append(self._world.clock.now())
        return super().get(path)


def asked_in_a_minute(fleet, functions, after=300):
    begin = fleet.world.clock.now() + after
    fleet.run(*functions)
    return sum(begin <= when < begin + 60 for when in fleet.asked)


def test_thirty_that_wait_for_a_slot(monkeypatch):
    names = ["npu-%02d" % number for number in range(31)]
    fleet = Fleet(names)
    fleet.asked = []
    monkeypatch.setattr(sys.modules[__name__], "FakeCluster", lambda world: Counting(world, fleet.asked))
    first = FakeCluster(fleet.world)

    def works():
        """Has the slot for ten minutes, and beats."""
        slots = Slots(first, "npu-operator", fleet.world.clock)
        slots.take(names[0], "run-1", 1)
        for second in range(0, 600, 10):
            text = '{"run":"run-1","generation":1,"heartbeat":"%d","step":"drain-required"}' % second
            fleet.world.touch(names[0], lambda node, text=text: node["metadata"]["annotations"].update({RECORD: text}))
            fleet.world.clock.sleep(10)
        slots.halt("somebody", "It is late.")

    cycles = [fleet.cycle(name, max_parallel=1) for name in names[1:]]
    assert asked_in_a_minute(fleet, [works, *cycles]) <= 30 * 10


def test_thirty_that_wait_for_an_approval(monkeypatch):
    names = ["npu-%02d" % number for number in range(30)]
    fleet = Fleet(names)
    fleet.asked = []
    monkeypatch.setattr(sys.modules[__name__], "FakeCluster", lambda world: Counting(world, fleet.asked))
    cycles = [fleet.cycle(name, auto=False, approval_wait=600) for name in names]
    assert asked_in_a_minute(fleet, cycles) <= 30 * 6


def test_who_stalls_and_loses_its_slot_does_not_go_on_without_one():
    """Its machine sleeps in the middle of the drain, and another node gets the slot meanwhile."""
    fleet = Fleet(("npu-a", "npu-b"))
    late = Pods(fleet.world, on_drain=lambda: lose_slot(fleet, to="npu-b"))
    assert fleet.run(fleet.cycle("npu-a", pods=late, max_parallel=1)) == ["deferred"]
    assert fleet.untouched("npu-a")
    assert fleet.world.slots()["holders"].keys() == {"npu-b"}


def test_who_loses_its_slot_takes_a_free_one():
    """Another client deletes the Lease."""
    fleet = Fleet(("npu-a", "npu-b"))
    late = Pods(fleet.world, on_drain=lambda: fleet.world.objects.pop(LEASE, None))
    assert fleet.run(fleet.cycle("npu-a", pods=late, max_parallel=1)) == ["done"]
    assert fleet.world.slots()["holders"] == {}


def lose_slot(fleet, to):
    slots = fleet.slots()
    slots.give("npu-a", "run-1")
    assert slots.take(to, "run-2", 1) is None


def test_the_nodes_of_a_domain_go_together():
    fleet, together = in_racks("121")
    domain = {"label": "example.com/rack", "together": True}
    cycles = [fleet.cycle(name, order={"proved": True}, max_parallel=0, domain=domain) for name in NAMES]
    assert fleet.run(*cycles) == ["done"] * 3
    assert {"npu-a", "npu-c"} in together and not any("npu-b" in names and len(names) > 1 for names in together)


def least(chips):
    return {"min_available": {RESOURCE: chips}}


@pytest.mark.parametrize(("chips", "most"), [(0, 3), (CHIPS, 2), (2 * CHIPS, 1)])
def test_as_many_chips_as_are_wanted_remain_allocatable(chips, most):
    """Of two runs; without the setting, all three go together, as the driver is known to work."""
    fleet = Fleet()
    cycles = [
        fleet.cycle(name, "run-%d" % (number % 2), order={"proved": True}, max_parallel=0, **least(chips))
        for number, name in enumerate(NAMES)
    ]
    assert fleet.run(*cycles) == ["done"] * 3
    assert fleet.most == most
    assert any("npu_upgrade_min_available asks for %d" % chips in sentence for _name, sentence in fleet.said) is (most < 3)


def test_a_node_is_deferred_when_no_maintenance_would_give_chips_back():
    fleet = Fleet()
    fleet.world.touch("npu-c", lambda node: node["spec"].update(unschedulable=True))
    start = fleet.world.clock.monotonic()
    (outcome,) = fleet.world.clock.run([fleet.cycle("npu-a", **least(2 * CHIPS))])
    assert (outcome["outcome"], outcome["reason"]) == (
        "deferred",
        "Not begun: without it, 8 huawei.com/Ascend910 would be allocatable, and npu_upgrade_min_available asks for 16. Run again when"
        " more nodes serve.",
    )
    assert 300 <= fleet.world.clock.monotonic() - start < 400 and fleet.untouched("npu-a") and fleet.world.slots() is None
    # What the outcome says.
    fleet.world.touch("npu-c", lambda node: node["spec"].pop("unschedulable"))
    assert fleet.run(fleet.cycle("npu-a", **least(2 * CHIPS))) == ["done"]


def test_not_cordoned_if_chips_are_lost_before_that():
    bench = Bench()
    bench.world.add("npu-b")
    assert bench.run(until="cordon", **least(CHIPS))["outcome"] == "under-way"
    bench.world.touch("npu-b", lambda node: node["spec"].update(unschedulable=True))
    outcome = bench.run(**least(CHIPS))
    assert outcome["outcome"] == "deferred" and outcome["reason"].startswith(
        "Not cordoned: without it, 0 huawei.com/Ascend910 would be"
    )
    assert not bench.cordoned and bench.world.slots()["holders"] == {}


def test_a_node_that_serves_no_pods_does_not_wait_for_chips():
    fleet = Fleet()
    fleet.world.touch("npu-a", lambda node: node["spec"].update(unschedulable=True))
    assert fleet.run(fleet.cycle("npu-a", **least(3 * CHIPS))) == ["done"]
