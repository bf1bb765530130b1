# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A maintenance that died, and then a run that wants something else: every pair of purposes, at every call of the first."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots

from support.fleet.commands_bench import OTHER, Commands
from support.fleet.fake_fleet import NEW, OLD, FakeCluster, Killed, die
from support.fleet.maintenance_bench import COMPONENTS, LAST, RECORD, STATE

# What the node is like before the first command.
BEGINS = {
    "upgrade": {},
    "rollback": {"release": NEW, "previous": OLD, "upgraded": True},
    "heal": {"wedged": True},
}


def begin(first, second):
    """Bench, and the release that the host had then."""
    start = dict(BEGINS["rollback" if "rollback" in (first, second) and first != "upgrade" else first])
    if "heal" in (first, second):
        start["wedged"] = True
    bench = Commands(**start)
    return bench, bench.host.driver


def settle(bench, name):
    """The command again and again, as a person would, until it has nothing left to say but that it is done."""
    for _number in range(6):
        verdict, outcome = bench.command(name)
        if outcome is None or outcome["outcome"] not in ("busy", "under-way"):
            return verdict, outcome
        if outcome["outcome"] == "busy" and "ansible-playbook npuops.ascend." in outcome["reason"]:
            # Follow what it says.
            other = outcome["reason"].partition("ansible-playbook npuops.ascend.")[2].split()[0]
            bench.wait(300)
            bench.command(other)
    raise AssertionError("%s never ends: %s" % (name, outcome))


