# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import heal_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import drift
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status

from support.kube.field_owners import cordon_of
from support.kube.stub import node

CHIPS = "huawei.com/Ascend910"
FACTS = {
    "chip_count": 8,
    "family": {"name": "910B", "resource": CHIPS},
    "runtime": {"name": "containerd", "version": "2.1.5"},
    "driver": {"loaded_release": "25.5.0-6.6.0-ab"},
    "problems": [],
}
VALID = {"valid": True, "version": "25.5.0", "checks": [{"name": "cdi_running", "ok": True, "message": None}]}
WRONG = {"name": "npu_smi", "ok": False, "expected": "8 chips", "seen": "7 chips", "message": "Look at dmesg"}
NOW = 1795428000  # 2026-11-23T10:00:00Z
UNIT_FAILED = {"name": "driver_ready", "ok": False, "expected": "it", "seen": "insmod failed", "message": "See journal"}
INSTALLED = {"labels": {"openfuyao.com/npu.present": "", "npuops.ascend/components": "enabled"}}


def host(name="a", **changes):
    entry = {"name": name, "facts": FACTS, "validation": VALID, "error": None, "unreachable": False}
    return dict(entry, config={"driver_source": "image", "driver_version": "25.5.0"}, **changes)


def agent(on="a", ready=True):
    return plugin(on, ready, "npu-node-agent")


