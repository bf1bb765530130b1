# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_RELEASE, host, unreachable
from support.fleet.planning import (
    APPROVED,
    STATE,
    make,
    nodes_of,
    only,
    record,
)
from support.kube.field_owners import cordon_of
from support.kube.stub import node

LEFT_CORDONED = {
    "npuops.ascend/last-maintenance": '{"run": "r", "generation": 1, "times": {"left-cordoned": "2026-11-21T12:00:00Z"}}'
}


def cordoned(manager):
    """A node that was left cordoned once, and is cordoned now, by ``manager``."""
    nodes = nodes_of("a", unschedulable=True, annotations=LEFT_CORDONED)
    nodes["a"]["metadata"]["managedFields"] = [cordon_of(manager)]
    return nodes


def test_a_node_that_is_due():
    plan = make([host()])
    (entry,) = plan.entries
    assert entry.verdict == "ready"
    assert entry.result()["from"] == {"version": OLD, "release": OLD_RELEASE}
    assert entry.target == {
        "version": NEW,
        "release": NEW_RELEASE,
        "digest": NEW_DIGEST,
        "image": "registry.example/mlops/ascend-driver:25.5.2-910b-6.6.0-145.0.4.135-oe2403sp3",
    }
    assert plan.green
    assert plan.due_nodes == ["a"]
    assert plan.summary == "1 of 1 node is due; duration unknown before the first one is done."


def test_the_same_digest_is_not_touched():
    plan = make([host(loaded=NEW_RELEASE)])
    assert plan.entries[0].verdict == "up-to-date"
    assert (plan.green, plan.due_nodes, plan.settled_nodes) == (True, [], ["a"])
    assert plan.summary == "Nothing is due on 1 node."


def test_the_same_version_with_another_digest_is_due():
    assert only(host(loaded=OLD_RELEASE, config={"driver_version": OLD})).verdict == "ready"


def test_a_label_asks_for_maintenance_at_the_same_version():
    nodes = nodes_of("a", labels={"npuops.ascend/maintenance-requested": "true"})
    entry = only(host(loaded=NEW_RELEASE), nodes=nodes)
    assert (entry.verdict, entry.requested) == ("ready", True)


@pytest.mark.parametrize(
    ("entry", "nodes", "verdict", "note"),
    [
        (host(chip_count=0, family=None), None, "skipped", "has no Ascend chip"),
        (
            host(chip_count=0, family=None, chips_before={"count": 1, "gone": ["0000:c4:00.0"], "boot": None}),
            None,
            "skipped",
            "0 of 1 chips: 0000:c4:00.0 is missing from the PCI bus",
        ),
        (host(chip_count=0, family=None, config={"chips": 8}), None, "skipped", "0 of 8 chips are on the PCI bus"),
        (host(config={"driver_source": "preinstalled"}), None, "skipped", "preinstalled"),
        (host(), nodes_of("a", labels={"npuops.ascend/skip": "true"}), "skipped", "npuops.ascend/skip=true"),
        (host(), nodes_of("a", unschedulable=True), "ready", "is already cordoned and stays cordoned"),
        (host(), cordoned("npuops.ascend-maintenance"), "ready", "uncordoned if this one works"),
        (host(), cordoned("kubectl-cordon"), "ready", "is already cordoned and stays cordoned"),
        (host(), nodes_of("a", annotations={"npuops.ascend/wedged": "{}"}), "ready", "no longer responds"),
        (
            host(loaded=NEW_RELEASE, config={"vnpu": {"vir06_1c_16g": 2}}),
            None,
            "up-to-date",
            "npu_vnpu asks for 16 vir06_1c_16g on",
        ),
    ],
)
def test_what_a_person_should_know(entry, nodes, verdict, note):
    found = only(entry, nodes=nodes)
    assert found.verdict == verdict
    assert any(note in text for text in found.notes)


ILL = [{"name": "npu_smi", "ok": False, "seen": "-8005", "expected": "8 chips", "message": "m"}]


