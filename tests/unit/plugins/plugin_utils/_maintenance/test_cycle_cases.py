# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to one node's maintenance when people, hosts, pods and other runs do what they do."""

from __future__ import annotations

import json
import types

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.smoke_pod import SmokeFailed
from ansible_collections.npuops.ascend.plugins.plugin_utils._maintenance.host_side import HostUnreachable
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.fake_fleet import CHIPS, EVENTS, LEASE, NEW, NODES, OLD, RESOURCE, FakeCluster, Fate, Killed, Pods, merge
from support.fleet.maintenance_bench import (
    APPROVAL_FOR,
    APPROVE,
    COMPONENTS,
    LAST,
    REBOOT_REQUIRED,
    RECORD,
    STATE,
    TARGET,
    Bench,
)

HOLDER = {"pid": 4711, "command": "python train.py", "device": "/dev/davinci0"}


def blocker(text):
    return types.SimpleNamespace(text=text, may_give_way=False, result=lambda: {"kind": "budget", "text": text})


def assert_given_back(bench, outcome, state="upgrade-required", cordoned=False):
    assert bench.host.boots == 0
    assert bench.labels[STATE] == state and bench.labels[COMPONENTS] == "enabled"
    assert RECORD not in bench.annotations and bench.host.next is None
    assert bench.cordoned is cordoned
    assert bench.world.slots()["holders"] == {} and not bench.world.slots()["halted"]
    assert bench.last["outcome"] == outcome


# --- cordons ---


def test_a_cordon_that_was_there_stays():
    bench = Bench(cordoned=True)
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded(cordoned=True)
    assert bench.last["unschedulable"] is True


def test_a_node_that_somebody_wants_cordoned_stays():
    bench = Bench(labels={"npuops.ascend/keep-cordoned": "true"})
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded(cordoned=True)


def test_uncordoned_in_the_middle_of_the_drain():
    bench = Bench(pods=Pods(None, npu=2, others=1))
    bench.world.clock.at(8, bench.uncordon)
    assert bench.run()["outcome"] == "done"
    assert any("uncordoned" in sentence for _step, sentence in bench.said)
    bench.assert_upgraded()


def test_uncordoned_before_the_intent_by_who_had_cordoned_it():
    """The last cordon is then ours, and is removed at the end."""
    bench = Bench(cordoned=True, pods=Pods(None, npu=2, others=1))
    bench.world.clock.at(8, bench.uncordon)
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded(cordoned=False)


def test_uncordoned_in_the_instant_before_the_intent():
    bench = Bench()

    def on_write(path, body):
        record = body["metadata"].get("annotations", {}).get(RECORD)
        if path == NODES + "/npu-a" and record and json.loads(record)["boot_id"] and not bench.said.count("gone"):
            bench.said.append("gone")
            bench.uncordon()

    bench.world.on_write = on_write
    assert bench.run()["outcome"] == "done"
    assert ("reboot-required", "the node was uncordoned; starting over") in bench.said
    bench.assert_upgraded()


# --- what keeps a node from being emptied ---


def test_blocked_before_the_cordon():
    bench = Bench(
        pods=Pods(None, blockers=[blocker("the pod train/web-0 (StatefulSet train/web) cannot be evicted: budget train/web")])
    )
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and "StatefulSet train/web" in outcome["reason"]
    assert outcome["blockers"] == [{"kind": "budget", "text": bench.pods.blockers[0].text}]
    assert_given_back(bench, "deferred")
    assert not any("spec" in call for call in bench.world.fate.calls) and (bench.pods.npu, bench.pods.others) == (1, 1)
    bench.pods.blockers = []
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()


@pytest.mark.parametrize("cordoned", [False, True])
def test_blocked_in_the_drain(cordoned):
    def refuse():
        raise pod_blocker.Blocked("npu-a is not drained after 300 s: train/web-0", [blocker("train/web-0")])

    bench = Bench(pods=Pods(None, on_drain=refuse), cordoned=cordoned, annotations={APPROVE: "true"})
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and outcome["step"] == "drain-required"
    assert [entry["text"] for entry in outcome["blockers"]] == ["train/web-0"]
    assert bench.annotations[APPROVE] == "true"
    assert_given_back(bench, "deferred", cordoned=cordoned)


def test_a_process_holds_a_chip():
    bench = Bench()
    bench.host.holders = [HOLDER]
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and "python train.py (pid 4711, /dev/davinci0)" in outcome["reason"]
    assert_given_back(bench, "deferred")


def test_a_process_comes_after_the_intent():
    """The host refuses; the approval was for a reboot that did not take place, and is there again."""
    bench = Bench(annotations={APPROVE: "true"})

    def on_write(path, body):
        record = body["metadata"].get("annotations", {}).get(RECORD)
        if record and json.loads(record)["boot_id"]:
            bench.host.holders = [HOLDER]

    bench.world.on_write = on_write
    assert bench.run(auto=False)["outcome"] == "deferred"
    assert bench.annotations[APPROVE] == "true"
    assert_given_back(bench, "deferred")


def test_the_host_refuses_the_reboot():
    bench = Bench()

    def refuse(*_arguments):
        bench.host.next = NEW
        raise NpuError("Release is damaged: stage it again")

    bench.host.rebooted = refuse
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "stage it again" in outcome["reason"]
    assert_given_back(bench, "failed")


# --- approval ---