def plugin(on="a", ready=True, owner="ascend-device-plugin-daemonset", kind="DaemonSet"):
    owners = [{"kind": kind, "name": owner, "controller": True}]
    labels = {"name": "ascend-device-plugin-ds", "app.kubernetes.io/name": "npu-node-agent"}
    return {
        "metadata": {"name": "p", "namespace": "npu-operator", "labels": labels, "ownerReferences": owners},
        "spec": {"nodeName": on},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def row(entry=None, pods=(plugin(),), allocatable="8", nodes=None, **kwargs):
    kwargs = dict(INSTALLED, **kwargs)
    nodes = {"a": node("a", allocatable={CHIPS: allocatable}, **kwargs)} if nodes is None else nodes
    return report_status.rows([host() if entry is None else entry], report_status.node_views(nodes, list(pods), NOW))[0]


def state(*args, **kwargs):
    result = row(*args, **kwargs)
    return result["state"], result["reason"]


def test_a_node_that_was_not_accepted():
    last = {"verdict": "FAIL", "level": 2, "ended": "2026-11-26T10:00:05Z"}
    closed = node("a", allocatable={CHIPS: "8"}, annotations={"npuops.ascend/acceptance": json.dumps(last)}, **INSTALLED)
    closed["spec"]["taints"] = [{"key": "npuops.ascend/not-accepted", "value": "3", "effect": "NoSchedule"}]
    found = row(nodes={"a": closed})
    assert (found["state"], found["acceptance"], found["gate"]) == ("ready", last, 3)
    assert found["reason"] == (
        "FAIL at level 2 of npuops.ascend.accept (2026-11-26T10:00:05Z); pods wait until npuops.ascend.accept has accepted it at level 3"
    )
    passed = row(annotations={"npuops.ascend/acceptance": json.dumps(dict(last, verdict="PASS"))})
    assert (passed["reason"], passed["acceptance"]["verdict"]) == (None, "PASS")


@pytest.mark.parametrize(
    "name, ok, shown",
    [("cdi_running", True, "on"), ("cdi_running", False, "off"), ("ascend_runtime_config", True, "ascend"), ("chips", True, None)],
)
def test_how_containers_get_their_chips_is_told(name, ok, shown):
    checks = [dict(WRONG, name=name, ok=ok)]
    assert row(host(validation=dict(VALID, valid=ok, checks=checks)))["cdi"] == shown


def test_the_firmware_of_the_chips_is_told():
    assert row(host(validation=dict(VALID, firmware_version="7.8.0.6.201")))["firmware"] == "7.8.0.6.201"


@pytest.mark.parametrize(
    ("flash", "told"),
    [
        (
            {"state": "written", "boot_id": "boot-1"},
            "the firmware 7.8.0.7.220 is in its chips already: they run it after the next boot",
        ),
        ({"state": "written", "boot_id": "boot-0"}, None),
        (
            {"state": "failed", "boot_id": "boot-0", "reason": "the package failed."},
            "the firmware 7.8.0.7.220 could not be written into its chips: the package failed",
        ),
    ],
    ids=["waits-for-the-next-boot", "in-use", "failed"],
)
def test_what_the_last_write_of_firmware_has_left_is_told(flash, told):
    facts = dict(FACTS, boot_id="boot-1", upgrade={"flash": dict(flash, version="7.8.0.7.220")})
    assert (row(host(facts=facts))["state"], row(host(facts=facts))["reason"]) == ("ready", told)


def test_what_may_be_a_newer_chip_is_told():
    note = "the unknown accelerator 19e5:d9ff (0000:01:00.0) may be a newer chip"
    assert state(host(facts=dict(FACTS, notes=[note]))) == ("ready", note)
    only = [row(host(facts=dict(FACTS, chip_count=0, notes=[note])))]
    assert report_status.table(only)[1].endswith("  no chip: " + note)


def test_ready():
    result = row()
    assert report_status.healthy(result)
    assert {key: result[key] for key in ("state", "reason", "chips", "driver_loaded", "cdi", "plugin", "allocatable")} == {
        "state": "ready",
        "reason": None,
        "chips": 8,
        "driver_loaded": "25.5.0",
        "cdi": "on",
        "plugin": "running",
        "allocatable": 8,
    }


def test_states_and_reasons():
    assert state(host(validation={"valid": False, "checks": [WRONG]})) == (
        "invalid",
        "npu_smi: 7 chips (expected: 8 chips)",
    )
    assert state(host(facts=None, unreachable=True, error="no route")) == ("unreachable", "no route; the node is Ready")
    assert state(host(facts=None, error="no Python")) == ("failed", "no Python")
    assert state(host(facts=dict(FACTS, chip_count=0))) == ("no chip", None)
    assert state(host(facts=dict(FACTS, problems=["two families"]))) == ("blocked", "two families")
    assert state(nodes={}) == ("no node", "the cluster has no node a")
    assert state(ready=False) == ("not ready", "Kubelet stopped posting node status.")
    assert state(labels={"npuops.ascend/components": "paused"}) == ("maintenance", "its components are paused")
    changing = {"npuops.ascend/vnpu-change": "2026-11-24T10:00:00Z"}
    assert state(labels={"npuops.ascend/components": "paused"}, annotations=changing) == (
        "maintenance",
        "its virtual NPUs change since 2026-11-24T10:00:00Z; if no install is running, run npuops.ascend.install",
    )
    assert state(labels={}) == ("not installed", "npuops.ascend.install")
    assert state(pods=[]) == ("no plugin", "the device plugin has no pod there")
    assert state(pods=[plugin(ready=False)]) == ("no plugin", "is Running; no events yet")
    assert state(allocatable="6") == ("degraded", "6 of 8 chips are allocatable")
    assert state(unschedulable=True) == ("ready", "cordoned")
    ours = node("a", allocatable={CHIPS: "8"}, unschedulable=True, **INSTALLED)
    ours["metadata"]["managedFields"] = [cordon_of("npuops.ascend-maintenance")]
    assert state(nodes={"a": ours}) == ("ready", "cordoned by a maintenance that has ended, see npuops.ascend.release")
    ours["metadata"]["labels"] = dict(ours["metadata"]["labels"], **{"npuops.ascend/components": "paused"})
    told = "its components are paused, and a maintenance left it cordoned: see npuops.ascend.release"
    assert state(nodes={"a": ours}) == ("maintenance", told)
    ours["metadata"]["labels"]["npuops.ascend/keep-cordoned"] = "true"
    assert state(nodes={"a": ours}) == ("maintenance", "its components are paused")


def test_a_next_boot_without_a_driver_is_told():
    upcoming = {"kernel": "6.6.0-150", "release": None}
    told = "its next boot is into kernel 6.6.0-150, for which no driver is staged: see npuops.ascend.plan"
    assert state(host(facts=dict(FACTS, next_kernel=upcoming))) == ("ready", told)
    upcoming = dict(upcoming, release="25.5.0-6.6.0-150-0123456789ab")
    assert state(host(facts=dict(FACTS, next_kernel=upcoming))) == ("ready", None)


def test_chips_that_are_shared():
    """What the plugin's pod on the node was told counts, whatever the settings say by now."""
    shares = plugin()
    shares["spec"]["containers"] = [{"args": ["wait; exec device-plugin -logLevel=0 -shareDevCount=4"]}]
    found = row(pods=[shares], allocatable="32")
    assert (found["state"], found["reason"]) == ("ready", "up to 4 pods share a chip")
    assert (found["chips"], found["allocatable"], found["devices_per_chip"]) == (8, 32, 4)
    assert state(pods=[shares], allocatable="28") == (
        "degraded",
        "28 of 32 devices are allocatable; each of the 8 chips should be offered 4 times",
    )
    assert state(pods=[shares], allocatable="8")[0] == state(allocatable="32")[0] == "degraded"


def test_virtual_npus():
    """Of eight chips, two are divided into four halves."""
    vnpus = [{"chip": chip, "id": 100 + 16 * chip + half, "template": "vir10_3c_32g"} for chip in (0, 1) for half in (0, 1)]
    halves = CHIPS + "-10c.3cpu.32g"

    def found(whole, virtual):
        nodes = {"a": node("a", allocatable={CHIPS: whole, halves: virtual}, **INSTALLED)}
        return row(host(facts=dict(FACTS, vnpus=vnpus)), nodes=nodes)

    ready = found("6", "4")
    assert (ready["state"], ready["reason"], ready["vnpus"]) == ("ready", None, {halves: {"wanted": 4, "allocatable": 4}})
    assert "6 %s, 4 %s" % (CHIPS, halves) in report_status.table([ready])[1]
    short = found("8", "0")
    assert short["state"] == "degraded"
    assert short["reason"] == "8 of 6 whole chips are allocatable; 0 of 4 virtual NPUs %s are allocatable" % halves


def test_pods_on_unhealthy_chips_are_named():
    nodes = {"a": node("a", allocatable={CHIPS: "7"}, **INSTALLED)}
    views = report_status.node_views(nodes, [plugin()], NOW, unhealthy={"a": ["train/job-0 (Ascend910-3)"]})
    (found,) = report_status.rows([host()], views)
    assert found["reason"] == "7 of 8 chips are allocatable; pods on unhealthy chips: train/job-0 (Ascend910-3)"
    assert found["unhealthy_pods"] == ["train/job-0 (Ascend910-3)"]


def test_pods_on_chips_that_fail_validation_are_named():
    """What makes a device unhealthy mostly also makes the check of the host fail."""
    check = {"name": "health", "ok": False, "expected": "OK for every chip", "seen": "NPU 3 chip 0: Alarm", "message": "Reset it"}
    nodes = {"a": node("a", allocatable={CHIPS: "7"}, **INSTALLED)}
    views = report_status.node_views(nodes, [plugin()], NOW, unhealthy={"a": ["train/job-0 (Ascend910-3)"]})
    (found,) = report_status.rows([host(validation={"valid": False, "checks": [check]})], views)
    assert found["state"] == "invalid"
    assert report_status.line(found).endswith("chip); pods on unhealthy chips: train/job-0 (Ascend910-3)")
    assert report_status.details(found)[-2:] == ["    -> Reset it", "  pods on unhealthy chips: train/job-0 (Ascend910-3)"]


@pytest.mark.parametrize(
    "health, allocatable, told",
    [
        ("Warning", "8", ("ready", "NPU 4 chip 0 (0000:81:00.0): Warning")),
        ("Warning", "7", ("degraded", "7 of 8 chips are allocatable; NPU 4 chip 0 (0000:81:00.0): Warning")),
        ("Critical", "7", ("degraded", "7 of 8 chips are allocatable; NPU 4 chip 0 (0000:81:00.0): Critical")),
        ("Critical", "8", ("degraded", "NPU 4 chip 0 (0000:81:00.0): Critical")),
    ],
)
def test_chips_that_are_not_ok_are_named(health, allocatable, told):
    chips = [{"npu": 4, "chip": chip, "bus_id": "0000:81:00.0", "health": (health, "OK")[chip]} for chip in (0, 1)]
    entry = host()
    entry["validation"] = dict(VALID, chip_health=chips)
    found = row(entry, allocatable=allocatable)
    assert (found["state"], found["reason"]) == told
    assert found["chip_health"] == chips
    # They do not get better by waiting.
    assert not report_status.may_get_better([found])


def test_chips_that_are_not_ok_are_named_with_their_fault_codes():
    sick = {"npu": 4, "chip": 0, "bus_id": "0000:81:00.0", "health": "Alarm", "codes": ["80E20207"], "codes_left_out": 0}
    entry = host()
    entry["validation"] = dict(VALID, chip_health=[sick])
    found = row(entry, allocatable="7")
    assert found["reason"] == (
        "7 of 8 chips are allocatable; NPU 4 chip 0 (0000:81:00.0): Alarm with 80E20207 (SubHealthFault: the chip is too hot)"
    )


GONE = {"count": 8, "gone": ["0000:c4:00.0"], "boot": "2026-11-25T22:00:00Z"}
MISSING = "7 of 8 chips: 0000:c4:00.0 is missing from the PCI bus since the boot of 2026-11-25T22:00:00Z or an earlier one"


@pytest.mark.parametrize(
    "before, wanted, told",
    [
        (GONE, None, ("degraded", MISSING)),
        (GONE, 7, ("ready", None)),
        ({"count": 7, "gone": [], "boot": None}, "8", ("degraded", "7 of 8 chips are on the PCI bus")),
        ({"count": 0, "gone": [], "boot": None}, None, ("ready", None)),
        (None, "eight", ("ready", None)),
    ],
)
def test_a_chip_that_is_gone_is_missed(before, wanted, told):
    entry = host()
    entry["facts"] = dict(FACTS, chip_count=7, chips_before=before)
    entry["config"]["chips"] = wanted
    found = row(entry, allocatable="7")
    assert (found["state"], found["reason"]) == told
    assert not report_status.may_get_better([found])


NONE_LEFT = {"count": 2, "gone": ["0000:c4:00.0", "0000:c5:00.0"], "boot": None}
ALL_MISSING = "0 of 2 chips: 0000:c4:00.0, 0000:c5:00.0 are missing from the PCI bus since a reboot"


@pytest.mark.parametrize(
    "before, wanted, told",
    [
        (NONE_LEFT, None, ("degraded", ALL_MISSING)),
        (NONE_LEFT, 0, ("degraded", ALL_MISSING)),
        ({"count": 0, "gone": [], "boot": None}, 8, ("degraded", "0 of 8 chips are on the PCI bus")),
        ({"count": 0, "gone": [], "boot": None}, 0, ("no chip", None)),
        (None, None, ("no chip", None)),
    ],
)
def test_a_host_that_has_lost_all_its_chips_is_not_one_without(before, wanted, told):
    entry = host(validation={"valid": True, "checks": []})
    entry["facts"] = dict(FACTS, chip_count=0, family=None, chips_before=before)
    entry["config"]["chips"] = wanted
    found = row(entry, pods=[], allocatable="0")
    assert (found["state"], found["reason"]) == told and not report_status.may_get_better([found])
    well = told[0] == "no chip"
    assert found["healthy"] is well and (drift.lines([found], None, None, None) == []) is well
    assert (found["driver_wanted"] is None) is well
    # The check of the host says the same, and that once is enough.
    entry["validation"] = {"valid": False, "checks": [dict(WRONG, name="chips", seen=told[1])]}
    assert well or row(entry, pods=[], allocatable="0")["reason"] == told[1]


def test_a_host_that_does_not_answer_has_lost_no_chip():
    entry = host(facts=None, validation=None, unreachable=True, error="no route")
    entry["config"]["chips"] = 8
    assert (row(entry)["state"], row(entry)["missing_chips"]) == ("unreachable", None)


def test_what_follows_from_a_chip_that_is_gone_is_told_as_well():
    entry = host()
    entry["facts"] = dict(FACTS, chip_count=7, chips_before=GONE)
    entry["validation"] = {"valid": False, "checks": [WRONG]}
    assert state(entry, allocatable="7") == ("degraded", MISSING + "; npu_smi: 7 chips (expected: 8 chips)")


RECORD = {
    "run": "awx-812",
    "generation": 3,
    "reason": "upgrade",
    "from": {"version": "25.5.0", "release": "x"},
    "to": {"version": "25.5.1", "release": "y"},
    "step": "drain-required",
    "heartbeat": "2026-11-23T09:59:48Z",
    "times": {"cordon-required": "2026-11-23T09:50:00Z", "drain-required": "2026-11-23T09:56:00Z"},
}
UNDER_WAY = "upgrade from 25.5.0 to 25.5.1 by the run awx-812: drain-required for 4 min, last heartbeat 12 s ago"


def in_maintenance(**changes):
    return {"npuops.ascend/maintenance": json.dumps(dict(RECORD, **changes))}


def test_a_maintenance_tells_its_step_its_run_and_its_age():
    paused = {"npuops.ascend/components": "paused"}
    assert state(labels=paused, annotations=in_maintenance()) == ("maintenance", UNDER_WAY)
    stuck = in_maintenance(failure="It did not come back\nwithin 60 s.")
    assert state(labels=paused, annotations=stuck)[1] == UNDER_WAY + "; It did not come back within 60 s"
    recovery = in_maintenance(reason="recovery", to={}, times={})
    assert state(annotations=recovery)[1] == "recovery by the run awx-812: drain-required, last heartbeat 12 s ago"


def test_a_maintenance_by_a_controller_whose_clock_is_ahead():
    ahead = in_maintenance(heartbeat="2026-11-23T10:04:48Z", times={"drain-required": "2026-11-23T10:01:00Z"})
    assert state(annotations=ahead)[1].endswith(": drain-required for 0 s, last heartbeat 0 s ago")


def test_a_maintenance_is_told_of_a_host_that_reboots_in_it():
    down = state(ready=False, annotations=in_maintenance())
    assert down == ("not ready", "Kubelet stopped posting node status; in maintenance: " + UNDER_WAY)
    unreachable = state(host(facts=None, unreachable=True, error="no route"), annotations=in_maintenance())
    assert unreachable == ("unreachable", "no route; the node is Ready; in maintenance: " + UNDER_WAY)


def test_a_record_that_cannot_be_read_is_told():
    told = state(annotations={"npuops.ascend/maintenance": "garbage"})
    assert told[0] == "maintenance"
    assert "npuops.ascend/maintenance of the node a cannot be read" in told[1]


def test_node_agent():
    assert row(pods=[plugin(), agent()])["agent"] == "running"
    assert state(pods=[plugin(), agent(ready=False)]) == ("no agent", "is Running; no events yet")


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        ('{"since": "2026-11-21T10:00:00Z", "reason": "npu-smi\\nhangs."}', "since 2026-11-21T10:00:00Z: npu-smi hangs"),
        ("by hand", "by hand"),
    ],
)
def test_a_driver_that_no_longer_answers(annotation, reason):
    told = state(annotations={"npuops.ascend/wedged": annotation}, allocatable="0")
    assert told == ("wedged", reason + "; only a reboot helps, unless it recovers by itself")