@pytest.mark.parametrize(
    ("manager", "verdict", "told"),
    [
        ("npuops.ascend-maintenance", "ready", "notes"),
        ("kubectl-cordon", "blocked", "reasons"),
    ],
)
def test_a_host_where_no_driver_worked_needs_no_driver_that_does(manager, verdict, told):
    """It was left cordoned, and a retry or another driver is to end that; an ill host in service is no place to try a new driver."""
    found = only(host(validation={"checks": ILL}), nodes=cordoned(manager))
    assert found.verdict == verdict
    assert any("its current driver fails validation: npu_smi is -8005" in text for text in getattr(found, told))


def test_an_older_version_takes_a_setting():
    """An inventory that still names the version of before must not undo an upgrade."""
    older = host(config={"driver_version": "25.3.0"})
    refused, allowed = only(older), only(older, allow_older=True)
    assert refused.verdict == "blocked" and "npu_driver_version is the older 25.3.0" in refused.reasons[0]
    assert allowed.verdict == "ready" and any("goes back from 25.5.0 to the older 25.3.0" in text for text in allowed.notes)


def vnpu_plan(problem=None):
    return {"changed": True, "target": [], "destroy": [], "create": [], "problem": problem}


def test_virtual_npus_change_in_the_drain_of_an_upgrade():
    entry = only(host(vnpu_plan=vnpu_plan(), config={"vnpu": {"vir06_1c_16g": 2}}))
    assert entry.verdict == "ready"
    assert any("its virtual NPUs change in the same drain: 16 vir06_1c_16g on chip 0" in text for text in entry.notes)
    assert entry.result()["vnpu_layout"] == [{"chips": None, "templates": {"vir06_1c_16g": 2}}]
    # A run that was killed may have divided the chips and not described them to containerd.
    settled = only(host(vnpu_plan=dict(vnpu_plan(), changed=False), config={"vnpu": []}))
    assert (settled.notes, settled.result()["vnpu_layout"]) == ([], [])
    assert only(host()).result()["vnpu_layout"] is None


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (host(vnpu_plan=vnpu_plan("it has leftovers"), config={"vnpu": []}), "npu_vnpu: it has leftovers"),
        (host(config={"vnpu": {"vir04": 1}}), "npu_vnpu: layout, entry 1: the 910B has no template vir04"),
    ],
)
def test_virtual_npus_that_cannot_be(entry, told):
    found = only(entry)
    assert found.verdict == "blocked" and any(told in text for text in found.reasons)
    assert found.result()["vnpu_layout"] is None


@pytest.mark.parametrize(
    ("device_plugin", "told"),
    [
        ({"share_count": 1, "hot_reset": "inference"}, "npu_device_plugin_hot_reset is inference"),
        ({"share_count": 1, "hot_reset": "disabled"}, None),
        (None, None),
    ],
)
def test_what_the_device_plugin_cannot_do_with_virtual_npus(device_plugin, told):
    """It changes with an upgrade, also on nodes that are not due."""
    there = [{"chip": 0, "id": 100, "template": "vir06_1c_16g"}]
    divided, whole = host("a", loaded=NEW_RELEASE, vnpus=there), host("b", loaded=NEW_RELEASE)
    plan = make([divided, whole], components={"version_line": "26.1", "device_plugin": device_plugin})
    assert plan.green is (told is None)
    if told:
        (reason,) = plan.cluster_reasons
        assert reason.startswith("a: its chips are divided into virtual NPUs, and %s: " % told)
    # They go with this upgrade.
    goes = host("a", vnpus=there, vnpu_plan=vnpu_plan(), config={"vnpu": []})
    assert make([goes, whole], components={"version_line": "26.1", "device_plugin": device_plugin}).green


def test_what_is_wrong_with_a_node_that_is_not_due_is_told_only():
    entry = only(host(loaded=NEW_RELEASE), nodes=nodes_of("a", ready=False))
    assert (entry.verdict, entry.reasons) == ("up-to-date", [])
    assert "not Ready" in entry.notes[0]


def test_what_another_machine_has_does_not_make_a_node_up_to_date():
    entry = only(host(loaded=NEW_RELEASE, boot_id="another"))
    assert entry.verdict == "blocked"
    assert "the host is not the node a" in entry.reasons[0]


