# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wedged node's way through its recovery: one reboot, no more, and the guards against more."""

from __future__ import annotations

import copy
import itertools
import json
import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets, drain_policy, node_drain
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.fake_fleet import OLD, FakeCluster, Fate, Killed, Pods
from support.fleet.maintenance_bench import APPROVAL_FOR, APPROVE, COMPONENTS, REBOOT_REQUIRED, RECORD, STATE, WEDGED, Wedged
from support.kube.eviction_stub import pod

HOLDER = {"command": "train", "pid": 7, "device": "/dev/davinci0"}


def test_recovery():
    bench = Wedged()
    outcome = bench.run()
    assert outcome["outcome"] == "done" and outcome["reason"] is None
    bench.assert_recovered()
    assert len(bench.last["recoveries"]) == 1
    assert bench.run(run="run-2")["outcome"] == "answers-again"


@pytest.mark.parametrize("state", ["upgrade-required", "upgrade-failed"])
def test_what_an_upgrade_has_to_say_stays(state):
    bench = Wedged(state=state, labels={"npuops.ascend/maintenance-requested": "true"})
    assert bench.run()["outcome"] == "done"
    bench.assert_recovered(state=state)
    assert bench.labels["npuops.ascend/maintenance-requested"] == "true"


def test_an_upgrade_that_waits_for_approval_still_does():
    bench = Wedged(state="approval-required")
    assert bench.run()["outcome"] == "done"
    assert bench.labels[STATE] == "approval-required" and bench.labels[REBOOT_REQUIRED] == "true"


@pytest.mark.parametrize("cordoned", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("pause", [0, 300])
def test_killed_at_every_call(cordoned, when, pause):
    for at in itertools.count(1):
        bench = Wedged(cordoned=cordoned)
        bench.world.fate = Fate(at, "kill", when)
        try:
            bench.run()
        except Killed:
            pass
        if not bench.world.fate.met:
            break
        bench.world.fate = Fate()
        bench.wait(pause)
        for number in range(2, 6):
            outcome = bench.run(run="run-%d" % number)
            if outcome["outcome"] != "busy":
                break
        # The last calls of the first run may have been the last ones due.
        assert outcome["outcome"] in ("done", "answers-again", "too-soon"), (at, outcome)
        bench.assert_recovered(cordoned=cordoned)
        assert len(bench.last["recoveries"]) == 1
    assert at > 12


@pytest.mark.parametrize("when", ["before", "after"])
def test_api_away_at_every_call(when):
    for at in itertools.count(1):
        bench = Wedged()
        bench.world.fate = Fate(at, "dark", when)
        outcome = bench.run()
        if not bench.world.fate.met:
            break
        assert outcome["outcome"] == "done", (at, outcome)
        bench.assert_recovered()
    assert at > 12


def test_a_false_alarm_ends_without_a_cordon():
    bench = Wedged()
    bench.host.wedged = False
    bench.wait(20)
    assert bench.run()["outcome"] == "answers-again"
    bench.assert_untouched()


def test_chips_that_answer_again_during_the_drain():
    bench = Wedged(pods=Pods(None, npu=5))
    bench.world.clock.at(12, lambda: setattr(bench.host, "wedged", False))
    outcome = bench.run()
    assert outcome["outcome"] == "answers-again"
    assert bench.host.boots == 0 and not bench.cordoned and bench.last["outcome"] == "answers-again"
    assert bench.labels[COMPONENTS] == "enabled" and STATE not in bench.labels
    bench.assert_nothing_left()


def test_a_driver_that_is_ready_on_the_host_is_not_rebooted():
    """The node agent has taken it back; only its report is under way."""
    bench = Wedged()
    bench.host.suspended = False
    assert bench.run()["outcome"] == "answers-again"
    bench.assert_untouched()


def test_a_host_that_was_rebooted_by_hand_is_left_to_the_agent():
    bench = Wedged()
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({COMPONENTS: "paused"}))
    bench.host.go_down()
    bench.wait(60)
    outcome = bench.run()
    assert outcome["outcome"] == "too-soon" and "was rebooted since" in outcome["reason"]
    assert bench.host.boots == 1