def test_not_approved():
    bench, version = Bench(), TARGET["version"]
    outcome = bench.run(auto=False)
    assert outcome["outcome"] == "awaiting-approval"
    command = f"kubectl annotate node npu-a npu.openfuyao.com/approve-reboot=true npuops.ascend/approval-for={version} --overwrite"
    assert command in outcome["reason"] and bench.annotations[APPROVAL_FOR] == version
    assert bench.labels[STATE] == "approval-required" and bench.labels[REBOOT_REQUIRED] == "true"
    assert not bench.cordoned and RECORD not in bench.annotations and bench.world.slots() is None
    bench.run(run="run-2", auto=False)
    (event,) = [item for path, item in bench.world.objects.items() if path.startswith(EVENTS)]
    assert event["reason"] == "RebootRequired" and event["message"].startswith("reason=upgrade ")
    assert event["count"] == 2 and event["involvedObject"]["name"] == "npu-a"
    bench.annotate(approve="true")
    assert bench.run(run="run-3", auto=False)["outcome"] == "done"
    assert bench.last["approval"] == {"time": None, "manager": None, "by": None, "for": version, "job": None}
    bench.assert_upgraded()
    assert APPROVAL_FOR not in bench.annotations


def test_an_approval_belongs_to_the_version_it_was_given_for():
    bench, version = Bench(annotations={APPROVE: "true", APPROVAL_FOR: "1.2.3"}), TARGET["version"]
    outcome = bench.run(auto=False)
    assert outcome["outcome"] == "awaiting-approval"
    assert any(
        f"Its approval was given for the driver 1.2.3, not for the driver {version}: kubectl" in text for _step, text in bench.said
    )
    # It does not count for the next run either, which finds the right version there.
    assert bench.annotations[APPROVAL_FOR] == version and APPROVE not in bench.annotations
    assert bench.run(run="run-2", auto=False)["outcome"] == "awaiting-approval"
    bench.annotate(approve="true")
    assert bench.run(run="run-3", auto=False)["outcome"] == "done"


def test_a_used_approval_belongs_to_its_version_too():
    """The host booted without trying the driver, and the run died: the record has the approval, and its reboot is not certain."""
    bench = Bench(annotations={APPROVE: "true"})
    bench.run(until="reboot", auto=False)
    used = dict(bench.record, approval={"time": None, "manager": None, "by": "alice", "for": TARGET["version"]})
    gone = {APPROVE: None, APPROVAL_FOR: None}
    bench.world.touch("npu-a", lambda node: merge(node, {"metadata": {"annotations": {RECORD: json.dumps(used), **gone}}}))
    other = dict(TARGET, version="25.6.0", release=NEW.replace("25.5.0", "25.6.0"))
    outcome = bench.run(run="run-2", auto=False, order={"target": other})
    assert outcome["outcome"] == "awaiting-approval" and "approval-for=25.6.0" in outcome["reason"]
    assert APPROVE not in bench.annotations and bench.annotations[APPROVAL_FOR] == "25.6.0"
    assert bench.host.boot_id == "boot-npu-a-0"


@pytest.mark.parametrize("broken", [False, True])
def test_what_is_not_due_is_asked_for_nothing(broken):
    """A run labels a node whose maintenance another one ends; so was the annotation of a node that is asked for no other version."""
    bench = Bench()
    bench.host.broken = {NEW} if broken else set()
    annotations = {"metadata": {"annotations": {APPROVAL_FOR: TARGET["version"]}}}
    bench.world.clock.at(60, lambda: bench.world.touch("npu-a", lambda node: merge(node, annotations)))
    assert bench.run()["outcome"] == ("failed" if broken else "done")
    assert APPROVAL_FOR not in bench.annotations


def test_what_is_due_still_is_asked_for_it():
    """A person excludes the node for now. An approval that comes then is for the same version."""
    bench = Bench(annotations={APPROVAL_FOR: TARGET["version"]})
    bench.world.clock.at(
        8, lambda: bench.world.touch("npu-a", lambda node: merge(node, {"metadata": {"labels": {"npuops.ascend/skip": "true"}}}))
    )
    assert bench.run()["outcome"] == "deferred"
    assert bench.labels[STATE] == "upgrade-required" and bench.annotations[APPROVAL_FOR] == TARGET["version"]


def test_an_approval_for_another_version_in_the_middle():
    bench = Bench(annotations={APPROVE: "true"})
    bench.world.clock.at(
        8, lambda: bench.world.touch("npu-a", lambda node: node["metadata"]["annotations"].update({APPROVAL_FOR: "1.2.3"}))
    )
    assert bench.run(auto=False)["outcome"] == "awaiting-approval"
    assert_given_back(bench, "awaiting-approval", state="approval-required")


def test_components_start_while_the_driver_loads():
    """An init container of theirs waits for it."""
    bench, loads = Bench(), []
    view, before = bench.host.view, bench.host.boot_id

    def slow(wait=None, chips=False, ports=False):
        found = view(wait, chips, ports)
        if found["boot_id"] != before:
            loads.append(bench.world.clock.monotonic())
            if loads[-1] - loads[0] < 30:
                bench.wait(wait or 0)
                assert len(loads) == 1 or bench.labels[COMPONENTS] == "enabled"
                return dict(found, ready=None, unit="activating")
        return found

    bench.host.view = slow
    assert bench.run()["outcome"] == "done"
    assert loads[-1] - loads[0] >= 30 and bench.labels[COMPONENTS] == "enabled"


def test_approved_while_waiting():
    bench = Bench()
    bench.world.clock.at(100, lambda: bench.annotate(approve="true"))
    assert bench.run(auto=False, approval_wait=200)["outcome"] == "done"
    bench.assert_upgraded()
    # The wait does not look like a hang.
    still = [sentence for _step, sentence in bench.said if sentence.startswith("still: waits 200 s for its approval")]
    assert len(still) == 1


@pytest.mark.parametrize("cordoned", [False, True])
def test_approval_withdrawn(cordoned):
    bench = Bench(annotations={APPROVE: "true"}, cordoned=cordoned)
    bench.world.clock.at(8, lambda: bench.annotate(approve=None))
    outcome = bench.run(auto=False)
    assert outcome["outcome"] == "awaiting-approval"
    assert bench.labels[REBOOT_REQUIRED] == "true"
    assert any(path.startswith(EVENTS) for path in bench.world.objects)
    assert_given_back(bench, "awaiting-approval", state="approval-required", cordoned=cordoned)


