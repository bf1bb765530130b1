# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on each node that is not well, and what people are told of it."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recovery_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import wedged_annotation

from support.kube.field_owners import annotation_of, cordon_of

NOW = 1_700_000_000
WEDGED, LAST, RECORD, APPROVE = (
    "npuops.ascend/wedged",
    "npuops.ascend/last-maintenance",
    "npuops.ascend/maintenance",
    "npu.openfuyao.com/approve-reboot",
)


def ago(seconds):
    return maintenance_record.rfc3339(NOW - seconds)


def wedge(since=60, boot=None):
    return json.dumps({"since": ago(since), "probes": 3, "reason": "npu-smi failed", "output": "", "boot_id": boot})


def record(reason="recovery", **fields):
    return json.dumps(
        dict({"run": "run-1", "generation": 1, "reason": reason, "step": "drain-required", "heartbeat": ago(5)}, **fields)
    )


OURS, THEIRS = "npuops.ascend-maintenance", "kubectl-cordon"


def node(name="npu-a", ready="True", labels=None, cordoned=None, present=True, fields=None, **annotations):
    keys = {"wedged": WEDGED, "last": LAST, "record": RECORD, "approve": APPROVE, "asked": "npuops.ascend/approval-for"}
    metadata = {
        "name": name,
        "labels": dict({"openfuyao.com/npu.present": ""} if present else {}, **(labels or {})),
        "annotations": {keys[key]: value for key, value in annotations.items()},
    }
    metadata["managedFields"] = list(fields or []) + ([cordon_of(cordoned)] if cordoned else [])
    return {
        "metadata": metadata,
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": "down"}],
                   "nodeInfo": {"bootID": "boot-of-" + name}},
    }  # fmt: skip


def host(name="npu-a", uptime=10_000, **values):
    facts = {"uptime": uptime, "chip_count": 8, "family": {"resource": "huawei.com/Ascend910"}}
    return dict({"name": name, "facts": facts, "config": {}, "error": None, "unreachable": False}, **values)


def plan(*nodes, hosts=None, auto=True, guards=None):
    # A fleet that is large enough for one or two to be no storm.
    fleet = {"other-%d" % number: node("other-%d" % number) for number in range(20)}
    fleet.update((item["metadata"]["name"], item) for item in nodes)
    return recovery_plan.make([host()] if hosts is None else hosts, fleet, guards_of(guards or {}), NOW, auto)


def verdict(*nodes, **arguments):
    made = plan(*nodes, **arguments)
    (entry,) = made.entries
    assert bool(made.due) is (entry.verdict in ("recover", "give-back", "in-flight"))
    return entry.verdict, entry.reason


def test_a_wedged_node():
    assert verdict(node(wedged=wedge())) == ("recover", None)
    result = plan(node(wedged=wedge())).result()
    assert result["order"] == result["look_at"] == ["npu-a"] and result["storm"] is None
    entry = result["hosts"]["npu-a"]
    assert (entry["since"], entry["wedged"], entry["attempts"]) == (ago(60), "npu-smi failed", [])
    assert (entry["resource"], entry["chips"]) == ("huawei.com/Ascend910", 8)


def test_a_reboot_into_a_kernel_without_a_driver_heals_nothing():
    upcoming = host()
    upcoming["facts"].update(kernel="6.6.0-145", next_kernel={"kernel": "6.6.0-150", "release": None, "symvers": None})
    found, why = verdict(node(wedged=wedge()), hosts=[upcoming])
    assert found == "blocked" and "into kernel 6.6.0-150, for which no driver is staged" in why
    upcoming["facts"]["next_kernel"]["release"] = "25.5.0-6.6.0-150-0123456789ab"
    assert verdict(node(wedged=wedge()), hosts=[upcoming])[0] == "recover"


def test_nobody_is():
    made = plan(node())
    assert made.entries == [] and made.result()["order"] == [] and made.table() == ["None of 21 NPU nodes is wedged."]


def test_nobody_approved():
    found, why = verdict(node(wedged=wedge()), auto=False)
    assert found == "awaiting-approval" and "kubectl annotate node npu-a npu.openfuyao.com/approve-reboot=true" in why


@pytest.mark.parametrize(
    ("given", "old", "expected"), [(30, False, "recover"), (90, False, "awaiting-approval"), (90, True, "recover")]
)
def test_an_approval_counts_from_the_wedge_on(given, old, expected):
    """Both by the clock of the API server, whatever the host takes for the time."""
    fields = [annotation_of("kubectl", APPROVE, NOW - given), annotation_of("npu-node-agent", WEDGED, NOW - 60)]
    for clock in (0, 1800, -7200):
        item = node(wedged=wedge(since=60 - clock), approve="true", fields=fields)
        assert verdict(item, auto=False, guards={"old_approvals": old})[0] == expected, clock