# --- approval ---


def test_without_approval_it_waits_and_the_node_serves():
    bench = Wedged()
    outcome = bench.run(auto=False)
    assert outcome["outcome"] == "awaiting-approval"
    assert "kubectl annotate node npu-a npu.openfuyao.com/approve-reboot=true" in outcome["reason"]
    bench.assert_untouched()
    assert STATE not in bench.labels  # that is an upgrade's


def _approve(bench, when):
    """As an API server notes it."""
    entry = {
        "manager": "kubectl",
        "time": maintenance_record.rfc3339(when),
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:" + APPROVE: {}}}},
    }

    def change(node):
        node["metadata"]["annotations"][APPROVE] = "true"
        node["metadata"].setdefault("managedFields", []).append(entry)

    bench.world.touch("npu-a", change)


def test_an_approval_after_the_wedge_counts_and_is_consumed():
    bench = Wedged()
    _approve(bench, bench.world.clock.now())
    assert bench.run(auto=False)["outcome"] == "done"
    bench.assert_recovered()
    assert APPROVE not in bench.annotations and bench.last["approval"]["manager"] == "kubectl"


def test_an_approval_from_before_the_wedge_does_not_count():
    bench = Wedged()
    _approve(bench, bench.world.clock.now() - 30 * 86400)
    outcome = bench.run(auto=False)
    assert outcome["outcome"] == "awaiting-approval" and "older than the problem" in outcome["reason"]
    bench.assert_untouched()
    assert bench.run(auto=False, guards={"old_approvals": True})["outcome"] == "done"
    assert APPROVE not in bench.annotations


def test_an_approval_of_the_recovery_is_used_once():
    bench = Wedged()
    purpose = re.search(r"approval-for=(\S+) --overwrite", bench.run(auto=False)["reason"])[1]
    _approve(bench, bench.world.clock.now())
    bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].update({APPROVAL_FOR: purpose}))
    assert bench.run(auto=False)["outcome"] == "done"
    bench.assert_recovered()
    assert not {APPROVE, APPROVAL_FOR} & set(bench.annotations) and bench.last["approval"]["for"] == purpose


def test_an_automatic_recovery_leaves_the_approval_of_an_upgrade():
    bench = Wedged()
    _approve(bench, bench.world.clock.now() - 30 * 86400)
    assert bench.run(auto=True)["outcome"] == "done"
    bench.assert_recovered()
    assert bench.annotations[APPROVE] == "true"


def test_an_approval_that_is_taken_back_gives_the_node_back():
    bench = Wedged()
    _approve(bench, bench.world.clock.now())
    bench.pods.on_drain = lambda: bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].pop(APPROVE, None))
    assert bench.run(auto=False)["outcome"] == "awaiting-approval"
    assert bench.host.boots == 0 and STATE not in bench.labels
    bench.assert_nothing_left()
    assert bench.labels[COMPONENTS] == "enabled" and bench.labels[REBOOT_REQUIRED] == "true"


# --- a recovery that does not help ---


def test_it_stays_cordoned_and_nobody_else_stops():
    bench = Wedged(incurable=True)
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "did not help" in outcome["reason"] and "npu_smi" in outcome["reason"]
    assert bench.cordoned and bench.labels[COMPONENTS] == "enabled" and STATE not in bench.labels
    assert bench.host.boots == 1 and RECORD not in bench.annotations
    assert bench.world.slots() == {"max": 1, "halted": None, "holders": {}}


def test_the_attempts_of_a_day_end():
    bench = Wedged(incurable=True)
    for number in (1, 2):
        assert bench.run(run="run-%d" % number)["outcome"] == "failed"
        bench.wait(1000)
    outcome = bench.run(run="run-3")
    assert outcome["outcome"] == "given-up" and bench.host.boots == 2
    assert "2 times within a day" in outcome["reason"] and "heal --limit npu-a -e npu_heal_attempts=0" in outcome["reason"]
    bench.wait(86400)
    assert bench.run(run="run-4")["outcome"] == "failed" and bench.host.boots == 3