def test_approval_withdrawn_in_the_instant_of_the_intent():
    bench = Bench(annotations={APPROVE: "true"})

    def on_write(path, body):
        record = body["metadata"].get("annotations", {}).get(RECORD)
        if record and json.loads(record)["boot_id"] and APPROVE in bench.annotations:
            bench.annotate(approve=None)

    bench.world.on_write = on_write
    assert bench.run(auto=False)["outcome"] == "awaiting-approval"
    assert_given_back(bench, "awaiting-approval", state="approval-required")


def test_approval_tells_who_and_when_and_grows_old():
    bench = Bench(annotations={APPROVE: "true", "npu.openfuyao.com/approved-by": "alice"})
    given = maintenance_record.rfc3339(bench.world.clock.now() - 1000)
    owned = {"f:metadata": {"f:annotations": {"f:" + APPROVE: {}}}}
    fields = [{"manager": "kubectl-annotate", "time": given, "fieldsV1": owned}, {"manager": "kubelet", "time": given}]
    bench.world.touch("npu-a", lambda node: node["metadata"].update(managedFields=fields))
    outcome = bench.run(auto=False, approval_max_age=900)
    assert outcome["outcome"] == "awaiting-approval" and "is older than 900 s" in outcome["reason"]
    assert bench.run(run="run-2", auto=False, approval_max_age=1100, order={"job": {"id": "17"}})["outcome"] == "done"
    assert bench.last["approval"] == {
        "time": given,
        "manager": "kubectl-annotate",
        "by": "alice",
        "for": TARGET["version"],
        "job": "17",
    }
    assert "npu.openfuyao.com/approved-by" not in bench.annotations


def test_a_wedge_keeps_its_label():
    bench = Bench(annotations={"npuops.ascend/wedged": "{}"}, labels={REBOOT_REQUIRED: "true"})
    bench.run()
    assert bench.labels[REBOOT_REQUIRED] == "true"


# --- the host ---


def test_power_loss_between_intent_and_call():
    bench = Bench()
    bench.host.plug_pulled = True
    assert bench.run()["outcome"] == "done"
    assert bench.last["attempt"] == 2
    bench.assert_upgraded(boots=2)


@pytest.mark.parametrize("late", [False, True])
def test_a_reboot_that_was_queued_although_the_call_failed(late):
    """The node must not be given back: it reboots. Nor may its approval count for another reboot."""
    bench = Bench(annotations={APPROVE: "true"})
    rebooted = bench.host.rebooted

    def failing(*arguments):
        bench.host.rebooted = rebooted
        rebooted(*arguments)
        if late:
            bench.wait(40)  # it is back
        raise NpuError("The reboot could not be queued: systemd-run: Unit npuops-reboot.service was already loaded")

    bench.host.rebooted = failing
    assert bench.run(auto=False)["outcome"] == "done"
    bench.assert_upgraded()
    assert APPROVE not in bench.annotations and bench.last["attempt"] == 1


def test_the_trial_ended_by_itself():
    """It hung on the new driver, and an administrator power-cycled it: no other reboot."""
    bench = Bench()
    bench.host.broken = {NEW}
    kubelet = bench.host._kubelet
    bench.host._kubelet = lambda: (setattr(bench.host, "_kubelet", kubelet), bench.host.go_down())
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "ended by itself" in outcome["reason"]
    bench.assert_rolled_back(boots=2)