@pytest.mark.parametrize("nodes", [{}, {"a": node("a", boot_id="of another machine")}])
def test_what_a_host_says_is_nothing_about_a_node_that_it_is_not(nodes):
    entry = only(host(loaded=NEW_RELEASE), nodes=nodes)
    assert (entry.verdict, entry.deferrable) == ("blocked", False)


def test_unreachable():
    plan = make([unreachable("a"), host("b")])
    assert [entry.verdict for entry in plan.entries] == ["unreachable", "ready"]
    assert "--limit 'all:!<host>'" in plan.problem
    assert "a: not reachable: ssh: connect to host a port 22: timed out" in plan.problem


@pytest.mark.parametrize(
    "changes",
    [{"heartbeat": "2026-11-21T12:29:30Z"}, {"boot_id": "boot-b", "step": "reboot-required"}, {"step": "validation-required"}],
)
def test_a_node_in_recovery_may_be_done_last(changes):
    """While its run lives, and when its host may have been rebooted."""
    nodes = nodes_of("a", "b")
    text = json.dumps(dict(record(), reason="recovery", to={}, **changes))
    nodes["b"] = node("b", boot_id="x", ready=False, annotations={"npuops.ascend/maintenance": text})
    plan = make([host("a"), host("b")], nodes)
    entry = plan.entries[1]
    assert (entry.verdict, entry.deferrable, plan.green) == ("blocked", True, False)
    assert "is in recovery by the run" in entry.why[0] and "npuops.ascend.heal" in entry.why[0]


def test_a_record_that_nobody_can_read():
    nodes = nodes_of("a", annotations={"npuops.ascend/maintenance": "{"})
    entry = only(host(), nodes=nodes)
    assert entry.verdict == "blocked"
    assert "It was edited" in entry.reasons[0]


@pytest.mark.parametrize(
    ("labels", "holders", "verdict"),
    [
        ({STATE: "drain-required"}, {}, "in-flight"),
        ({STATE: "uncordon-required"}, {}, "in-flight"),
        ({"npuops.ascend/components": "paused"}, {"a": {"run": "r"}}, "in-flight"),
        ({"npuops.ascend/components": "paused"}, {}, "up-to-date"),
        ({"npuops.ascend/components": "enabled"}, {"a": {"run": "r"}}, "up-to-date"),
        ({STATE: "upgrade-required"}, {"a": {"run": "r"}}, "up-to-date"),
    ],
)
def test_a_node_whose_record_is_gone_is_in_flight_also_when_its_host_is_ready(labels, holders, verdict):
    slots = {"max": 1, "halted": None, "holders": holders}
    entry = only(host(loaded=NEW_RELEASE), nodes=nodes_of("a", labels=labels, unschedulable=True), slots=slots)
    assert (entry.verdict, entry.target is None) == (verdict, verdict == "in-flight")


def failed(**labels):
    last = record(outcome="rolled-back", failure="validation: 7 of 8 chips")
    return nodes_of(
        "a", labels=dict({STATE: "upgrade-failed"}, **labels), annotations={"npuops.ascend/last-maintenance": json.dumps(last)}
    )


def test_a_node_that_failed_is_left_alone_until_it_is_asked_for():
    plan = make([host()], nodes=failed())
    (entry,) = plan.entries
    assert (entry.verdict, plan.green) == ("failed", True)
    assert entry.reasons == ["validation: 7 of 8 chips; after fixing this: -e npu_upgrade_retry=true"]
    assert plan.summary == "Nothing is due on 1 node, 1 failed before."
    assert only(host(), nodes=failed(), retry=True).verdict == "ready"