def test_any_number_of_attempts():
    bench = Wedged(incurable=True)
    for number in range(1, 6):
        assert bench.run(run="run-%d" % number, guards={"attempts": 0})["outcome"] == "failed"
        bench.wait(1000)
    assert bench.host.boots == 5


def test_attempts_are_remembered_through_an_upgrade():
    bench = Wedged()
    assert bench.run()["outcome"] == "done"
    bench.wait(20)
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    assert bench.upgrade(run="run-2")["outcome"] == "done"
    assert len(bench.last["recoveries"]) == 1 and bench.last["reason"] == "upgrade"


def test_the_next_attempt_waits_for_some_uptime():
    bench = Wedged(incurable=True)
    bench.run()
    bench.wait(60)
    outcome = bench.run(run="run-2")
    assert outcome["outcome"] == "too-soon" and "npu_heal_min_uptime" in outcome["reason"]
    assert bench.host.boots == 1
    bench.host.incurable = False
    bench.wait(600)
    assert bench.run(run="run-3")["outcome"] == "done"
    bench.assert_recovered(boots=2)


def test_a_driver_that_does_not_even_load_after_the_reboot():
    """The node agent has nothing to look at then, and says nothing new."""
    bench = Wedged()
    bench.host.broken = {OLD}
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "insmod failed" in outcome["reason"]
    bench.wait(1000)
    assert bench.run(run="run-2")["outcome"] == "failed" and bench.host.boots == 2
    bench.wait(1000)
    assert bench.run(run="run-3")["outcome"] == "given-up"
    bench.host.broken = set()
    bench.host.go_down()
    bench.wait(60)
    assert bench.run(run="run-4", auto=False)["outcome"] == "done"
    bench.assert_recovered(boots=3)


def test_chips_that_answer_after_all_give_the_node_back():
    bench = Wedged(incurable=True)
    bench.run()
    bench.wait(60)
    bench.host.wedged = bench.host.incurable = False
    bench.wait(20)
    assert WEDGED not in bench.annotations and bench.cordoned
    assert bench.run(run="run-2", auto=False)["outcome"] == "done"
    bench.assert_recovered()


def test_killed_while_it_gives_the_node_back():
    for at in itertools.count(1):
        bench = Wedged(incurable=True)
        bench.run()
        bench.wait(60)
        bench.host.wedged = bench.host.incurable = False
        bench.wait(20)
        bench.world.fate = Fate(at, "kill", "after")
        try:
            bench.run(run="run-2")
        except Killed:
            pass
        if not bench.world.fate.met:
            break
        bench.world.fate = Fate()
        bench.wait(300)
        assert bench.run(run="run-3")["outcome"] in ("done", "answers-again")
        bench.assert_recovered()
    assert at > 3


def test_a_host_that_does_not_come_back_holds_no_slot():
    bench = Wedged()
    bench.host.returns = False
    outcome = bench.run(reboot={"timeout": 300})
    assert outcome["outcome"] == "failed" and "did not come back" in outcome["reason"]
    assert bench.world.slots() == {"max": 1, "halted": None, "holders": {}}
    assert bench.cordoned and RECORD not in bench.annotations
    bench.host.boot()
    bench.wait(60)
    assert WEDGED not in bench.annotations
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_recovered()


def test_somebody_elses_cordon_stays_when_it_does_not_help():
    bench = Wedged(incurable=True, cordoned=True)
    assert bench.run()["outcome"] == "failed"
    assert bench.cordoned and "left-cordoned" not in bench.last["times"]