def test_an_old_trial_is_not_taken_for_this_one():
    bench = Bench()
    bench.host.broken = {NEW}
    assert bench.run()["outcome"] == "failed"
    bench.host.broken = set()
    bench.host.tries = {}
    bench.host.plug_pulled = True
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    slots = json.loads(bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"])
    bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(dict(slots, halted=None))
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded(boots=4)


def test_never_tried():
    bench = Bench()
    bench.host.boot_tries = 0
    boot = bench.host.boot
    bench.host.boot = lambda: (setattr(bench.host, "next", None), boot())
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "booted 3 times without trying" in outcome["reason"]
    bench.assert_rolled_back(boots=3)


def test_does_not_return():
    bench = Bench()
    bench.host.returns = False
    outcome = bench.run(reboot={"timeout": 600})
    assert outcome["outcome"] == "halted" and outcome["step"] == "reboot-required"
    assert "did not come back within 600 s" in outcome["reason"] and "cannot be reached" in outcome["reason"]
    assert bench.cordoned and bench.labels[STATE] == "reboot-required" and "come back" in bench.record["failure"]
    assert list(bench.world.slots()["holders"]) == ["npu-a"]
    assert "did not come back" in bench.world.slots()["halted"]["why"]
    # An administrator repairs it: the next run finishes what is under way, in spite of the halt.
    bench.host.returns = True
    bench.host.boot()
    bench.wait(200)
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()
    assert not bench.world.slots()["halted"], "what it was because of is over"


def test_no_limit_for_the_reboot():
    """0, as for the other limits."""
    bench = Bench()
    bench.host.returns = False

    def repaired():
        bench.host.returns = True
        bench.host.boot()

    begun = bench.world.clock.now()
    bench.world.clock.at(24 * 3600, repaired)
    assert bench.run(reboot={"timeout": 0})["outcome"] == "done"
    bench.assert_upgraded()
    assert bench.world.clock.now() - begun > 24 * 3600


def test_why_it_did_not_return_is_told_when_it_went_back():
    """It hung on the new driver; an administrator pulled the plug, which ends the trial."""
    bench = Bench()
    bench.host.returns = False
    bench.run(reboot={"timeout": 600})
    bench.host.returns = True
    for _boot in range(2):
        bench.host.boot()
    bench.wait(200)
    assert bench.run(run="run-2")["outcome"] == "failed"
    assert bench.last["outcome"] == "rolled-back"
    assert "did not come back within 600 s" in bench.last["failure"]
    assert "then the trial of %s ended by itself" % NEW in bench.last["failure"]


def test_the_reboot_call_gets_lost():
    """The connection ended before the host had read it: it is asked again."""
    bench = Bench()
    rebooted, calls = bench.host.rebooted, []

    def lose(*arguments):
        calls.append(bench.world.clock.now())
        if len(calls) == 1:
            raise HostUnreachable("Broken pipe")
        return rebooted(*arguments)

    bench.host.rebooted = lose
    assert bench.run(reboot={"timeout": 600})["outcome"] == "done"
    assert len(calls) == 2 and 60 <= calls[1] - calls[0] < 70
    bench.assert_upgraded()


def test_the_node_is_back_but_not_on_this_host():
    """Another machine registered under the name meanwhile; only when host and Node say the same does it go on."""
    bench = Bench()
    bench.host.BOOT_SECONDS = 10.0
    bench.host._kubelet = lambda: None

    def another(boot_id):
        def change(node):
            node["status"]["nodeInfo"]["bootID"] = boot_id or bench.host.boot_id
            node["status"]["conditions"][0]["status"] = "True"

        return lambda: bench.world.touch("npu-a", change)

    bench.world.clock.at(60, another("boot-elsewhere"))
    bench.world.clock.at(200, another(None))
    assert bench.run(until="confirm")["outcome"] == "under-way"
    assert bench.world.clock.now() - 1_700_000_000 >= 200


def test_wrong_alias():
    bench = Bench()
    bench.host.boot_id = "another-host"
    with pytest.raises(NpuError, match="is not the node npu-a of the cluster: its boot ID is another-host"):
        bench.run()
    assert not bench.cordoned and RECORD not in bench.annotations and bench.world.slots() is None


def test_ssh_lost_before_the_reboot():
    bench = Bench()
    bench.world.clock.at(3, lambda: setattr(bench.host, "reachable", False))
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and "did not answer for 300 s" in outcome["reason"]
    assert_given_back(bench, "deferred")


def test_ssh_lost_for_a_while_before_the_reboot():
    bench = Bench()
    bench.world.clock.at(3, lambda: setattr(bench.host, "reachable", False))
    bench.world.clock.at(200, lambda: setattr(bench.host, "reachable", True))
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()


def test_ssh_lost_after_the_reboot():
    """Neither forth nor back is certain: nothing is given back, and no other node begins."""
    bench = Bench()
    validate = bench.host.validate

    def lose(version):
        bench.host.reachable = False
        return validate(version)

    bench.host.validate = lose
    outcome = bench.run()
    assert outcome["outcome"] == "halted" and "did not answer for 300 s" in outcome["reason"]
    assert bench.cordoned and bench.labels[STATE] == "validation-required"
    assert bench.world.slots()["holders"] and bench.world.slots()["halted"]
    bench.host.validate, bench.host.reachable = validate, True
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()


def test_another_run_has_rebooted_the_host():
    bench = Bench()
    bench.run(until="reboot")
    bench.host.generation = 99
    outcome = bench.run()
    assert outcome["outcome"] == "busy" and "later run" in outcome["reason"]
    assert bench.host.boots == 0 and bench.cordoned and bench.world.slots()["holders"]


# --- after the reboot ---


def test_no_way_back():
    bench = Bench()
    bench.host.broken, bench.host.good = {NEW}, None
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "no good release" in outcome["reason"]
    assert bench.cordoned and bench.labels[STATE] == "upgrade-failed" and bench.labels[COMPONENTS] == "paused"
    assert RECORD not in bench.annotations and bench.world.slots()["halted"]


def test_neither_driver_works_and_then_one_does():
    """The cordon that stays is ours, so the retry that succeeds gives it back."""
    bench = Bench()
    bench.host.broken = {NEW, OLD}
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "does not work either" in outcome["reason"]
    assert bench.cordoned and bench.labels[COMPONENTS] == "paused" and bench.last["outcome"] == "failed"
    again = bench.run(run="run-2")
    assert again["outcome"] == "failed" and "npu_upgrade_retry=true" in again["reason"]
    bench.host.broken = set()
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    assert bench.run(run="run-3")["outcome"] == "halted"
    bench.world.objects.pop(LEASE)
    assert bench.run(run="run-3")["outcome"] == "done"
    assert not bench.cordoned and bench.host.good == NEW and STATE not in bench.labels
    assert bench.labels[COMPONENTS] == "enabled"


def test_a_node_that_is_out_of_service_is_given_back_as_that():
    """Its retry is deferred: a node with a broken driver must not serve."""
    bench = Bench()
    bench.host.broken = {NEW, OLD}
    bench.run()
    bench.world.objects.pop(LEASE)
    for run in ("run-2", "run-3"):
        bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
        bench.host.holders = [HOLDER]
        assert bench.run(run=run)["outcome"] == "deferred"
        assert bench.cordoned and bench.labels[COMPONENTS] == "paused" and RECORD not in bench.annotations
    bench.host.holders, bench.host.broken = [], set()
    assert bench.run(run="run-4")["outcome"] == "done"
    assert not bench.cordoned and bench.labels[COMPONENTS] == "enabled"
    # And a later cordon is another client's.
    bench.cordon()
    bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update({STATE: "upgrade-required"}))
    assert bench.run(run="run-5")["outcome"] == "done" and bench.cordoned


def test_components_that_somebody_paused_stay_paused():
    bench = Bench(labels={COMPONENTS: "paused"})
    assert bench.run()["outcome"] == "done"
    assert bench.labels[COMPONENTS] == "paused"


def test_chips_missing():
    bench = Bench()
    bench.world.touch("npu-a", lambda node: node["status"]["allocatable"].update({RESOURCE: "7"}))
    outcome = bench.run()
    # Back on the old driver they are also missing.
    assert outcome["outcome"] == "failed" and "offers 7 of 8 huawei.com/Ascend910" in outcome["reason"]
    assert bench.cordoned and bench.labels[STATE] == "upgrade-failed" and bench.host.driver == OLD