@pytest.mark.parametrize(
    ("tried", "verdict"),
    [
        ({"version": "25.5.3", "release": "25.5.3-%s-0123456789ab" % KERNEL}, "ready"),
        ({"version": NEW, "release": NEW_RELEASE[:-12] + "0123456789ab"}, "ready"),
        ({"version": NEW, "release": NEW_RELEASE, "firmware": "7.8.0.7.220"}, "ready"),
        ({"version": NEW, "release": NEW_RELEASE.replace(KERNEL, "5.10.0-before")}, "failed"),
        ({}, "failed"),
    ],
    ids=["another-version", "another-build", "with-firmware", "another-kernel", "nothing-known"],
)
def test_a_failure_is_of_the_driver_that_was_tried(tried, verdict):
    nodes = nodes_of(
        "a",
        labels={STATE: "upgrade-failed"},
        annotations={"npuops.ascend/last-maintenance": json.dumps(dict(record(outcome="rolled-back"), to=tried))},
    )
    plan = make([host()], nodes=nodes)
    assert plan.entries[0].verdict == verdict
    assert plan.due_nodes == (["a"] if verdict == "ready" else [])


def test_a_node_that_failed_and_has_it_now():
    assert only(host(loaded=NEW_RELEASE), nodes=failed()).verdict == "up-to-date"


def test_without_approval():
    plan = make([host()], auto=False)
    (entry,) = plan.entries
    assert (entry.verdict, plan.green, entry.order) == ("awaiting-approval", True, 1)
    assert "kubectl annotate node a npu.openfuyao.com/approve-reboot=true" in entry.reasons[0]
    assert plan.summary.startswith("1 of 1 node is due, 1 awaiting approval;")
    assert only(host(), nodes=nodes_of("a", annotations=APPROVED), auto=False).verdict == "ready"


def test_an_approval_for_another_version():
    given = {**APPROVED, "npuops.ascend/approval-for": "25.5.3"}
    plan = make([host()], nodes_of("a", annotations=given), auto=False)
    (entry,) = plan.entries
    assert entry.verdict == "awaiting-approval"
    assert entry.reasons[0].startswith(
        f"its approval was given for the driver 25.5.3, not for the driver {NEW}: kubectl annotate node a "
    )
    assert f"npuops.ascend/approval-for={NEW} --overwrite" in entry.reasons[0]
    assert plan.due_versions == {"a": NEW}
    given["npuops.ascend/approval-for"] = NEW
    assert only(host(), nodes=nodes_of("a", annotations=given), auto=False).verdict == "ready"


def test_an_approval_that_is_too_old():
    nodes = nodes_of("a", annotations=APPROVED)
    fields = {"f:metadata": {"f:annotations": {"f:npu.openfuyao.com/approve-reboot": {}}}}
    nodes["a"]["metadata"]["managedFields"] = [{"manager": "kubectl", "time": "2026-11-21T11:30:00Z", "fieldsV1": fields}]
    assert only(host(), nodes=nodes, auto=False, approval_max_age=3601).verdict == "ready"
    assert only(host(), nodes=nodes, auto=False, approval_max_age=3599).verdict == "awaiting-approval"


@pytest.mark.parametrize("known, verdict", [(4, "awaiting-approval"), (5, "ready")])
def test_an_approval_that_may_have_been_used_before_a_backup_was_restored(known, verdict):
    """The run removes it and asks again, so the plan must not call the node ready."""
    nodes = nodes_of("a", annotations={**APPROVED, "npuops.ascend/last-maintenance": json.dumps({"run": "r", "generation": known})})
    asked_host = host()
    asked_host["facts"]["upgrade"]["generation"] = 5
    entry = only(asked_host, nodes=nodes, auto=False)
    assert entry.verdict == verdict
    if verdict != "ready":
        assert entry.reasons[0].startswith("the run removes its approval and asks again: it may have been used")
    asked_host["facts"]["upgrade"].pop("generation")  # a host whose answer is of an older collection
    assert only(asked_host, nodes=nodes, auto=False).verdict == "ready"


def test_an_upgrade_needs_a_version_that_somebody_named():
    """What install begins with, 25.5.0, would move a whole fleet back."""
    entry = host(loaded=NEW_RELEASE, config={"driver_version": None})
    found = only(entry)
    assert found.verdict == "blocked" and "npu_driver_version is not set" in found.reasons[0] and found.target is None