@pytest.mark.parametrize(
    "fields", [[annotation_of("kubectl", APPROVE, NOW - 3600)], [annotation_of("npu-node-agent", WEDGED, NOW - 60)]]
)
def test_an_approval_that_is_not_known_to_be_for_the_wedge_does_not_count(fields):
    assert verdict(node(wedged=wedge(since=7200), approve="true", fields=fields), auto=False)[0] == "awaiting-approval"


def test_the_time_of_an_approval_is_not_that_of_what_its_program_set_later():
    """managedFields have one time for all annotations that kubectl annotate has set."""
    fields = [annotation_of("kubectl-annotate", APPROVE, NOW - 30), annotation_of("npu-node-agent", WEDGED, NOW - 60)]
    fields[0]["fieldsV1"]["f:metadata"]["f:annotations"]["f:example.com/note"] = {}
    found, why = verdict(node(wedged=wedge(), approve="true", fields=fields), auto=False)
    assert (
        found == "awaiting-approval" and "because kubectl-annotate has also set example.com/note: approve it again: kubectl " in why
    )
    # What the advice sets.
    purpose = re.search(r"approval-for=(\S+) --overwrite", why)[1]
    assert verdict(node(wedged=wedge(), approve="true", asked=purpose, fields=fields), auto=False)[0] == "recover"


@pytest.mark.parametrize("asked", ["25.5.1", "recovery-" + ago(3600)])
def test_an_approval_for_something_else_is_none_for_the_recovery(asked):
    fields = [annotation_of("kubectl", APPROVE, NOW - 30), annotation_of("npu-node-agent", WEDGED, NOW - 60)]
    item = node(wedged=wedge(), approve="true", asked=asked, fields=fields)
    found, why = verdict(item, auto=False)
    assert found == "awaiting-approval" and f"{asked}, not for recovery-{ago(60)}: kubectl annotate node npu-a " in why
    assert verdict(item, auto=False, guards={"old_approvals": True})[0] == "recover"


def test_a_wedge_that_a_person_wrote_is_approved_like_any_other():
    """Both by kubectl annotate, so they have one time."""
    fields = [annotation_of("kubectl-annotate", APPROVE, NOW - 30)]
    fields[0]["fieldsV1"]["f:metadata"]["f:annotations"]["f:" + WEDGED] = {}
    found, why = verdict(node(wedged="chip 3 is slow", approve="true", fields=fields), auto=False)
    assert found == "awaiting-approval" and "has also set npuops.ascend/wedged" in why
    purpose = re.search(r"approval-for=(recovery-[0-9a-f]{12}) --overwrite", why)[1]
    assert verdict(node(wedged="chip 3 is slow", approve="true", asked=purpose, fields=fields), auto=False)[0] == "recover"
    assert (
        verdict(node(wedged="chip 4 is slow", approve="true", asked=purpose, fields=fields), auto=False)[0] == "awaiting-approval"
    )


def test_a_wedge_by_hand_is_dated_by_who_wrote_it():
    """A person may ask for a reboot like that."""
    entry = {"manager": "kubectl", "time": ago(50), "fieldsV1": {"f:metadata": {"f:annotations": {"f:" + WEDGED: {}}}}}
    found = wedged_annotation.of(node(wedged="chip 3 is slow", fields=[entry]))
    assert (found.since, found.reason, found.is_of("any")) == (ago(50), "chip 3 is slow", True)
    assert wedged_annotation.of(node(wedged="[]")).since is None
    assert verdict(node(wedged="chip 3 is slow"))[0] == "recover"


@pytest.mark.parametrize(
    ("item", "expected", "told"),
    [
        (node(wedged=wedge(boot="boot-0")), "too-soon", "rebooted since"),
        (node(wedged=wedge(), ready="False"), "not-ready", "The node is not Ready"),
        (node(wedged=wedge(), labels={"npuops.ascend/skip": "true"}), "skipped", "npuops.ascend/skip=true"),
        (node(wedged=wedge(), record=record("upgrade")), "in-upgrade", "in upgrade by the run run-1"),
        (node(wedged=wedge(), record=record()), "in-flight", "at drain-required, by the run run-1"),
        (node(record=record()), "in-flight", "by the run run-1"),
        (node(wedged=wedge(), record="{"), "blocked", "cannot be read"),
    ],
)  # fmt: skip
def test_others(item, expected, told):
    found, why = verdict(item)
    assert found == expected and told in why