@pytest.mark.parametrize(("offers", "outcome"), [(4 * CHIPS, "done"), (CHIPS, "failed")])
def test_chips_that_are_shared(offers, outcome):
    """The device plugin on the node offers each of them four times."""
    bench = Bench()
    owner = {"kind": "DaemonSet", "name": "ascend-device-plugin310p-daemonset", "controller": True}
    metadata = {"name": "plugin", "namespace": "npu-operator", "ownerReferences": [owner]}
    spec = {"nodeName": "npu-a", "containers": [{"args": ["exec device-plugin -shareDevCount=4"]}]}
    bench.world.put("/api/v1/pods/plugin", {"metadata": metadata, "spec": spec})
    bench.world.touch("npu-a", lambda node: node["status"]["allocatable"].update({RESOURCE: str(offers)}))
    found = bench.run()
    assert found["outcome"] == outcome
    assert outcome == "done" or "offers %d of %d huawei.com/Ascend910" % (CHIPS, 4 * CHIPS) in found["reason"]


@pytest.mark.parametrize(("offers", "outcome"), [(4, "done"), (3, "failed")])
def test_virtual_npus(offers, outcome):
    """A node comes back when it offers its whole chips and its virtual NPUs."""
    bench, halves = Bench(), RESOURCE + "-10c.3cpu.32g"
    order = {"offers": {RESOURCE: CHIPS - 2, halves: 4}}
    bench.world.touch("npu-a", lambda node: node["status"]["allocatable"].update({RESOURCE: str(CHIPS - 2), halves: str(offers)}))
    found = bench.run(order=order)
    assert found["outcome"] == outcome
    assert outcome == "done" or "offers 3 of 4 %s after" % halves in found["reason"]


class Smoke:
    def __init__(self, why=None):
        self.why, self.runs, self.removed = why, 0, 0

    def __call__(self, *_ports):
        return self

    def run(self):
        self.runs += 1
        if self.why:
            raise SmokeFailed(self.why)

    def remove(self):
        self.removed += 1


def test_smoke_pod():
    bench = Bench(smoke=Smoke())
    assert bench.run(until="confirm")["step"] == "validation-required"
    assert bench.host.good == OLD and bench.smoke.runs == 1 and bench.cordoned
    assert bench.run()["outcome"] == "done" and bench.smoke.runs == 1
    bench.assert_upgraded()


@pytest.mark.parametrize(
    "line", ["dcmi model initialized failed, because the device is used. ret is -8020", "rtSetDevice failed, drvRet=87"]
)
def test_a_smoke_pod_that_gets_no_chip_names_who_has_it(line):
    bench = Bench(smoke=Smoke("the smoke pod default/smoke failed: its container main ended with 172, its last line: " + line))
    validation, told = (
        bench.host.validation,
        "The driver reserves /dev/davinci0 for process 7 (/bin/bash -l)\x1b[31m, outside of Kubernetes.",
    )
    bench.host.validation = lambda version: dict(validation(version), reserved=[told])
    outcome = bench.run()
    assert outcome["outcome"] == "failed"
    assert (
        "; The driver reserves /dev/davinci0 for process 7 (/bin/bash -l)?[31m, outside of Kubernetes. It is back"
        in outcome["reason"]
    )


def test_a_smoke_pod_that_fails_for_another_reason_names_nobody():
    bench = Bench(smoke=Smoke("the smoke pod default/smoke failed: exit 87"))
    validation = bench.host.validation
    bench.host.validation = lambda version: dict(validation(version), reserved=["The driver reserves /dev/davinci0."])
    assert "reserves" not in bench.run()["reason"]


def test_smoke_pod_fails():
    bench = Bench(smoke=Smoke("the smoke pod default/smoke failed: exit 1"))
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "the smoke pod default/smoke failed" in outcome["reason"]
    assert bench.smoke.removed == 1
    bench.assert_rolled_back()


def test_power_cycled_between_validation_and_confirmation():
    bench = Bench()
    bench.run(until="confirm")
    bench.host.go_down()
    ready = []

    def on_write(path, body):
        if "labels" in body["metadata"] and body["metadata"]["labels"].get(STATE) == "upgrade-failed":
            node = bench.node
            ready.append((node["status"]["conditions"][0]["status"], node["status"]["nodeInfo"]["bootID"]))

    bench.world.on_write = on_write
    outcome = bench.run()
    assert ready == [("True", bench.host.boot_id)]
    assert outcome["outcome"] == "failed" and "rebooted again" in outcome["reason"]
    bench.assert_rolled_back(boots=2)


def test_the_same_version_on_request():
    bench = Bench(labels={"npuops.ascend/maintenance-requested": "true"})
    same = {"version": "25.2.0", "release": OLD, "digest": None}
    assert bench.run(order={"target": same})["outcome"] == "done"
    assert bench.host.boots == 1 and bench.host.driver == OLD
    assert "npuops.ascend/maintenance-requested" not in bench.labels and STATE not in bench.labels


def test_only_as_many_failures_as_allowed():
    bench = Bench()
    bench.host.broken = {NEW}
    assert bench.run(max_failures=2)["outcome"] == "failed"
    assert bench.world.slots()["halted"] is None
    last = json.dumps({"run": "run-1", "generation": 1})
    bench = Bench()
    bench.world.add("npu-b", state="upgrade-failed", annotations={LAST: last})
    bench.host.broken = {NEW}
    bench.run(max_failures=2)
    assert bench.world.slots()["halted"]["who"] == "the run run-1"


# --- people and other runs ---


def test_node_deleted_before_the_reboot():
    bench = Bench(pods=Pods(None, npu=5))
    bench.world.clock.at(6, lambda: bench.world.objects.pop(NODES + "/npu-a"))
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "it was deleted" in outcome["reason"]
    assert bench.world.slots()["holders"] == {} and bench.host.boots == 0


