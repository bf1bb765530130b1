# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import Domain, Halted, NotYet, Refused, Slots

from support.fleet.fake_fleet import LEASE, NODES, CountingCluster, FakeCluster, World
from support.fleet.maintenance_bench import LAST, RECORD

RUNNING = json.dumps({"run": "other", "generation": 1, "heartbeat": "2023-11-14T22:13:20Z"})


@pytest.fixture
def world():
    made = World()
    for name in ("npu-a", "npu-b", "npu-c"):
        made.add(name)
    return made


@pytest.fixture
def slots(world):
    return Slots(FakeCluster(world), "npu-operator", world.clock)


def annotate(world, name, **values):
    world.touch(name, lambda node: node["metadata"]["annotations"].update(values))


def test_take_and_give(world, slots):
    assert slots.take("npu-a", "run-1", 1) is None
    assert slots.take("npu-a", "run-1", 1) is None
    assert world.slots()["holders"] == {"npu-a": {"run": "run-1", "since": "2023-11-14T22:13:20Z"}}
    assert slots.take("npu-b", "run-1", 1) == "all 1 slot taken: npu-a (run run-1 since 2023-11-14T22:13:20Z)"
    slots.give("npu-a", "run-1")
    assert slots.take("npu-b", "run-1", 1) is None


def test_a_write_that_others_overtake_is_tried_less_and_less_often(world):
    """As when fifty maintenances end at the same moment, and fifty others begin."""

    class Crowded(FakeCluster):
        def merge_patch(self, path, body, **params):
            if world.clock.now() < begin + 20:
                tried.append(world.clock.now())
                world.clock.sleep(0.01)
                raise kube_client.Conflict("the object has been modified")
            return super().merge_patch(path, body, **params)

    slots, tried, begin = Slots(Crowded(world), "npu-operator", world.clock), [], world.clock.now()
    Slots(FakeCluster(world), "npu-operator", world.clock).halt("another run", "npu-c failed.")
    slots.clear_halt()
    assert 8 < len(tried) < 80
    assert max(later - earlier for earlier, later in zip(tried, tried[1:])) < 2.1
    assert world.slots()["halted"] is None


RACK = Domain("example.com/rack", "1", 1)


@pytest.fixture
def rack(world):
    for name in ("npu-a", "npu-b"):
        world.touch(name, lambda node: node["metadata"]["labels"].update({"example.com/rack": "1"}))


def test_few_nodes_of_a_domain_at_once(world, slots, rack):
    """Whichever run they are of, and whatever settings that has."""
    assert slots.take("npu-a", "run-1", 0) is None
    why = slots.take("npu-b", "run-2", 0, domain=RACK)
    assert why == "npu_upgrade_domain allows 1 of example.com/rack=1 at once: npu-a (run run-1 since 2023-11-14T22:13:20Z)"
    assert set(why.holders) == {"npu-a"}
    assert slots.take("npu-c", "run-2", 0, domain=RACK._replace(value="2")) is None
    assert slots.take("npu-b", "run-2", 0, domain=RACK._replace(most=2)) is None
    slots.give("npu-b", "run-2")
    slots.give("npu-a", "run-1")
    assert slots.take("npu-b", "run-2", 0, domain=RACK) is None
    assert slots.take("npu-b", "run-2", 0, domain=RACK) is None, "who has a slot keeps it"


def test_the_nodes_of_a_domain_go_together(world, slots, rack):
    """Any number of them, and none of another one; a node without the label neither waits nor keeps others waiting."""
    together = RACK._replace(together=True)
    world.touch("npu-c", lambda node: node["metadata"]["labels"].update({"example.com/rack": "2"}))
    assert slots.take("npu-a", "run-1", 0, domain=together) is None
    assert slots.take("npu-b", "run-2", 0, domain=together) is None
    why = slots.take("npu-c", "run-2", 0, domain=together._replace(value="2"))
    assert why.startswith("nodes of another domain than example.com/rack=2 are in maintenance (npu_upgrade_domain.together): npu-a")
    assert set(why.holders) == {"npu-a", "npu-b"}
    world.touch("npu-a", lambda node: node["metadata"]["labels"].pop("example.com/rack"))
    slots.give("npu-b", "run-2")
    world.clock.sleep(40)
    assert slots.take("npu-c", "run-2", 0, domain=together._replace(value="2")) is None