def test_a_host_that_is_down_on_a_node_that_is_gone_too():
    assert state(host(facts=None, unreachable=True, error="no route"), ready=False) == (
        "unreachable",
        "no route; the node is not Ready: Kubelet stopped posting node status.",
    )


def test_an_upgrade_that_is_due_is_no_fault():
    entry = host()
    entry["config"]["driver_version"] = "25.5.1"
    assert state(entry) == ("ready", "driver 25.5.1 is configured, see npuops.ascend.upgrade")


def test_preinstalled():
    entry = host()
    entry["config"] = {"driver_source": "preinstalled", "driver_version": "25.5.1"}
    assert state(entry) == ("ready", None)
    assert row(entry)["driver_wanted"] == "preinstalled"


def test_npu_nodes_that_no_host_stands_for():
    nodes = {"a": node("a", **INSTALLED), "z": node("z", allocatable={CHIPS: "8"}, **INSTALLED), "plain": node("plain")}
    result = report_status.rows([host()], report_status.node_views(nodes, [], NOW))
    assert [entry["node"] for entry in result] == ["a", "z"]
    assert (result[1]["state"], result[1]["allocatable"]) == ("unknown", 8)


@pytest.mark.parametrize(
    ("label", "step", "awaiting"),
    [
        (None, None, None),
        ("upgrade-failed", "upgrade-failed", None),
        ("approval-required", "approval-required", "rollout"),
        # As a person may have written it.
        ("anything", None, None),
    ],
)
def test_the_step_of_a_rollout_is_told(label, step, awaiting):
    labels = dict(INSTALLED["labels"], **({"npu.openfuyao.com/driver-upgrade-state": label} if label else {}))
    found = row(labels=labels)
    assert (found["step"], found["awaiting_approval"]) == (step, awaiting)
    foreign = report_status.rows([], report_status.node_views({"a": node("a", labels=labels)}, [], NOW))[0]
    assert (foreign["step"], foreign["awaiting_approval"]) == (step, awaiting)