def test_node_made_anew_before_the_reboot():
    bench = Bench(pods=Pods(None, npu=5))

    def anew():
        bench.world.objects.pop(NODES + "/npu-a")
        bench.world.register("npu-a")

    bench.world.clock.at(6, anew)
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert bench.last["uid"] == bench.node["metadata"]["uid"]


def test_node_deleted_during_the_reboot():
    """The kubelet registers it again; labels and cordon come back with the record."""
    bench = Bench(labels={"accelerator": "huawei-Ascend910"})
    bench.world.clock.at(20, lambda: bench.world.objects.pop(NODES + "/npu-a"))
    assert bench.run(until="confirm")["outcome"] == "under-way"
    assert bench.cordoned and bench.record["uid"] == bench.node["metadata"]["uid"] == "uid-2"
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert bench.labels["accelerator"] == "huawei-Ascend910"


def test_the_record_is_taken_away():
    bench = Bench(pods=Pods(None, npu=9))
    bench.world.clock.at(6, lambda: bench.annotate(record=None))
    outcome = bench.run()
    assert outcome["outcome"] == "busy" and "is missing" in outcome["reason"]
    assert bench.cordoned and bench.world.slots()["holders"] and bench.host.boots == 0


def test_another_run_takes_over_in_the_middle():
    bench = Bench(pods=Pods(None, npu=9))

    def take_over():
        record = dict(bench.record, run="run-2", generation=2)
        bench.annotate(record=json.dumps(record))

    bench.world.clock.at(6, take_over)
    before = len(bench.world.fate.calls)
    outcome = bench.run()
    assert outcome["outcome"] == "busy" and "run-2" in outcome["reason"] and before == 0
    assert bench.record["run"] == "run-2" and bench.cordoned and bench.world.slots()["holders"]


def test_a_living_run_is_left_alone():
    bench = Bench()
    bench.run(until="reboot")
    record = bench.record

    def beat():
        record["heartbeat"] = maintenance_record.rfc3339(bench.world.clock.now())
        bench.annotate(record=maintenance_record.encode(record))
        bench.world.clock.at(10, beat)

    bench.world.clock.at(10, beat)
    outcome = bench.run(run="run-2")
    assert outcome["outcome"] == "busy" and "run-1" in outcome["reason"]
    assert bench.record["run"] == "run-1" and bench.world.slots()["holders"]["npu-a"]["run"] == "run-1"


def test_a_dead_run_is_taken_over_when_it_has_been_silent_long_enough():
    bench = Bench()
    bench.run(until="reboot")
    generation, began = bench.record["generation"], bench.world.clock.now()
    outcome = bench.run(run="run-2", until="reboot")
    assert outcome["outcome"] == "under-way" and bench.world.clock.now() - began >= 90
    assert bench.record["run"] == "run-2" and bench.record["generation"] == generation + 1
    assert bench.world.slots()["holders"]["npu-a"]["run"] == "run-2"
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()


@pytest.mark.parametrize("ahead", [-7200, -120, 120, 7200])
def test_the_clocks_of_two_controllers_do_not_agree(ahead):
    """A run that lives is not taken over, and a dead one is waited for no longer than ever."""
    bench = Bench()
    bench.run(until="reboot")
    clock, began = bench.world.clock, bench.world.clock.now()

    def beat():
        bench.annotate(record=json.dumps(dict(bench.record, heartbeat=maintenance_record.rfc3339(clock.now() + ahead))))
        if clock.now() - began < 80:
            clock.at(10, beat)

    beat()
    outcome = bench.run(run="run-2", until="reboot")
    assert outcome["outcome"] == "busy" and bench.record["run"] == "run-1"
    clock.sleep(100)
    began = clock.now()
    assert bench.run(run="run-3", until="reboot")["outcome"] == "under-way"
    assert clock.now() - began == 90
    assert bench.run(run="run-3")["outcome"] == "done" and bench.host.boots == 1


def test_what_a_dead_run_wanted_counts_only_after_the_intent():
    bench = Bench()
    bench.run(until="reboot", order={"target": {"version": "25.3.0", "release": "25.3.0-k-c", "digest": None}})
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()
    bench = Bench()
    bench.world.fate = Fate(1, "kill", "before")
    calls = []
    bench.world.mutate = _kill_at_reboot(bench, calls)
    with pytest.raises(Killed):
        bench.run()
    del bench.world.mutate
    bench.world.fate = Fate()
    other = {"version": "26.0.0", "release": "26.0.0-k-d", "digest": None}
    assert bench.run(run="run-2", order={"target": other})["outcome"] == "done"
    # What the dead run wanted first, for it may be there already; and done is what this one wants.
    assert (bench.host.tries, bench.host.boots) == ({NEW: 1, "26.0.0-k-d": 1}, 2)
    assert (bench.host.driver, bench.host.good, bench.host.previous) == ("26.0.0-k-d", "26.0.0-k-d", NEW)
    bench.assert_nothing_left()


def _kill_at_reboot(bench, calls):
    def mutate(what, effect, api):
        if what.startswith("reboot"):
            raise Killed()
        calls.append(what)
        return effect()

    return mutate


def test_an_unreadable_record():
    bench = Bench(annotations={RECORD: "{"})
    with pytest.raises(NpuError, match="kubectl annotate node npu-a npuops.ascend/maintenance-"):
        bench.run()


@pytest.mark.parametrize("seconds", [45, 500])
def test_api_away_longer_than_a_heartbeat(seconds):
    bench = Bench()
    bench.world.fate = Fate(6, "dark", "after", dark=seconds)
    assert bench.run()["outcome"] == "done"
    assert sum("answers again" in sentence for _step, sentence in bench.said) == 1
    bench.assert_upgraded()