def assert_at_rest(bench, release):
    host = bench.host
    assert (host.driver, host.good, host.next, host.going_down) == (release, release, None, False)
    assert host.view()["trial"] is None or host.view()["trial"]["boot_id"] != host.boot_id or host.driver == host.good
    assert bench.labels[COMPONENTS] == "enabled"
    # The slot of a run that died when all was done but that: the next one that needs it drops it.
    bench.wait(100)
    maintenance_slots.Slots(FakeCluster(bench.world), "npu-operator", bench.world.clock).sweep()
    bench.assert_nothing_left()
    assert not bench.world.slots()["halted"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pause", [5, 300])
@pytest.mark.parametrize(("first", "second"), list(itertools.product(("upgrade", "rollback"), ("upgrade", "rollback"))))
def test_what_the_second_wants_is_what_the_host_ends_on(first, second, pause, when):
    wanted = NEW if second == "upgrade" else OLD
    for at in itertools.count(1):
        bench, before = begin(first, second)
        if not bench.dies(first, at, when):
            break
        if RECORD not in bench.annotations and bench.host.good == before:
            continue  # it had not begun
        bench.wait(pause)
        host, boots = bench.host, bench.host.boots
        armed = not host.up or host.going_down or host.next is not None
        reached = not armed and host.driver == wanted
        _verdict, outcome = settle(bench, second)
        assert outcome is None or outcome["outcome"] in ("done", "up-to-date", "withdrawn"), (at, outcome)
        assert_at_rest(bench, wanted)
        assert STATE not in bench.labels, (at, bench.labels)
        # One way there. A boot that was on its way cannot be taken back, and may have to be followed by another.
        most = (0 if reached else 1) + (1 if armed else 0)
        assert host.boots - boots <= most, (at, host.boots, boots)
        # Another run changes nothing.
        boots = host.boots
        _verdict, outcome = bench.command(second)
        assert outcome is None, (at, outcome)
        assert_at_rest(bench, wanted)
        assert host.boots == boots
    assert at > 12


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("second", ["upgrade", "rollback"])
def test_an_upgrade_or_rollback_after_a_recovery(second, when):
    for at in itertools.count(1):
        bench, before = begin("heal", second)
        if not bench.dies("heal", at, when):
            break
        wanted = {"upgrade": NEW, "rollback": OLD}[second]
        bench.wait(300)
        settle(bench, second)
        if bench.host.driver != wanted:  # its record had to be ended by heal first, which left the label as it was
            settle(bench, second)
        bench.wait(60)
        assert_at_rest(bench, wanted)
        assert bench.host.boots <= (2 if before != wanted else 1), at
        assert STATE not in bench.labels
    assert at > 12


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("first", ["upgrade", "rollback"])
def test_a_recovery_after_an_upgrade_or_rollback(first, when):
    """Before its intent it is given back, and is due still; after it, it is ended by what began it."""
    healed = 0
    for at in itertools.count(1):
        bench, before = begin(first, "heal")
        if not bench.dies(first, at, when):
            break
        bench.wait(300)
        record = json.loads(bench.annotations.get(RECORD, "null"))
        _verdict, outcome = bench.heal()
        after = {"upgrade": NEW, "rollback": OLD}[first]
        if record and record["boot_id"] is None and record["step"] != "rollback-required" and bench.host.boots:
            healed += 1
            assert outcome["outcome"] == "done"
            assert (bench.host.driver, bench.host.good) == (before, before) and bench.host.boots == 1
            assert bench.labels[STATE] == "upgrade-required" and RECORD not in bench.annotations and not bench.cordoned
        elif record and record["boot_id"]:
            assert outcome is None or "ansible-playbook npuops.ascend.%s --limit npu-a" % first in outcome["reason"]
        settle(bench, first)
        bench.wait(60)
        assert_at_rest(bench, after)
        assert STATE not in bench.labels
    assert at > 12 and healed > 4


# --- one by one ---


def dies_at_the_reboot_call(bench, name):
    """The intent is written; the host was not asked."""
    bench.host.rebooted = die
    with pytest.raises(Killed):
        bench.command(name)
    del bench.host.rebooted
    bench.wait(300)


def test_a_rollback_takes_an_upgrade_back_that_has_not_rebooted_the_host():
    """To the driver that it has, and not to the one before that."""
    bench = Commands()
    bench.pods.on_drain = die
    with pytest.raises(Killed):
        bench.upgrade()
    bench.pods.on_drain = None
    assert bench.cordoned and bench.labels[STATE] == "drain-required"
    bench.wait(300)
    verdict, outcome = bench.rollback()
    assert (verdict, outcome["outcome"]) == ("in-flight", "withdrawn")
    assert "upgrade" in outcome["reason"] and "25.5.0" in outcome["reason"]
    assert bench.host.boots == 0 and STATE not in bench.labels
    assert_at_rest(bench, OLD)
    assert (bench.last["outcome"], bench.last["reason"]) == ("withdrawn", "upgrade")
    assert bench.rollback()[1] is None and bench.host.boots == 0


def test_a_rollback_takes_the_reboot_back_that_was_only_intended():
    bench = Commands()
    dies_at_the_reboot_call(bench, "upgrade")
    assert bench.record["boot_id"]
    _verdict, outcome = bench.rollback()
    assert outcome["outcome"] == "done" and bench.host.boots == 0
    assert_at_rest(bench, OLD)
    assert (bench.last["outcome"], bench.last["reason"]) == ("success", "rollback")
    assert bench.last["from"]["release"] == NEW and bench.last["to"]["release"] == OLD
    assert bench.labels["npuops.ascend/driver-version"] == "25.2.0"


def test_a_run_that_wakes_up_after_that_does_not_reboot_the_host():
    bench = Commands()
    dies_at_the_reboot_call(bench, "upgrade")
    record = bench.record
    bench.rollback()
    with pytest.raises(Exception, match="generation"):
        bench.host.rebooted(record["boot_id"], record["generation"], NEW, True)
    assert bench.host.boots == 0 and bench.host.next is None


def test_a_rollback_while_the_host_goes_down_to_try_the_new_driver():
    bench = Commands()
    bench.world.after_write = lambda: None
    host = bench.host
    rebooted = host.rebooted

    def queue(*arguments):
        rebooted(*arguments)
        raise Killed()

    host.rebooted = queue
    go_down = host.go_down
    host.go_down = lambda: bench.world.clock.at(200, go_down)  # systemd stops its units first
    with pytest.raises(Killed):
        bench.upgrade()
    del host.rebooted
    bench.wait(100)
    assert host.going_down and host.up
    _verdict, outcome = bench.rollback()
    assert outcome["outcome"] == "done"
    # The boot that was on its way has come, and tried nothing.
    assert host.boots == 1 and host.tries == {}
    assert_at_rest(bench, OLD)


def test_a_rollback_waits_for_a_host_that_boots_slowly():
    bench = Commands()
    bench.host.BOOT_SECONDS = 900.0
    rebooted = bench.host.rebooted

    def then_die(*arguments):
        rebooted(*arguments)
        raise Killed()

    bench.world.after_write = lambda: None
    bench.host.rebooted = then_die
    with pytest.raises(Killed):
        bench.upgrade()
    del bench.host.rebooted
    bench.wait(120)
    assert not bench.host.up
    bench.running = None
    assert bench.rollback()[1]["outcome"] == "done"
    assert_at_rest(bench, OLD)
    assert bench.host.boots == 2


def test_an_upgrade_to_yet_another_driver_over_a_trial_of_a_rollback():
    """Back to what was confirmed, then on to what is wanted."""
    bench = Commands(release=NEW, previous=OLD, upgraded=True, wanted=OTHER)
    bench.host.validate = die
    with pytest.raises(Killed):
        bench.rollback()
    del bench.host.validate
    assert bench.host.driver == OLD and bench.host.good == NEW
    bench.wait(300)
    assert bench.upgrade()[1]["outcome"] == "done"
    assert_at_rest(bench, OTHER)
    assert bench.host.previous == NEW and bench.host.boots == 3


def test_an_upgrade_whose_version_was_changed_before_its_intent_goes_to_the_new_one():
    bench = Commands()
    bench.pods.on_drain = die
    with pytest.raises(Killed):
        bench.upgrade()
    bench.pods.on_drain, bench.wanted = None, OTHER
    bench.wait(300)
    assert bench.upgrade()[1]["outcome"] == "done"
    assert_at_rest(bench, OTHER)
    assert bench.host.tries == {OTHER: 1} and bench.host.boots == 1


def test_an_upgrade_whose_version_was_set_back_before_its_intent_is_given_back():
    bench = Commands()
    bench.pods.on_drain = die
    with pytest.raises(Killed):
        bench.upgrade()
    bench.pods.on_drain, bench.wanted = None, OLD
    bench.wait(300)
    _verdict, outcome = bench.upgrade()
    assert outcome["outcome"] == "withdrawn"
    assert_at_rest(bench, OLD)
    assert bench.host.boots == 0 and STATE not in bench.labels
    assert bench.upgrade() == ("up-to-date", None)


def test_a_living_run_is_not_taken_from():
    bench = Commands()
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    bench.run("run-a", until="reboot")
    record = bench.record

    def beat():
        if RECORD in bench.annotations and bench.record["run"] == "run-a":
            record["heartbeat"] = maintenance_record.rfc3339(bench.world.clock.now())
            bench.world.touch(
                "npu-a", lambda node: node["metadata"]["annotations"].update({RECORD: maintenance_record.encode(record)})
            )
            bench.world.clock.at(10, beat)

    bench.world.clock.at(5, beat)
    _verdict, outcome = bench.rollback()
    assert outcome["outcome"] == "busy" and bench.record["run"] == "run-a" and bench.cordoned


def test_the_way_back_that_does_not_work_either_stays_out_of_service():
    bench = Commands()
    bench.host.validate = die
    with pytest.raises(Killed):
        bench.upgrade()
    del bench.host.validate
    bench.host.broken = {OLD}
    bench.wait(300)
    _verdict, outcome = bench.rollback()
    assert outcome["outcome"] == "failed" and "does not work" in outcome["reason"]
    assert bench.cordoned and bench.world.slots()["halted"] and bench.labels[STATE] == "upgrade-failed"


def test_what_the_plan_says_of_it():
    bench = Commands()
    bench.pods.on_drain = die
    with pytest.raises(Killed):
        bench.upgrade()
    bench.wait(300)
    entry = bench.plan("rollback").entries[0]
    assert (entry.verdict, entry.target) == ("in-flight", None)
    assert any("upgrade" in note and "given back" in note for note in entry.notes), entry.notes
    assert LAST not in bench.annotations