def test_a_recovery_that_waits_for_its_approval_is_told():
    wedge = {"since": "2026-11-23T09:30:00Z", "probes": 3, "reason": "npu-smi failed", "output": "", "boot_id": "boot-of-a"}
    wedged = {"npuops.ascend/wedged": json.dumps(wedge)}
    nodes = {"b%d" % number: node("b%d" % number, **INSTALLED) for number in range(20)}
    nodes["a"] = node("a", annotations=wedged, **INSTALLED)
    for auto, awaiting in ((False, "recovery"), (True, None)):
        params = {"hosts": [host(facts=dict(FACTS, uptime=9000))], "heal_settings": {"auto": auto}}
        views = report_status.node_views(nodes, [], NOW, heal_settings.plan(params, nodes.values(), NOW))
        assert report_status.rows(params["hosts"], views)[0]["awaiting_approval"] == awaiting
    # Then no approval would help.
    nodes["b0"] = node("b0", annotations=wedged, **INSTALLED)
    params["heal_settings"] = {"storm_percent": 1}
    storm = heal_settings.plan(params, nodes.values(), NOW)
    assert storm.storm and report_status.node_views(nodes, [], NOW, storm)["a"]["awaiting_approval"] is None


def test_how_many_devices_a_node_should_offer():
    assert row()["devices_expected"] == 8
    shares = plugin()
    shares["spec"]["containers"] = [{"args": ["wait; exec device-plugin -logLevel=0 -shareDevCount=4"]}]
    assert row(pods=[shares], allocatable="28")["devices_expected"] == 32
    assert row(host(facts=None, unreachable=True))["devices_expected"] is None
    assert row(host(facts=dict(FACTS, chip_count=0, family=None)))["devices_expected"] is None


