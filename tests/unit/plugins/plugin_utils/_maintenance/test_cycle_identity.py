# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host that is reached is the node's, at every step that touches it: an alias may be wrong from one run to the next."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.commands_bench import Commands
from support.fleet.fake_fleet import NEW, OLD, Killed, die
from support.fleet.maintenance_bench import RECORD, STATE, Bench, Wedged


def elsewhere(bench, release=NEW, is_node=True):
    """From now on the inventory reaches another host, which is another node or none."""
    own, other = bench.host, bench.world.add("npu-b", release=release, state=None)
    if not is_node:
        bench.world.objects.pop("/api/v1/nodes/npu-b")
    bench.host, bench.other = other, own
    return own, other


@pytest.mark.parametrize("is_node", [True, False])
def test_what_validates_on_another_host_does_not_confirm_this_node(is_node):
    bench = Bench()
    assert bench.run(until="confirm")["outcome"] == "under-way"
    own, other = elsewhere(bench, is_node=is_node)
    bench.wait(300)
    began = bench.world.clock.now()
    outcome = bench.run(run="run-2")
    assert outcome["outcome"] == "halted" and "is not the node npu-a of the cluster" in outcome["reason"]
    assert bench.cordoned and bench.labels[STATE] == "validation-required" and own.good == OLD
    assert other.generation == 0 and other.boots == 0
    # Of another node it is certain at once; a node may take a moment to tell of a reboot.
    assert (bench.world.clock.now() - began < 100) is is_node
    bench.host = own
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()


@pytest.mark.parametrize("call", ["validate", "confirmed"])
def test_what_another_host_says_gives_up_no_driver(call):
    """In the middle of a validation the address leads to another node, whose driver is another one, for a while."""
    bench = Bench()
    own, other = bench.host, bench.world.add("npu-b", release=OLD, state=None)
    asked = getattr(own, call)

    def crossed(*_arguments):
        own.view = other.view
        if call == "confirmed":
            raise NpuError("The host was rebooted since.")
        return {"valid": False, "checks": [], "msg": "another machine"}

    setattr(own, call, crossed)
    outcome = bench.run()
    assert outcome["outcome"] == "halted" and "is not the node npu-a of the cluster" in outcome["reason"]
    assert bench.labels[STATE] == "validation-required" and other.generation == 0
    setattr(own, call, asked)
    del own.view
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()


def test_before_the_intent_nothing_is_done_to_either():
    bench = Bench()
    bench.run(until="reboot")
    _own, other = elsewhere(bench)
    bench.wait(300)
    outcome = bench.run(run="run-2")
    assert outcome["outcome"] == "failed" and "is not the node npu-a" in outcome["reason"]
    assert RECORD not in bench.annotations and not bench.cordoned and other.generation == 0


def test_after_the_intent_another_host_is_not_waited_for():
    bench = Bench()
    bench.host.rebooted = die
    with pytest.raises(Killed):
        bench.run()
    del bench.host.rebooted
    own, other = elsewhere(bench)
    bench.wait(300)
    began = bench.world.clock.now()
    outcome = bench.run(run="run-2", reboot={"timeout": 1800})
    assert outcome["outcome"] == "halted" and "is not the node npu-a" in outcome["reason"]
    assert bench.world.clock.now() - began < 100 and (own.boots, other.boots) == (0, 0)


def test_the_way_back_is_not_gone_on_another_host():
    bench = Bench()
    bench.host.broken = {NEW}
    own = bench.host
    view = own.view
    reached = []

    def die_in_rollback(wait=None, chips=False, ports=False):
        if RECORD in bench.annotations and bench.record["step"] == "rollback-required":
            reached.append(1)
            raise Killed()
        return view(wait, chips, ports)

    own.view = die_in_rollback
    with pytest.raises(Killed):
        bench.run()
    del own.view
    _own, other = elsewhere(bench, release=OLD)
    bench.wait(300)
    outcome = bench.run(run="run-2")
    assert reached and outcome["outcome"] == "halted" and "is not the node npu-a" in outcome["reason"]
    assert other.generation == 0 and own.driver == NEW


def test_a_recovery_does_not_end_by_what_another_host_says():
    bench = Wedged()
    bench.host.validate = die
    with pytest.raises(Killed):
        bench.run()
    del bench.host.validate
    own, _other = elsewhere(bench, release=OLD)
    bench.wait(300)
    outcome = bench.run(run="run-2")
    assert outcome["outcome"] == "failed" and "is not the node npu-a" in outcome["reason"]
    assert bench.record["step"] == "validation-required" and not bench.world.slots()["halted"]
    bench.host = own
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_recovered()


def test_a_turn_back_is_not_made_on_another_host():
    bench = Commands()
    bench.host.validate = die
    with pytest.raises(Killed):
        bench.upgrade()
    del bench.host.validate
    own, other = elsewhere(bench, release=OLD)
    bench.wait(300)
    target = {"version": "25.2.0", "release": OLD, "digest": ""}
    outcome = bench.run("run-9", order={"reason": "rollback", "target": target})
    assert outcome["outcome"] == "halted" and "is not the node npu-a" in outcome["reason"]
    assert other.generation == 0 and own.driver == NEW and bench.record["reason"] == "upgrade"


def test_a_driver_is_confirmed_only_in_the_boot_in_which_it_was_validated():
    """The same version on request: the driver after another reboot is the same."""
    bench = Bench(labels={"npuops.ascend/maintenance-requested": "true"})
    same = {"version": "25.2.0", "release": OLD, "digest": None}
    validations, confirmed, own = [], bench.host.confirmed, bench.host

    def reboot_before(*arguments):
        own.confirmed = confirmed
        own.go_down()
        bench.wait(60)
        return confirmed(*arguments)

    validate = own.validate
    own.validate = lambda version: (validations.append(own.boot_id), validate(version))[1]
    own.confirmed = reboot_before
    assert bench.run(order={"target": same})["outcome"] == "done"
    assert validations == ["boot-npu-a-1", "boot-npu-a-2"]
    assert maintenance_record.state(bench.node) is None