def test_a_dead_run_does_not_fill_a_domain(world, slots, rack):
    slots.take("npu-a", "run-1", 0)
    assert slots.take("npu-b", "run-2", 0, domain=RACK)
    world.clock.sleep(31)
    assert slots.take("npu-b", "run-2", 0, domain=RACK)
    world.clock.sleep(31)
    assert slots.take("npu-b", "run-2", 0, domain=RACK) is None


def test_a_node_that_is_set_aside_does_not_fill_a_domain(world, slots, rack):
    slots.take("npu-a", "run-1", 0)
    annotate(world, "npu-a", **{RECORD: RUNNING})
    slots.halt("run-1", "npu-a burns.", node="npu-a")
    slots.clear_halt()
    assert slots.take("npu-b", "run-2", 0, domain=RACK) is None


SOAKS = "npu-a was upgraded, and serves for 10 min before another node begins"


def test_a_node_serves_before_the_next_one_begins(world, slots):
    """For all runs, however many slots there are."""
    slots.take("npu-a", "run-1", 3)
    slots.give("npu-a", "run-1", works="25.5.1-x")
    assert world.slots()["served"] == {"node": "npu-a", "when": "2023-11-14T22:13:20Z"}
    assert slots.take("npu-b", "run-2", 3, soak=600) == SOAKS
    assert world.slots()["holders"] == {}
    world.clock.sleep(590)
    assert slots.take("npu-b", "run-2", 3, soak=600) == SOAKS
    world.clock.sleep(10)
    assert slots.take("npu-b", "run-2", 3, soak=600) is None


def test_what_does_not_wait_for_it(world, slots):
    slots.take("npu-a", "run-1", 3)
    slots.give("npu-a", "run-1", works="25.5.1-x")
    assert slots.take("npu-b", "run-1", 3) is None  # a run without a soak
    assert slots.take("npu-b", "run-1", 3, soak=600) is None  # who has begun
    assert slots.take("npu-c", "run-2", 3, recoveries=1) is None
    assert slots.take("npu-a", "run-3", 3, soak=600) is None  # the node itself


def test_a_node_that_was_given_back_or_failed_need_not_serve(world, slots):
    slots.take("npu-a", "run-1", 3)
    slots.give("npu-a", "run-1")
    assert slots.take("npu-b", "run-1", 3, soak=600) is None