@pytest.mark.parametrize(("allocatable", "better"), [("8", False), ("0", True)])
def test_waiting_makes_sense(allocatable, better):
    assert report_status.may_get_better([row(allocatable=allocatable)]) is better


def test_table():
    nodes = {name: node(name, allocatable={CHIPS: "8"}, **INSTALLED) for name in ("a", "worker-1")}
    entries = [host(), host("b", facts=dict(FACTS, chip_count=0, family=None, driver={}), validation=None)]
    entries.append(host("c", facts=None, validation=None, error="no sh"))
    entries[2]["config"]["node_name"] = "worker-1"
    assert report_status.table(report_status.rows(entries, report_status.node_views(nodes, [plugin()], NOW))) == [
        "NODE          CHIPS     WANTED  LOADED  CONTAINERD          CDI  AGENT  PLUGIN   ALLOCATABLE             STATE",
        "a             8 x 910B  25.5.0  25.5.0  2.1.5               on   -      running  8 huawei.com/Ascend910  ready",
        "b             -         -       -       2.1.5               -    -      -        -                       no chip",
        "worker-1 (c)  -         25.5.0  -       containerd://2.1.5  -    -      -        -                       failed",
        "",
        "c: failed",
        "  no sh",
    ]


def test_details_begin_with_what_the_boot_unit_says():
    entry = host(validation={"valid": False, "checks": [WRONG, UNIT_FAILED]})
    assert report_status.table([row(entry)])[2:] == [
        "",
        "a: invalid",
        "  driver_ready: insmod failed (expected: it)",
        "    -> See journal",
        "  npu_smi: 7 chips (expected: 8 chips)",
        "    -> Look at dmesg",
    ]


def test_somebody_elses_pod_with_our_labels_is_no_component():
    pods = [plugin(owner="theirs"), plugin(kind="ReplicaSet")]
    assert row(pods=pods)["plugin"] == row(pods=[])["plugin"] != row()["plugin"]
    assert row(pods=pods)["agent"] == row(pods=[])["agent"]


def test_what_nodes_have_in_common_is_told_once():
    names = ["npu-%02d" % number for number in range(23)]
    one = row(host(validation={"valid": False, "checks": [WRONG]}))
    alike = [dict(one, host=name, node=name) for name in names]
    other = dict(row(host(validation={"valid": False, "checks": [dict(WRONG, seen="6 chips")]})), host="other")
    told = report_status.table([*alike[:5], other, *alike[5:]])[25:]
    assert told[1] == "%s and 3 more: invalid" % ", ".join(names[:20]) and "7 chips" in told[2]
    assert told[told.index("", 1) + 1] == "other: invalid" and len(told) == 8