def test_api_away_for_good():
    bench = Bench()
    bench.world.fate = Fate(6, "dark", "before", dark=10_000)
    with pytest.raises(NpuError, match="cannot be reached.*run again to continue it"):
        bench.run()
    bench.wait(10_000)
    assert bench.run(run="run-2")["outcome"] == "done"
    bench.assert_upgraded()


def test_a_person_who_cordons_anew_in_the_middle_keeps_the_cordon():
    """After the reboot the maintenance does not start over because of that; but the cordon is theirs now."""
    bench = Bench()
    assert bench.run(until="confirm")["outcome"] == "under-way" and bench.cordoned
    bench.uncordon()
    bench.cordon()
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded(cordoned=True)
    assert any("stays cordoned" in sentence for _step, sentence in bench.said)


SIGN = "npuops.ascend/parked-by.run-1"


def signs_of(bench, **run):
    """The signs of life that a run shows on the Lease: [(when, sign)]."""
    seen = []

    def watch():
        lease = bench.world.objects.get(LEASE)
        sign = lease and lease["metadata"]["annotations"].get(SIGN)
        if sign and (not seen or seen[-1][1] != sign):
            seen.append((bench.world.clock.now(), sign))
        bench.world.clock.at(1, watch)

    watch()
    bench.run(**run)
    return seen, bench.world.clock.now()


@pytest.mark.parametrize(
    "run", [{}, {"auto": False, "approval_wait": 900}, {"max_parallel": 1, "other": True}], ids=["works", "people decide", "waits"]
)
def test_a_run_that_has_parked_workloads_shows_that_it_lives(run):
    """Whatever it waits for: with a node in maintenance, without one, for its turn."""
    bench = Bench(pods=Pods(None, npu=30, others=30, seconds=20))
    bench.world.put(LEASE, {"metadata": {"name": "npu-maintenance", "annotations": {SIGN: "0"}}})
    if run.pop("other", False):
        record = {"run": "run-2", "generation": 1, "reason": "upgrade", "step": "drain-required"}
        bench.world.add("npu-b")

        def beat():
            record["heartbeat"] = maintenance_record.rfc3339(bench.world.clock.now())
            over = bench.world.clock.now() > 1_700_000_900
            value = None if over else json.dumps(record)
            bench.world.touch("npu-b", lambda node: merge(node["metadata"]["annotations"], {RECORD: value}))
            bench.world.clock.at(10, beat)

        beat()
        slots = {
            "max": 1,
            "halted": None,
            "holders": {"npu-b": {"run": "run-2", "since": maintenance_record.rfc3339(1_700_000_000)}},
        }
        bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(slots)
    seen, end = signs_of(bench, **run)
    times = [when for when, _sign in seen] + [end]
    assert end - times[0] > 600
    assert max(later - earlier for earlier, later in zip(times, times[1:])) <= 45


def test_a_run_that_has_parked_nothing_writes_no_sign():
    bench = Bench(pods=Pods(None, npu=30, others=30, seconds=20))
    seen, _end = signs_of(bench)
    assert seen == []


def test_a_client_that_always_uncordons_is_not_fought():
    bench = Bench()
    after_write, cordons = bench.world.after_write, []

    def uncordon():
        after_write()
        if bench.cordoned and len(cordons) < 100:
            cordons.append(bench.world.clock.now())
            bench.uncordon()

    bench.world.after_write = uncordon
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and "kubectl label node npu-a npuops.ascend/skip=true" in outcome["reason"]
    assert len(cordons) == 4 and not bench.cordoned and RECORD not in bench.annotations and not bench.host.boots


def test_the_heart_beats():
    """Never older than the limit, whatever is waited for."""
    bench = Bench(pods=Pods(None, npu=30, others=30, seconds=20))
    bench.host.BOOT_SECONDS = 900.0
    ages = []

    def watch():
        if RECORD in bench.annotations:
            ages.append(maintenance_record.age(bench.record, bench.world.clock.now()))
        bench.world.clock.at(1, watch)

    bench.world.clock.at(1, watch)
    assert bench.run()["outcome"] == "done"
    assert len(ages) > 1500 and max(ages) <= 35


# --- slots, halts, labels ---


def test_halted_before_it_began():
    bench = Bench()
    bench.world.add("npu-b").broken = set()
    bench.run(until="cordon")
    slots = bench.world.slots()
    text = json.dumps(dict(slots, halted={"who": "the run x", "why": "npu-z burns.", "when": "now"}))
    bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = text
    outcome = bench.run()
    assert outcome["outcome"] == "halted" and "npu-z burns. After" in outcome["reason"]
    assert "-e npu_upgrade_clear_halt=true" in outcome["reason"]
    assert not bench.cordoned and RECORD not in bench.annotations and bench.world.slots()["holders"] == {}
    assert bench.run(run="run-2")["outcome"] == "halted"
    assert not bench.cordoned and RECORD not in bench.annotations and bench.world.slots()["holders"] == {}


def finished(bench):
    """By another run: what the host and the Node say then."""
    bench.host.driver = bench.host.good = NEW
    changes = {"npuops.ascend/driver-version": "25.5.0"}
    bench.world.touch(
        "npu-a", lambda node: (node["metadata"]["labels"].pop(STATE, None), node["metadata"]["labels"].update(changes))
    )


def test_another_run_finishes_the_node_while_this_one_waits_for_its_slot():
    bench = Bench()
    bench.world.add("npu-b")
    bench.world.put(LEASE, {"metadata": {"name": "npu-maintenance", "annotations": {}}})
    slots = {"max": 1, "halted": None, "holders": {"npu-b": {"run": "run-9", "since": "2023-11-14T22:13:20Z"}}}
    bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(slots)
    bench.world.clock.at(30, lambda: finished(bench))
    assert bench.run()["outcome"] == "up-to-date"
    assert bench.host.boots == 0 and "npu-a" not in bench.world.slots()["holders"]