@pytest.mark.parametrize("who", ["recovery", "upgrade"])
def test_a_cordon_of_a_month_later_is_somebody_elses(who):
    """The node was repaired, uncordoned and used since; that it was left cordoned once says nothing of today's cordon."""
    bench = Wedged(incurable=True)
    assert bench.run()["outcome"] == "failed" and bench.cordoned
    bench.host.wedged = bench.host.incurable = False
    bench.wait(60)
    bench.uncordon()
    bench.wait(30 * 86400)
    bench.cordon()
    if who == "recovery":
        assert bench.run(run="run-2", auto=False)["outcome"] != "done"
    else:
        bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
        assert bench.upgrade(run="run-2")["outcome"] == "done"
        assert any("stays cordoned" in sentence for _step, sentence in bench.said)
    assert bench.cordoned and RECORD not in bench.annotations


def test_a_cordon_taken_over_while_it_waits_for_its_turn_is_somebody_elses():
    """Between the record and the cordon."""
    bench = Wedged(incurable=True)
    assert bench.run()["outcome"] == "failed"
    bench.wait(1000)
    bench.host.incurable = False

    def in_between(_path, body):
        if body.get("metadata", {}).get("labels", {}).get(STATE) == "cordon-required":
            bench.world.on_write = lambda *_args: None
            bench.world.clock.at(0, lambda: (bench.uncordon(), bench.cordon()))

    bench.world.on_write = in_between
    simulate = bench.pods.simulate
    bench.pods.simulate = lambda: bench.world.clock.sleep(1) or simulate()
    assert bench.run(run="run-2")["outcome"] == "done"
    assert bench.cordoned


def test_nobody_knows_whose_cordon_it_is():
    """The server does not tell who set it: then no run may remove it."""
    bench = Wedged(incurable=True)
    assert bench.run()["outcome"] == "failed"
    bench.wait(1000)
    bench.host.incurable = False
    bench.world.touch("npu-a", lambda node: node["metadata"].pop("managedFields"))
    assert bench.run(run="run-2")["outcome"] == "done"
    assert bench.cordoned


# --- what hangs ---


def test_processes_that_hold_the_chips_go_down_with_the_host():
    bench = Wedged()
    bench.host.holders = [HOLDER]
    assert bench.run()["outcome"] == "done"
    bench.assert_recovered()
    assert any("reboots although" in sentence and "train" in sentence for _step, sentence in bench.said)


def test_a_host_out_of_reach_is_not_taken_out_of_service():
    bench = Wedged()
    bench.host.reachable = False
    with pytest.raises(HostUnreachable):
        bench.run()
    bench.assert_untouched()


# --- the fleet ---


def _others(bench, wedged, fine):
    for number in range(wedged + fine):
        name = "npu-%d" % number
        bench.world.add(name, state=None)
        if number < wedged:
            since = maintenance_record.rfc3339(bench.world.clock.now())
            told = json.dumps({"since": since, "reason": "npu-smi failed", "probes": 3, "boot_id": "x"})
            bench.world.node(name)["metadata"]["annotations"][WEDGED] = told


def test_a_storm_touches_nothing():
    bench = Wedged()
    _others(bench, wedged=3, fine=6)
    outcome = bench.run()
    assert outcome["outcome"] == "halted" and "4 of 10 NPU nodes wedged within 3600 s" in outcome["reason"]
    bench.assert_untouched()
    assert bench.run(guards={"storm_percent": 40})["outcome"] == "done"