@pytest.mark.parametrize("served", [None, {"node": "npu-a", "when": "soon"}, {"node": "npu-a", "when": "2033-11-14T22:13:20Z"}])
def test_a_time_that_cannot_be_is_not_waited_for(world, slots, served):
    slots.take("npu-a", "run-1", 3)
    slots.give("npu-a", "run-1")
    lease = world.objects[LEASE]
    lease["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(dict(world.slots(), served=served))
    world.put(LEASE, lease)
    assert slots.take("npu-b", "run-1", 3, soak=600) is None


def test_as_many_as_there_are(slots):
    assert [slots.take(name, "run-1", 2) is None for name in ("npu-a", "npu-b", "npu-c")] == [True, True, False]


def test_going_on_without_the_node_that_was_the_reason_of_a_halt(world, slots):
    """It keeps what is written of it, but takes no slot from others and is no longer the first of its kind."""
    assert slots.take("npu-a", "run-1", 1, pool="a2 new") is None
    slots.halt("run-1", "npu-a did not come back.", node="npu-a")
    with pytest.raises(Halted, match="To continue without it: .* --limit 'all:!npu-a' -e npu_upgrade_clear_halt=true"):
        slots.take("npu-b", "run-2", 1, pool="a2 new")
    slots.clear_halt()
    assert slots.take("npu-b", "run-2", 1, pool="a2 new") is None
    assert world.slots()["holders"]["npu-a"]["run"] == "run-1"
    # The next one is the first of the kind now, and has the only slot.
    assert slots.take("npu-c", "run-2", 1, pool="a2 new").startswith("all 1 slot taken: npu-b")
    # A run that goes on with it has it among its own again.
    slots.give("npu-b", "run-2")
    slots.hold("npu-a", "run-3", pool="a2 new")
    assert slots.take("npu-b", "run-3", 1, pool="a2 new").startswith("all 1 slot taken: npu-a (run run-3")


@pytest.mark.parametrize("where", ["halted", "holders"])
def test_a_name_that_no_node_has_gets_into_no_command(world, slots, where):
    """What a halt and a dead run's slot advise is copied into a shell."""
    slots.take("npu-a", "run-1", 1)
    slots.halt("run-1", "npu-a did not come back.", node="npu-a")
    text = json.dumps(world.slots())
    name = "x' ; touch owned ; '"
    changed = (
        text.replace('"node": "npu-a"', '"node": "%s"' % name) if where == "halted" else text.replace('"npu-a":', '"%s":' % name)
    )
    assert changed != text
    world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = changed
    with pytest.raises(Refused, match="cannot be read: .*is not the name of a Node"):
        slots.halted()


def test_a_halt_that_names_no_node_sets_none_aside(world, slots):
    slots.take("npu-a", "run-1", 1)
    slots.halt("run-1", "npu-b failed.")
    slots.clear_halt()
    assert slots.take("npu-c", "run-2", 1).startswith("all 1 slot taken: npu-a")


def test_unlimited(world, slots):
    assert [slots.take(name, "run-1", 0) for name in ("npu-a", "npu-b", "npu-c")] == [None] * 3
    assert world.slots()["max"] == 0


def test_what_is_not_ours_is_not_given_back(world, slots):
    slots.take("npu-a", "run-1", 1)
    slots.give("npu-a", "run-2")
    assert list(world.slots()["holders"]) == ["npu-a"]


def test_a_recovery_takes_part_in_whatever_number_an_upgrade_works_with(world, slots):
    slots.take("npu-a", "run-1", 2)
    assert slots.take("npu-b", "run-2", 5, recoveries=0) is None
    assert world.slots()["max"] == 2 and world.slots()["holders"]["npu-b"]["reason"] == "recovery"
    assert slots.take("npu-c", "run-2", 5, recoveries=0).startswith("all 2 slots taken")
    assert slots.take("npu-c", "run-1", 2).startswith("all 2 slots taken")


def test_recoveries_have_a_number_of_their_own_as_well(slots):
    assert slots.take("npu-a", "run-1", 3, recoveries=1) is None
    assert slots.take("npu-b", "run-1", 3, recoveries=1).startswith("as many nodes are in recovery as npu_heal_max_parallel")
    assert slots.take("npu-b", "run-2", 3) is None


def test_recoveries_alone_do_not_say_how_many_an_upgrade_may_take(world, slots):
    slots.take("npu-a", "run-1", 1, recoveries=1)
    assert slots.take("npu-b", "run-2", 3) is None
    assert world.slots()["max"] == 3


def test_another_number_waits_for_who_died_before_it_began(world, slots):
    """A run that ends at once cannot see that another one died: if it were refused now, it would be refused each time."""
    slots.hold("npu-a", "dead")
    world.clock.sleep(3600)
    assert "is about to begin: npu-a (run dead" in slots.take("npu-b", "run-2", 2)
    world.clock.sleep(61)
    assert slots.take("npu-b", "run-2", 2) is None
    assert world.slots()["holders"].keys() == {"npu-b"} and world.slots()["max"] == 2


def test_another_number_is_refused_while_others_work(world, slots):
    slots.take("npu-a", "run-1", 1)
    annotate(world, "npu-a", **{RECORD: RUNNING})
    with pytest.raises(Refused, match="works with 1 slot, this one was started with 2 slots.*wait until npu-a is done"):
        slots.take("npu-b", "run-2", 2)
    with pytest.raises(Refused, match="no limit"):
        slots.take("npu-b", "run-2", 0)
    slots.give("npu-a", "run-1")
    assert slots.take("npu-b", "run-2", 2) is None
    assert world.slots()["max"] == 2


def test_a_holder_without_a_record_is_dropped_after_a_minute(world, slots):
    slots.take("npu-a", "dead", 1)
    assert slots.take("npu-b", "run-2", 1) is not None
    world.clock.sleep(61)
    annotate(world, "npu-a", **{RECORD: RUNNING})
    assert slots.take("npu-b", "run-2", 1) is not None, "it has a record: somebody will go on with it"
    world.touch("npu-a", lambda node: node["metadata"]["annotations"].pop(RECORD))
    world.clock.sleep(31)
    assert slots.take("npu-b", "run-2", 1) is not None, "it had a record just now"
    world.clock.sleep(61)
    assert slots.take("npu-b", "run-2", 1) is None
    assert list(world.slots()["holders"]) == ["npu-b"]


def test_a_holder_whose_node_is_gone_is_dropped(world, slots):
    slots.take("npu-a", "dead", 1)
    del world.objects["/api/v1/nodes/npu-a"]
    assert slots.take("npu-b", "run-2", 1) is not None
    world.clock.sleep(61)
    assert slots.take("npu-b", "run-2", 1) is None


def test_a_holder_whose_maintenance_has_ended_is_dropped_at_once(world, slots):
    slots.take("npu-a", "dead", 1)
    ended = {"run": "dead", "generation": 1, "ended": maintenance_record.rfc3339(world.clock.now())}
    annotate(world, "npu-a", **{LAST: json.dumps(ended)})
    assert slots.sweep() == ["npu-a"]
    assert world.slots()["holders"] == {}
    # It was taken again since: that maintenance has not ended.
    world.clock.sleep(5)
    slots.take("npu-a", "dead", 1)
    assert slots.sweep() == []


def test_the_same_node_waits_for_who_has_just_taken_it(world, slots):
    slots.take("npu-a", "run-1", 3)
    assert slots.take("npu-a", "run-2", 3) == "the run run-1 has just resumed it"
    world.clock.sleep(61)
    assert slots.take("npu-a", "run-2", 3) is None
    assert world.slots()["holders"]["npu-a"]["run"] == "run-2"


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_holder_whose_clock_is_wrong(world, slots, hours):
    """Neither is it dropped at the first look, nor is it waited for longer than a minute."""
    slots.take("npu-a", "run-1", 1)
    text = world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"]
    since = maintenance_record.rfc3339(world.clock.now() + hours * 3600)
    world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = text.replace("2023-11-14T22:13:20Z", since)
    assert slots.take("npu-b", "run-2", 1) is not None
    world.clock.sleep(59)
    assert slots.take("npu-b", "run-2", 1) is not None
    world.clock.sleep(3)
    assert slots.take("npu-b", "run-2", 1) is None


def test_the_own_clock_is_set(world, slots):
    """NTP does that. The monotonic one goes on."""
    slots.take("npu-a", "run-1", 1)
    assert slots.take("npu-b", "run-2", 1) is not None
    ahead = world.clock.now
    slots._clock.now = lambda: ahead() + 7200
    assert slots.take("npu-b", "run-2", 1) is not None


def test_a_look_that_changes_nothing_is_one_request(world, slots):
    slots.take("npu-a", "run-1", 2)
    slots.take("npu-b", "run-1", 2)
    annotate(world, "npu-a", **{RECORD: RUNNING})
    annotate(world, "npu-b", **{RECORD: RUNNING})
    asked, get = [], slots._cluster.get
    slots._cluster.get = lambda path: asked.append(path) or get(path)
    for _look in range(60):
        assert slots.take("npu-c", "run-2", 2) is not None
        world.clock.sleep(1)
    assert asked.count(LEASE) == 60
    assert len(asked) - 60 <= 2 * 3, "holders are looked at twice a minute"


def read_nodes(cluster):
    """Which Nodes it has read since, by name; "" for a list of them."""
    found = [path.removeprefix(NODES).lstrip("/") for _when, path in cluster.read if path.startswith(NODES)]
    cluster.read.clear()
    return found


def test_who_waits_for_many_reads_them_with_one_request(world):
    """In maintenance, about to begin, and with the label taken away."""
    cluster = CountingCluster(world)
    slots = Slots(cluster, "npu-operator", world.clock)
    names = ["npu-%d" % number for number in range(12)]
    for name in names:
        world.add(name)
        assert slots.take(name, "run-1", len(names)) is None
        annotate(world, name, **{RECORD: RUNNING})
        world.node(name)["metadata"]["labels"][maintenance_record.LABEL_STATE] = maintenance_record.DRAIN
    world.node("npu-3")["metadata"]["labels"].pop(maintenance_record.LABEL_STATE)
    world.node("npu-7")["metadata"]["annotations"].pop(RECORD)
    cluster.read.clear()
    for _look in range(3):
        why = slots.take("npu-a", "run-2", len(names))
        assert set(why.holders) == set(names) and slots.dead(why.holders, 150) == {}
        world.clock.sleep(2)
    assert read_nodes(cluster) == ["", "npu-3"]
    # All of them died: each has its word, and is read again before it counts as dead.
    world.clock.sleep(160)
    cluster.read.clear()
    annotate(world, "npu-7", **{RECORD: RUNNING})
    assert slots.dead(why.holders, 150) == {}
    world.clock.sleep(160)
    assert set(slots.dead(why.holders, 150)) == set(names)
    read = read_nodes(cluster)
    assert read.count("") == 2 and set(read) == {"", *names}


def test_the_first_of_its_kind_goes_alone(world, slots):
    assert slots.take("npu-a", "run-1", 3, pool="910B new") is None
    wait = slots.take("npu-b", "run-1", 3, pool="910B new")
    assert wait.startswith("npu-a is the first of its kind and not confirmed yet") and list(wait.holders) == ["npu-a"]
    assert slots.take("npu-c", "run-1", 3, pool="310P new") is None
    slots.give("npu-a", "run-1")
    assert slots.take("npu-b", "run-1", 3, pool="910B new") is None, "the first one was given back"
    slots.give("npu-b", "run-1", works="new")
    assert world.slots()["proved"] == ["910B new"]
    assert [slots.take(name, "run-1", 3, pool="910B new") for name in ("npu-a", "npu-b")] == [None, None]
    assert slots.check("npu-b", "run-1")
    assert not slots.check("npu-b", "run-2") and not slots.check("npu-z", "run-1")


@pytest.mark.parametrize("how", ["take", "hold"])
def test_a_node_stays_the_first_of_its_kind_when_another_run_takes_it_over(world, slots, how):
    """The other run planned while the host did not answer, and does not know what it is."""

    def takes_over(run, pool):
        while (slots.take("npu-a", run, 3, pool=pool) if how == "take" else slots.hold("npu-a", run, pool=pool)) is not None:
            world.clock.sleep(31)
        return world.slots()["holders"]["npu-a"]["pool"]

    slots.take("npu-a", "dead", 3, pool="910B new")
    assert takes_over("run-2", " new") == "910B new"
    assert slots.take("npu-b", "run-1", 3, pool="910B new").startswith("npu-a is the first of its kind")
    assert takes_over("run-3", " newer") == " newer", "it gets another driver now"


def test_the_first_one_ended_well_and_its_run_was_killed_before_it_gave_the_slot_back(world, slots):
    slots.take("npu-a", "dead", 3, pool="910B new")
    ended = {
        "run": "dead",
        "generation": 1,
        "ended": maintenance_record.rfc3339(world.clock.now()),
        "outcome": "success",
        "to": {"release": "new"},
    }
    annotate(world, "npu-a", **{LAST: json.dumps(ended)})
    assert slots.take("npu-b", "run-2", 3, pool="910B new") is None
    assert world.slots()["proved"] == ["910B new"]


def test_what_a_node_went_back_to_proves_nothing_of_what_it_was_to_get(world, slots):
    slots.take("npu-a", "run-1", 3, pool="910B new")
    slots.give("npu-a", "run-1", works="old")
    assert "proved" not in world.slots()


def test_two_that_are_first_of_their_kind(slots):
    """As dead runs may leave them."""
    slots.hold("npu-a", "run-1", pool="910B new")
    slots.hold("npu-b", "run-1", pool="910B new")
    for name in ("npu-a", "npu-b"):
        with pytest.raises(NotYet, match="It has to wait: npu-. is the first of its kind"):
            slots.check(name, "run-1")
    slots.give("npu-a", "run-1")
    assert slots.check("npu-b", "run-1")


def test_what_works_is_not_remembered_for_ever(world, slots):
    for number in range(30):
        slots.take("npu-a", "run-1", 1, pool="kind %d" % number)
        slots.give("npu-a", "run-1", works="%d" % number)
    assert world.slots()["proved"] == ["kind %d" % number for number in range(10, 30)]


def test_an_upgrade_that_failed_is_no_reason_not_to_go_back(world, slots):
    slots.halt("the run run-1", "npu-a burns.")
    assert slots.take("npu-b", "run-2", 1, reason="rollback") is None
    assert slots.check("npu-b", "run-2", "rollback")
    assert slots.halted("rollback") is None
    slots.halt("the run run-2", "npu-b burns, too.", "rollback")
    for reason in ("upgrade", "rollback"):
        with pytest.raises(Halted, match="npu-b burns, too.*npuops.ascend.rollback -e npu_upgrade_clear_halt=true"):
            slots.check("npu-b", "run-2", reason)
    slots.halt("the run run-3", "npu-c burns.")
    assert world.slots()["halted"]["who"] == "the run run-2", "one that stops all runs stays"


def test_a_halt_because_of_a_node_ends_with_its_maintenance(world, slots):
    slots.hold("npu-a", "run-1")
    slots.halt("the run run-1", "npu-a is in the middle.", node="npu-a")
    assert "finish npu-a first: ansible-playbook npuops.ascend.upgrade. To continue without it" in slots.halted()
    slots.hold("npu-b", "run-1")
    slots.give("npu-b", "run-1", works="new")
    assert slots.halted()
    slots.give("npu-a", "run-1", works="new")
    assert slots.halted() is None


def test_hold_goes_beyond_the_number(world, slots):
    slots.take("npu-a", "run-1", 1)
    slots.hold("npu-b", "run-1")
    assert sorted(world.slots()["holders"]) == ["npu-a", "npu-b"]


@pytest.mark.parametrize("nodes", [1, 500])
def test_no_text_and_no_number_of_nodes_makes_the_lease_unreadable(world, slots, nodes):
    """What a host, a hook or a person says may have any length, and each character may take twelve in JSON."""
    waits = [slots.take("npu-%04d" % number, "run-1", 0, pool="a%d%s" % (number, "b" * 400)) for number in range(nodes)]
    taken = [wait for wait in waits if wait is None]
    assert waits[: len(taken)] == taken and (len(taken) == nodes or "has no room for more" in waits[-1]), waits[len(taken)]
    for text in ("npu-a says: " + "\U0001f525" * 10**6, "a" * 10**6):
        slots.clear_halt()
        slots.halt("the run " + text, text)
        assert slots.halted().startswith("The rollout is halted since ") and text[:1000] in slots.halted()
    slots.give("npu-0000", "run-1")
    assert "npu-0000" not in world.slots()["holders"]


def test_halt(world, slots):
    slots.halt("the run run-1", "npu-a burns.")
    slots.halt("the run run-2", "npu-b burns, too.")
    told = {"who": "the run run-1", "why": "npu-a burns.", "when": "2023-11-14T22:13:20Z", "reason": "upgrade"}
    assert world.slots()["halted"] == told
    with pytest.raises(Halted, match=r"halted since 2023-.* by the run run-1: npu-a burns\. .*npu_upgrade_clear_halt=true"):
        slots.take("npu-c", "run-3", 1)
    assert "npu-a burns." in slots.halted()
    assert slots.clear_halt()["why"] == "npu-a burns."
    assert slots.halted() is None and slots.clear_halt() is None
    assert slots.take("npu-c", "run-3", 1) is None


def test_somebody_is_faster(world, slots):
    """Both see a free slot; one gets it."""
    slots.take("npu-c", "run-1", 1)
    slots.give("npu-c", "run-1")
    rival = Slots(FakeCluster(world), "npu-operator", world.clock)

    def on_write(path, body):
        world.on_write = lambda path, body: None
        assert rival.take("npu-b", "run-2", 1) is None

    world.on_write = on_write
    assert "npu-b (run run-2" in slots.take("npu-a", "run-1", 1)
    assert list(world.slots()["holders"]) == ["npu-b"]


def test_both_create_the_lease(world, slots):
    rival = Slots(FakeCluster(world), "npu-operator", world.clock)
    request = slots._cluster.request

    def create(method, path, body):
        slots._cluster.request = request
        rival.take("npu-b", "run-2", 2)
        return request(method, path, body)

    slots._cluster.request = create
    assert slots.take("npu-a", "run-1", 2) is None
    assert sorted(world.slots()["holders"]) == ["npu-a", "npu-b"]


def test_the_lease_is_deleted_in_between(world, slots):
    slots.take("npu-b", "run-1", 2)

    def on_write(path, body):
        world.on_write = lambda path, body: None
        del world.objects[LEASE]

    world.on_write = on_write
    assert slots.take("npu-a", "run-1", 2) is None
    assert list(world.slots()["holders"]) == ["npu-a"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"halted": {"who": 1}}',
        '{"max": "x"}',
        '{"proved": [1]}',
        '{"proved": 1}',
        '{"holders": []}',
        '{"holders": {"npu-a": "run"}}',
    ],
)
def test_an_edited_lease(world, slots, text):
    slots.take("npu-a", "run-1", 1)
    world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = text
    with pytest.raises(Refused, match="cannot be read: .* It was edited.*kubectl -n npu-operator delete lease"):
        slots.take("npu-b", "run-1", 1)