@pytest.mark.parametrize(
    ("values", "expected", "told"),
    [
        ({"uptime": 60}, "too-soon", "up for 60 s only"),
        ({"config": {"driver_source": "preinstalled"}}, "skipped", "preinstalled"),
        ({"unreachable": True, "error": "no route"}, "not-ready", "could not be gathered: no route"),
        ({"name": "elsewhere"}, "no-host", "It matches no host"),
        ({"facts": None}, "recover", None),
    ],
)
def test_what_the_host_says(values, expected, told):
    made = plan(node(wedged=wedge()), hosts=[host(**values)])
    (entry,) = made.entries
    assert entry.verdict == expected and (told is None or told in entry.reason)
    assert "no-host" != expected or made.result()["hosts"] == {}
    assert [entry.name for entry in made.strangers] == ([entry.name for entry in made.entries] if expected == "no-host" else [])


def test_another_name_in_the_inventory():
    made = plan(node("k8s-7", wedged=wedge()), hosts=[host("npu-a", config={"node_name": "k8s-7"})])
    assert made.result()["order"] == ["npu-a"] and made.result()["hosts"]["npu-a"]["node"] == "k8s-7"


def test_tried_often_enough():
    last = record(recoveries=[ago(90_000), ago(7000), ago(3000)], outcome="success")
    found, why = verdict(node(wedged=wedge(), last=last))
    assert found == "given-up" and "2 times within a day" in why and maintenance_record.rfc3339(NOW - 7000 + 86400) in why
    assert verdict(node(wedged=wedge(), last=last), guards={"attempts": 3})[0] == "recover"
    assert verdict(node(wedged=wedge(), last=last), guards={"attempts": 0})[0] == "recover"


def test_left_cordoned_and_well_again():
    left = record(outcome="failed", failure="The recovery did not help.", times={"left-cordoned": ago(500)}, recoveries=[ago(700)])
    item = node(last=left, cordoned=OURS)
    assert verdict(item)[0] == verdict(item, auto=False)[0] == "give-back"
    assert plan(node(last=left)).entries == []  # a user uncordoned it
    assert plan(node(last=left, cordoned=THEIRS)).entries == []  # and cordoned it since
    upgrade = record("upgrade", outcome="failed", times={"left-cordoned": ago(500)})
    assert plan(node(last=upgrade, cordoned=OURS)).entries == []


@pytest.mark.parametrize("driver", [{"failed": {"reason": "insmod failed"}}, {"failed": None}])
def test_a_driver_that_does_not_load_after_a_reboot_by_hand(driver):
    """The node agent has nothing to look at, so what it says is of the boot before."""
    facts = {"uptime": 10_000, "driver": driver}
    expected = "recover" if driver["failed"] else "too-soon"
    assert verdict(node(wedged=wedge(boot="boot-0")), hosts=[host(facts=facts)])[0] == expected


def test_a_recovery_that_left_no_driver():
    left = record(outcome="failed", times={"left-cordoned": ago(900)}, recoveries=[ago(1000)])
    assert verdict(node(wedged=wedge(boot="boot-0"), last=left, cordoned=OURS))[0] == "recover"
    assert verdict(node(wedged=wedge(boot="boot-0"), last=left, cordoned=OURS), guards={"attempts": 1})[0] == "given-up"


def test_the_order():
    items = [
        node("a", wedged=wedge(since=10)), node("b", wedged=wedge(since=20)), node("c", record=record()),
        node("d", last=record(times={"left-cordoned": ago(5)}, outcome="failed"), cordoned=OURS),
    ]  # fmt: skip
    made = plan(*items, hosts=[host(name) for name in "abcd"])
    assert made.result()["order"] == ["c", "d", "b", "a"]


# --- storms ---


def storm(wedged, fleet, **guards):
    nodes = {"n%d" % number: node("n%d" % number, **({"wedged": wedge()} if number < wedged else {})) for number in range(fleet)}
    made = recovery_plan.make([host(name) for name in nodes], nodes, guards_of(guards), NOW, True)
    assert bool(made.storm) is not bool(made.due)
    return made


@pytest.mark.parametrize(
    ("wedged", "fleet", "expected"), [(1, 1, False), (1, 3, False), (2, 3, True), (3, 10, False), (4, 10, True)]
)
def test_more_than_a_share_is_a_storm(wedged, fleet, expected):
    assert bool(storm(wedged, fleet).storm) is expected