def test_a_slot_of_an_upgrade_is_waited_for():
    bench = Wedged()
    bench.world.add("npu-b")
    slots = {
        "max": 1,
        "halted": None,
        "holders": {"npu-b": {"run": "other", "since": maintenance_record.rfc3339(bench.world.clock.now())}},
    }
    lease = {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": json.dumps(slots)}}}
    bench.world.put("/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases/npu-maintenance", lease)
    over = []

    def beat():
        record = {
            "run": "other",
            "generation": 1,
            "reason": "upgrade",
            "heartbeat": maintenance_record.rfc3339(bench.world.clock.now()),
        }
        if not over:
            bench.world.touch("npu-b", lambda node: node["metadata"]["annotations"].update({RECORD: json.dumps(record)}))
            bench.world.clock.at(10, beat)

    beat()

    def done():
        over.append(True)
        bench.world.touch("npu-b", lambda node: node["metadata"]["annotations"].pop(RECORD))
        lease["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(dict(slots, holders={}))
        bench.world.put("/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases/npu-maintenance", lease)

    bench.world.clock.at(200, done)
    assert bench.run(max_parallel=3)["outcome"] == "done"
    assert any("waits for its turn: all 1 slot taken: npu-b" in sentence for _step, sentence in bench.said)
    bench.assert_recovered()


def call_of_the_reboot(start):
    """Its number among the calls of a run that nothing strikes; the intent is written right before it."""
    bench = Wedged(state="upgrade-required")
    start(bench)
    return 1 + next(number for number, what in enumerate(bench.world.fate.calls) if what.startswith("reboot"))


@pytest.mark.parametrize("before", [1, 0])
def test_a_node_whose_upgrade_may_have_rebooted_the_host_is_left_to_it(before):
    bench = Wedged(state="upgrade-required")
    bench.world.fate = Fate(call_of_the_reboot(Wedged.upgrade) - before, "kill", "after")
    with pytest.raises(Killed):
        bench.upgrade()
    bench.world.fate = Fate()
    bench.wait(300)
    before = bench.record
    assert before["boot_id"]
    outcome = bench.run(run="run-2")
    assert outcome["outcome"] == "busy" and "is in upgrade by the run run-1" in outcome["reason"]
    assert "npuops.ascend.upgrade --limit npu-a" in outcome["reason"] and bench.record == before


def test_an_upgrade_leaves_a_recovery_that_may_have_rebooted_the_host_to_heal():
    bench = Wedged(state="upgrade-required")
    bench.world.fate = Fate(call_of_the_reboot(Wedged.run), "kill", "after")
    with pytest.raises(Killed):
        bench.run()
    bench.world.fate = Fate()
    bench.wait(300)
    assert bench.record["boot_id"]
    outcome = bench.upgrade(run="run-2")
    assert outcome["outcome"] == "busy" and "npuops.ascend.heal --limit npu-a" in outcome["reason"]
    assert bench.run(run="run-3")["outcome"] == "done"
    bench.assert_recovered(state="upgrade-required")


def test_a_node_to_be_left_out_is():
    bench = Wedged(labels={"npuops.ascend/skip": "true"})
    assert bench.run()["outcome"] == "deferred"
    bench.assert_untouched()


def test_a_job_that_hangs_on_the_chips_keeps_no_recovery():
    """Upgrades may wait for it without a limit; a recovery is there because it hangs."""
    bench = Wedged()
    clock, job = bench.world.clock, pod("train-0", node="npu-a", npus=8, labels={"job": "yes"})

    class Cluster(FakeCluster):
        def list(self, path, label_selector=None, field_selector=None):
            if path == "/api/v1/pods":
                return [copy.deepcopy(job)] if bench.host.boots == 0 else []
            return [] if path == disruption_budgets.PATH else super().list(path, label_selector)

        def each(self, path, label_selector=None, field_selector=None):
            return iter(self.list(path, label_selector, field_selector))

        def request(self, method, path, body=None, label_selector=None, dry_run=None, **more):
            if path.endswith("/eviction"):
                if not dry_run:
                    job["metadata"]["deletionTimestamp"] = "2023-11-14T22:14:00Z"
                return {}
            if method == "get":
                return {"metadata": {}, "items": self.list(path, label_selector)}
            return super().request(method, path, body, label_selector, **more)

    without = {"timeout": 0, "force": True}
    policy = drain_policy.DrainPolicy.of({"selector": "job=yes", "timeout": 0}, without, without).of_recovery()
    bench.cluster = Cluster
    bench.pods = lambda cluster, beat, say: node_drain.Drain(cluster, "npu-a", policy, beat, say, clock, leave_stuck=True)

    def too_late():
        raise AssertionError("it still waits after an hour: %s" % bench.record)

    clock.at(3600, too_late)
    assert bench.run()["outcome"] == "done"
    bench.assert_recovered()