def test_no_namespace(world, slots):
    def refuse(method, path, body):
        raise kube_client.NotFound("namespaces npu-operator not found")

    slots._cluster.request = refuse
    with pytest.raises(Refused, match="no namespace npu-operator"):
        slots.take("npu-a", "run-1", 1)


# --- a pause ---


@pytest.mark.parametrize("reason", [maintenance_record.UPGRADE_REASON, maintenance_record.ROLLBACK_REASON])
def test_a_pause_stops_upgrades_and_rollbacks_before_their_next_intent(world, slots, reason):
    assert slots.take("npu-a", "run-1", 2, reason=reason) is None
    slots.pause("li.na", "incident 4711")
    for ask in (lambda: slots.take("npu-b", "run-1", 2, reason=reason), lambda: slots.check("npu-a", "run-1", reason)):
        with pytest.raises(
            Halted, match="All rollouts are paused since 2023-11-14T22:13:20Z by li.na: incident 4711. To resume them: "
        ):
            ask()
    assert slots.resume()["why"] == "incident 4711"
    assert slots.take("npu-b", "run-1", 2, reason=reason) is None and slots.check("npu-a", "run-1", reason)
    assert slots.resume() is None


def test_a_pause_lets_recoveries_go_on(slots):
    slots.pause("li.na", "incident 4711")
    assert slots.take("npu-a", "run-1", 1, recoveries=1, reason=maintenance_record.RECOVERY_REASON) is None
    assert slots.check("npu-a", "run-1", maintenance_record.RECOVERY_REASON)