def test_another_run_finishes_the_node_in_the_instant_of_the_slot():
    bench = Bench()

    class Cluster(FakeCluster):
        def request(self, *arguments, **more):
            finished(bench)
            return super().request(*arguments, **more)

    bench.cluster = Cluster
    assert bench.run()["outcome"] == "up-to-date"
    assert bench.host.boots == 0 and bench.world.slots()["holders"] == {} and RECORD not in bench.annotations


def test_another_run_begins_in_the_instant_of_the_slot():
    """Its record is there first: this run leaves everything to it, but takes back its own slot."""
    bench = Bench()

    def on_write(path, body):
        if path == NODES + "/npu-a":
            bench.world.on_write = lambda path, body: None
            bench.annotate(record=json.dumps({"run": "run-2", "generation": 1, "heartbeat": "x", "step": "cordon-required"}))

    bench.world.on_write = on_write
    assert bench.run()["outcome"] == "busy"
    assert bench.world.slots()["holders"] == {} and bench.record["run"] == "run-2"


def test_waits_for_a_slot():
    bench = Bench()
    bench.world.add("npu-b")
    other = {"max": 1, "halted": None, "holders": {"npu-b": {"run": "run-9", "since": "2023-11-14T22:13:20Z"}}}
    bench.world.put(LEASE, {"metadata": {"name": "npu-maintenance", "annotations": {}}})
    bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(other)
    assert bench.run()["outcome"] == "done"
    assert any("waits for its turn: all 1 slot taken: npu-b (run run-9" in sentence for _step, sentence in bench.said)
    assert bench.world.clock.now() - 1_700_000_000 > 60
    bench.assert_upgraded()


def test_a_dead_run_in_another_node_has_the_slot():
    bench = Bench()
    record = {"run": "run-9", "generation": 1, "heartbeat": "2023-11-14T22:13:20Z", "step": "drain-required"}
    bench.world.add("npu-b", annotations={RECORD: json.dumps(record)})
    other = {"max": 1, "halted": None, "holders": {"npu-b": {"run": "run-9", "since": "2023-11-14T22:13:20Z"}}}
    bench.world.put(LEASE, {"metadata": {"name": "npu-maintenance", "annotations": {}}})
    bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(other)
    with pytest.raises(NpuError, match="npu-b was left in the middle of a maintenance .*npuops.ascend.upgrade --limit npu-b"):
        bench.run()
    assert bench.host.boots == 0 and list(bench.world.slots()["holders"]) == ["npu-b"]


def test_nobody_can_read_whose_the_other_node_is():
    bench = Bench()
    bench.world.add("npu-b", annotations={RECORD: '{"run": "run-9", "generation": 1, "times": 5}'})
    other = {"max": 1, "halted": None, "holders": {"npu-b": {"run": "run-9", "since": "2023-11-14T22:13:20Z"}}}
    bench.world.put(LEASE, {"metadata": {"name": "npu-maintenance", "annotations": {}}})
    bench.world.objects[LEASE]["metadata"]["annotations"]["npuops.ascend/slots"] = json.dumps(other)
    with pytest.raises(
        NpuError, match="npuops.ascend/maintenance of the node npu-b cannot be read: times is a number, not an object"
    ):
        bench.run()
    assert bench.host.boots == 0 and list(bench.world.slots()["holders"]) == ["npu-b"]


@pytest.mark.parametrize("annotation", [RECORD, "npuops.ascend/last-maintenance"])
def test_nobody_can_read_what_became_of_the_node(annotation):
    """Nothing is written to it: a newer version may know."""
    text = '{"run": "run-9", "generation": 1, "step": "levitation-required"}'
    bench = Bench(annotations={annotation: text})
    with pytest.raises(NpuError, match="step is 'levitation-required', which this version does not know"):
        bench.run()
    assert bench.host.boots == 0 and bench.world.objects["/api/v1/nodes/npu-a"]["metadata"]["annotations"][annotation] == text


def test_skipped():
    bench = Bench(labels={"npuops.ascend/skip": "true"})
    assert bench.run()["outcome"] == "deferred"
    assert not bench.world.fate.calls


@pytest.mark.parametrize("after", [1, 8])
def test_skipped_in_the_middle(after):
    bench = Bench()
    bench.run(until="cordon")
    label = {"npuops.ascend/skip": "true"}
    bench.world.clock.at(after, lambda: bench.world.touch("npu-a", lambda node: node["metadata"]["labels"].update(label)))
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and "npuops.ascend/skip=true" in outcome["reason"]
    assert_given_back(bench, "deferred")


def test_step_by_step():
    bench = Bench()
    assert bench.run(until="cordon")["step"] == "cordon-required"
    assert not bench.cordoned and bench.world.slots()["holders"]
    assert bench.run(until="reboot")["step"] == "reboot-required"
    assert bench.cordoned and bench.host.boots == 0 and bench.record["boot_id"] is None
    assert bench.run(until="cordon")["outcome"] == "under-way"
    assert bench.run(until="confirm")["step"] == "validation-required"
    assert bench.host.boots == 1 and bench.host.good == OLD
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert bench.told[-1] > bench.told[0] + 25


def test_a_hook_fails_before_the_reboot():
    bench = Bench()
    bench.run(until="cordon")
    outcome = bench.run(until="confirm", order={"failure": "hook: no backup"})
    assert outcome["outcome"] == "failed" and outcome["reason"] == "hook: no backup"
    assert_given_back(bench, "failed")


def test_a_hook_fails_after_validation():
    bench = Bench()
    bench.run(until="confirm")
    outcome = bench.run(order={"failure": "hook: slow"})
    assert outcome["outcome"] == "failed" and "hook: slow" in outcome["reason"]
    bench.assert_rolled_back()


def test_a_hook_fails_on_a_node_that_is_done():
    bench = Bench()
    bench.run()
    assert bench.run(order={"failure": "hook: slow"})["outcome"] == "up-to-date"
    bench.assert_upgraded()