def test_a_storm_tells_who_and_stops_all():
    made = storm(12, 20)
    assert "12 of 20 NPU nodes wedged within 3600 s" in made.storm and "and 4 more" in made.storm
    assert made.result()["order"] == [] and made.table()[-1].startswith("STORM: 12 of 20")
    assert made.told()["n0"].startswith("no recovery in a storm")
    assert storm(12, 20, storm_percent=60).storm is None


def test_a_storm_is_not_looked_into_with_another_inventory():
    nodes = {"n%d" % number: node("n%d" % number, wedged=wedge()) for number in range(3)}
    made = recovery_plan.make([], nodes, guards_of({}), NOW)
    assert made.storm and made.strangers == []


def test_what_wedged_long_ago_is_no_storm_and_what_was_recovered_lately_is():
    fields = [annotation_of("npu-node-agent", WEDGED, NOW - 7200)]
    old = {"n%d" % number: node("n%d" % number, wedged=wedge(since=number), fields=fields) for number in range(3)}
    assert recovery_plan.make([], old, guards_of({}), NOW).storm is None
    # A wedge counts from when it was told, also if the clock of the host is days behind.
    fields = [annotation_of("npu-node-agent", WEDGED, NOW - 60)]
    fresh = {"n%d" % number: node("n%d" % number, wedged=wedge(since=7 * 86400), fields=fields) for number in range(3)}
    assert recovery_plan.make([], fresh, guards_of({}), NOW).storm
    lately = {"n%d" % number: node("n%d" % number, last=record(recoveries=[ago(600)])) for number in range(3)}
    assert recovery_plan.make([], lately, guards_of({}), NOW).storm
    assert recovery_plan.make([], lately, guards_of({"storm_window": 500}), NOW).storm is None


def test_recoveries_of_a_clock_that_was_ahead_count_for_nothing():
    """A controller whose clock was a month ahead has healed two nodes; nothing tells when."""
    ahead = {"n%d" % number: node("n%d" % number, last=record(recoveries=[ago(-30 * 86400)])) for number in range(3)}
    assert recovery_plan.make([], ahead, guards_of({}), NOW).storm is None
    guards = guards_of({"attempts": 1})
    assert guards.tired(ahead["n0"], NOW) is None
    # Two API servers may differ by seconds.
    assert guards.tired(node(last=record(recoveries=[ago(-20)])), NOW)


def test_only_npu_nodes_are_the_fleet():
    nodes = {"n%d" % number: node("n%d" % number, wedged=wedge()) for number in range(2)}
    nodes.update(("c%d" % number, node("c%d" % number, present=False)) for number in range(50))
    assert recovery_plan.make([], nodes, guards_of({}), NOW).storm


@pytest.mark.parametrize("values", [{"min_uptime": -1}, {"storm_percent": 101}, {"attempts": -2}])
def test_bounds_that_make_no_sense(values):
    with pytest.raises(NpuError, match="npu_heal_%s is" % next(iter(values))):
        guards_of(values)


# --- for people ---


def test_the_table():
    items = [node("a", wedged=wedge()), node("b", wedged=wedge(since=90), labels={"npuops.ascend/skip": "true"})]
    assert plan(*items, hosts=[host("a"), host("b")]).table() == [
        "2 of 22 NPU nodes are wedged.",
        "",
        "NODE  SINCE                 ATTEMPTS  VERDICT",
        "a     %s  0 of 2    recover" % ago(60),
        "b     %s  0 of 2    skipped" % ago(90),
        "",
        "a: npu-smi failed.",
        "b: npu-smi failed. It has the label npuops.ascend/skip=true.",
    ]


def test_what_status_says():
    last = record(recoveries=[ago(3000)], outcome="success")
    told = plan(node(wedged=wedge(), last=last), auto=False).told()["npu-a"]
    assert (
        told.startswith("recovery: awaiting-approval. Its reboot is not approved") and "It was rebooted once within a day" in told
    )


@pytest.mark.parametrize(("max_parallel", "number"), [(1, 1), (0, 0), ("10%", 2)])
def test_the_slots_that_it_shares_with_upgrades_are_a_number(max_parallel, number):
    fleet = {"npu-%d" % place: node("npu-%d" % place) for place in range(20)}
    made = recovery_plan.make([], fleet, guards_of({}), NOW, max_parallel=max_parallel)
    assert made.result()["max_parallel"] == number