def test_a_halt_stays_over_a_pause(slots):
    slots.halt("run-1", "npu-a did not come back.", node="npu-a")
    halted = slots.view()["halted"]
    slots.pause("li.na", "incident 4711")
    slots.pause("li.na", "incident 4712")
    assert (slots.view()["halted"]["why"], slots.view()["halted"]["failure"]) == ("incident 4712", halted)
    slots.resume()
    assert slots.view()["halted"] == halted


def test_a_node_that_fails_while_rollouts_are_paused_halts_them(slots):
    slots.pause("li.na", "incident 4711")
    slots.halt("run-1", "npu-a did not come back.", node="npu-a")
    assert slots.view()["halted"]["why"] == "incident 4711"
    slots.resume()
    assert slots.view()["halted"]["node"] == "npu-a"


def test_to_clear_a_halt_ends_no_pause(slots):
    slots.pause("li.na", "incident 4711")
    assert slots.clear_halt() is None
    slots.halt("run-1", "npu-a did not come back.", node="npu-a")
    assert slots.clear_halt()["node"] == "npu-a"
    assert slots.view()["halted"] == {
        "who": "li.na", "why": "incident 4711", "when": "2023-11-14T22:13:20Z", "reason": "pause"
    }  # fmt: skip


def test_the_node_that_was_the_reason_ends_its_own_halt_but_no_pause(slots):
    assert slots.take("npu-a", "run-1", 1, pool="a2 new") is None
    slots.halt("run-1", "npu-a did not come back.", node="npu-a")
    slots.pause("li.na", "incident 4711")
    slots.give("npu-a", "run-1", works="new")
    assert "failure" not in slots.view()["halted"]
    slots.resume()
    assert slots.view()["halted"] is None


def test_the_same_pause_again_changes_nothing(world, slots):
    slots.pause("li.na", "incident 4711")
    before = world.slots()
    world.clock.sleep(60)
    slots.pause("li.na", "incident 4711")
    assert world.slots() == before
