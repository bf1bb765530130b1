# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image.registry import ImageNotFound
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import blocker as drain_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import budgets as drain_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import pod as drain_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import policy as drain_policy
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import plan as fleet_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._fleet import snapshot as fleet_snapshot

from support.fleet.hosts import KERNEL, NEW, NEW_DIGEST, NEW_RELEASE, OLD, OLD_DIGEST, OLD_RELEASE, host, release, unreachable
from support.kube.eviction_stub import budget, pod
from support.kube.field_owners import cordon_of
from support.kube.stub import node

NOW = 1795264200.0  # 2026-11-21T12:30:00Z
APPROVED = {"npu.openfuyao.com/approve-reboot": "true"}
STATE = "npu.openfuyao.com/driver-upgrade-state"
RESOURCE = "huawei.com/Ascend910"
LEFT_CORDONED = {
    "npuops.ascend/last-maintenance": '{"run": "r", "generation": 1, "times": {"left-cordoned": "2026-11-21T12:00:00Z"}}'
}


def cordoned(manager):
    """A node that was left cordoned once, and is cordoned now, by ``manager``."""
    nodes = nodes_of("a", unschedulable=True, annotations=LEFT_CORDONED)
    nodes["a"]["metadata"]["managedFields"] = [cordon_of(manager)]
    return nodes


def nodes_of(*names, **kwargs):
    return {name: node(name, boot_id="boot-" + name, allocatable={RESOURCE: "8"}, **kwargs) for name in names}


def snapshot_of(nodes, pods=(), budgets=(), **kwargs):
    by_node = {}
    for item in pods:
        by_node.setdefault(item["spec"]["nodeName"], []).append(drain_pod.Pod(item))
    return fleet_snapshot.FleetSnapshot(nodes, by_node, drain_budgets.Budgets(budgets), **kwargs)


def make(hosts, nodes=None, pods=(), budgets=(), slots=None, policy=None, tools=None, registry_nodes=None, **settings):
    nodes = nodes_of(*[entry["name"] for entry in hosts]) if nodes is None else nodes
    settings.setdefault("auto", True)
    defaults = {
        "resolve": lambda reference, config: NEW_DIGEST,
        "size": lambda *_args: 2**30,
        "support": lambda *_args: ([], []),
        "confirm": lambda pods: [],
        "now": NOW,
    }
    return fleet_plan.make(
        hosts,
        snapshot_of(nodes, pods, budgets, registry_nodes=registry_nodes),
        slots or {"max": 1, "halted": None, "holders": {}},
        fleet_plan.RolloutSettings(policy or drain_policy.DrainPolicy.of(), **settings),
        fleet_plan.Tools(**dict(defaults, **(tools or {}))),
    )


def only(entry, **kwargs):
    """The entry of a single host."""
    (found,) = make([entry], **kwargs).entries
    return found


def record(**changes):
    return dict(
        {"run": "r1", "generation": 3, "heartbeat": "2026-11-21T12:00:00Z", "step": "drain-required",
         "to": {"version": NEW, "release": NEW_RELEASE, "digest": NEW_DIGEST}},
        **changes,
    )  # fmt: skip


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
        (host(config={"driver_source": "preinstalled"}), None, "skipped", "preinstalled"),
        (host(), nodes_of("a", labels={"npuops.ascend/skip": "true"}), "skipped", "npuops.ascend/skip=true"),
        (host(), nodes_of("a", unschedulable=True), "ready", "is already cordoned and stays cordoned"),
        (host(), cordoned("npuops.ascend-maintenance"), "ready", "uncordoned if this one works"),
        (host(), cordoned("kubectl-cordon"), "ready", "is already cordoned and stays cordoned"),
        (host(), nodes_of("a", annotations={"npuops.ascend/wedged": "{}"}), "ready", "no longer responds"),
        (host(config={"driver_version": "25.3.0"}), None, "ready", "goes back from 25.5.0 to the older 25.3.0"),
    ],
)
def test_what_a_person_should_know(entry, nodes, verdict, note):
    found = only(entry, nodes=nodes)
    assert found.verdict == verdict
    assert any(note in text for text in found.notes)


@pytest.mark.parametrize(
    ("entry", "kwargs", "reason"),
    [
        (host(disk={"path": "/var", "free_bytes": 2**30}), {}, "/var has 1024 MiB free, staging the image needs 3136 MiB"),
        (host(driver={"managed": False, "loaded": False}), {}, "run npuops.ascend.install first"),
        (host(boot_id="other"), {}, "the host is not the node a"),
        (host(), {"nodes": {}}, "the cluster has no node a"),
        (host(), {"nodes": nodes_of("a", ready=False)}, "the node a is not Ready"),
        (host(problems=["This host does not run systemd"]), {}, "does not run systemd"),
        (
            host(validation={"checks": [{"name": "cdi_running", "ok": False, "seen": "off", "expected": "on", "message": "m"}]}),
            {},
            "its current driver fails validation: cdi_running is off, expected on. m",
        ),
        (host(validation={"failed": True, "msg": "Traceback ..."}), {}, "could not be validated: Traceback"),
        (
            host(upgrade={"staged": {}, "holders": [{"pid": 7, "command": "python x", "device": "davinci0", "pod": False}]}),
            {},
            "the process 7 (python x) has davinci0 open and belongs to no pod",
        ),
        (host(), {"tools": {"own_boot_id": "boot-a"}}, "Ansible itself runs on it"),
        (host(), {"tools": {"support": lambda *_args: (["firmware too old"], [])}}, "firmware too old"),
        (host(), {"tools": {"white_list": lambda image: "not allowed: " + image[-9:]}}, "not allowed: oe2403sp3"),
    ],
)
def test_what_is_in_the_way(entry, kwargs, reason):
    plan = make([entry], **kwargs)
    (found,) = plan.entries
    assert found.verdict == "blocked"
    assert any(reason in text for text in found.reasons), found.reasons
    assert (plan.green, found.deferrable, found.order) == (False, False, None)
    assert reason in plan.problem


def test_a_pods_process_on_the_chip_is_no_hidden_user():
    holder = {"pid": 7, "command": "python x", "device": "davinci0", "pod": True}
    assert only(host(upgrade={"staged": {}, "holders": [holder]})).verdict == "ready"


def test_an_ill_driver_does_not_stand_in_the_way_of_a_requested_reboot():
    checks = [{"name": "npu_smi", "ok": False, "seen": "-8005", "expected": "8 chips", "message": "m"}]
    nodes = nodes_of("a", labels={"npuops.ascend/maintenance-requested": "true"})
    assert only(host(validation={"checks": checks}), nodes=nodes).verdict == "ready"


def test_an_image_that_is_staged_needs_no_space_and_no_second_look_at_the_registry():
    staged = {NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": None}}
    entry = host(disk={"path": "/", "free_bytes": 0}, upgrade={"staged": staged, "holders": []})
    assert only(entry, tools={"size": lambda *_args: pytest.fail("asked")}).verdict == "ready"


def test_the_support_table_is_asked_with_the_firmware_of_the_chips_and_what_the_staged_driver_declares():
    asked = []

    def support(*args):
        asked.append(args)
        return [], []

    staged = {NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": ["7.0.0", "8.9.9"]}}
    entry = host(
        validation={"valid": True, "checks": [], "firmware_version": "7.8.0"},
        firmware_version="1.0",
        upgrade={"staged": staged, "holders": []},
    )
    only(entry, tools={"support": support})
    ((version, facts, info, firmware, declared),) = asked
    assert (version, firmware, declared) == (NEW, "7.8.0", ["7.0.0", "8.9.9"])
    assert facts["chip_count"] == 8
    assert info["kubeletVersion"] == "v1.34.4"


def test_the_registry_is_asked_once_per_image():
    asked = []

    def size(*args):
        asked.append(args)
        return 1

    make([host("a"), host("b"), host("c", device="d500")], tools={"size": size})
    assert len(asked) == 2


def test_a_missing_image_stops_all_of_its_profile():
    def resolve(reference, _config):
        if "310p" in reference:
            raise ImageNotFound("%s does not exist." % reference)
        return NEW_DIGEST

    plan = make([host("a"), host("b", device="d500")], tools={"resolve": resolve})
    assert [entry.verdict for entry in plan.entries] == ["ready", "blocked"]
    assert "no driver image for the profile 25.5.2-310p-" in plan.problem


def test_a_mistyped_variable_stops_everything_also_where_nothing_is_due():
    plan = make([host(loaded=NEW_RELEASE, variables=["npu_upgrade_max_paralel"])])
    assert not plan.green
    assert plan.cluster_reasons == ["unknown variable npu_upgrade_max_paralel: did you mean npu_upgrade_max_parallel? (a)"]


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
    assert "--limit 'npu_nodes:!<host>'" in plan.problem
    assert "a: not reachable: ssh: connect to host a port 22: timed out" in plan.problem


# --- in flight and failed ---


def test_a_node_in_maintenance_goes_first_whatever_it_looks_like():
    nodes = nodes_of("a", "b")
    nodes["b"] = node("b", boot_id="x", ready=False, annotations={"npuops.ascend/maintenance": json.dumps(record())})
    plan = make([host("a"), unreachable("b")], nodes=nodes)
    assert [entry.name for entry in plan.ordered] == ["b", "a"]
    entry = plan.entries[1]
    assert (entry.verdict, entry.record["step"], plan.green) == ("in-flight", "drain-required", True)
    assert plan.due_nodes == ["a"]
    assert "step drain-required of run r1, last heartbeat 2026-11-21T12:00:00Z" in entry.notes


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


def under_way(reason, to, **changes):
    old, new = ({"version": name.partition("-")[0], "release": name} for name in (OLD_RELEASE, NEW_RELEASE))
    found = record(reason=reason, to={"old": old, "new": new, "": {}}[to], **{"from": new if to == "old" else old}, **changes)
    return nodes_of("a", annotations={"npuops.ascend/maintenance": json.dumps(found)})


TRIED = {"boot_id": "boot-before", "step": "validation-required", "times": {}}


@pytest.mark.parametrize(
    ("wants", "nodes", "entry", "release", "note"),
    [
        # Of a run that died before the intent.
        ("upgrade", under_way("upgrade", "new"), host(), NEW_RELEASE, "step drain-required"),
        ("upgrade", under_way("upgrade", "new"), host(config={"driver_version": OLD}), "25.5.0-%s-1b" % KERNEL, ""),
        ("upgrade", under_way("upgrade", "new"), host(loaded=NEW_RELEASE), None, "is given back: it runs 25.5.2 already"),
        ("upgrade", under_way("upgrade", "new"), unreachable(), NEW_RELEASE, "not reachable"),
        ("rollback", under_way("upgrade", "new"), host(), None, "its upgrade to 25.5.2 is given back first"),
        ("rollback", under_way("upgrade", "new"), unreachable(), None, "is given back first"),
        ("upgrade", under_way("rollback", "old"), host(loaded=NEW_RELEASE), None, "its rollback to 25.5.0 is given back first"),
        ("rollback", under_way("rollback", "old"), host(loaded=NEW_RELEASE), OLD_RELEASE, "step drain-required"),
        ("upgrade", under_way("recovery", ""), host(), NEW_RELEASE, "its recovery to the same is given back first"),
        ("rollback", under_way("recovery", ""), host(), None, "its recovery to the same is given back first"),
        # Of one that died after it.
        ("upgrade", under_way("upgrade", "new", **TRIED), host(config={"driver_version": "26.0"}), NEW_RELEASE, ""),
        ("rollback", under_way("upgrade", "new", **TRIED), host(loaded=NEW_RELEASE), OLD_RELEASE, "its upgrade to 25.5.2 is ended"),
        ("rollback", under_way("upgrade", "new", **TRIED), unreachable(), OLD_RELEASE, "its upgrade to 25.5.2 is ended"),
        ("upgrade", under_way("rollback", "old", **TRIED), host(), NEW_RELEASE, "its rollback to 25.5.0 is ended"),
    ],
)
def test_what_is_wanted_of_a_node_in_maintenance(wants, nodes, entry, release, note):
    found = only(entry, nodes=nodes, reason=wants)
    assert found.verdict == "in-flight" and found.order == 1
    assert (found.target or {}).get("release", "").startswith(release or "") and bool(found.target) is bool(release)
    assert any(note in text for text in found.notes), found.notes


@pytest.mark.parametrize("step", ["drain-required", "validation-required"])
def test_a_rollback_undoes_the_upgrade_that_is_under_way_and_no_older_one(step):
    """b was not reached by it; what b had before is from the year before."""
    before = wave_record("upgrade", OLD_RELEASE, "2025-11-20T10:00:00Z", run="r0")
    nodes = dict(under_way("upgrade", "new", step=step), **nodes_of("b", annotations=before))
    older = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": "24.1", "kernel": KERNEL}}, "holders": []}
    plan = make([host("a"), host("b", upgrade=older)], nodes=nodes, reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["in-flight", "skipped"]
    # Nor does a rollback that goes on with one that turned it back.
    turned = under_way("rollback", "old", step="rollback-required", times={"turned-back": "2026-11-21T12:00:00Z"})["a"]
    plan = make([host("a"), host("b", upgrade=older)], nodes=dict(nodes, a=turned), reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["in-flight", "skipped"]
    # And when a was given back, a second rollback goes no further either.
    last = dict(record(reason="upgrade", outcome="withdrawn", withdrawn_for="rollback", ended="2026-11-21T12:20:00Z"))
    nodes["a"]["metadata"]["annotations"] = {"npuops.ascend/last-maintenance": json.dumps(last)}
    plan = make([host("a", upgrade=older), host("b", upgrade=older)], nodes=nodes, reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["skipped", "skipped"]
    assert "its upgrade to 25.5.2 was withdrawn before its reboot" in plan.entries[0].notes[0]


def test_a_node_on_which_the_upgrade_failed_does_not_go_back_further():
    """It is on the driver before already."""
    nodes = nodes_of("a", "b", annotations=wave_record("upgrade", NEW_RELEASE, "2026-11-20T10:00:00Z"))
    last = record(reason="upgrade", outcome="rolled-back", ended="2026-11-20T11:00:00Z")
    nodes["b"]["metadata"]["annotations"] = {"npuops.ascend/last-maintenance": json.dumps(last)}
    older = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": "24.1", "kernel": KERNEL}}, "holders": []}
    plan = make([backward_of("a"), host("b", upgrade=older)], nodes=nodes, reason="rollback")
    assert [entry.verdict for entry in plan.entries] == ["ready", "skipped"]


def backward_of(name):
    return dict(backward(), name=name, facts=dict(backward()["facts"], boot_id="boot-" + name))


def test_a_record_that_nobody_can_read():
    nodes = nodes_of("a", annotations={"npuops.ascend/maintenance": "{"})
    entry = only(host(), nodes=nodes)
    assert entry.verdict == "blocked"
    assert "Somebody edited it" in entry.reasons[0]


@pytest.mark.parametrize(
    ("reason", "upgrade", "config", "release"),
    [
        ("upgrade", {}, {}, NEW_RELEASE),
        ("upgrade", {}, {"driver_version": OLD}, "25.5.0-%s-1b" % KERNEL),
        ("rollback", {}, {}, OLD_RELEASE),
        ("rollback", {"previous": NEW_RELEASE}, {}, NEW_RELEASE),  # the trial is that of a rollback
    ],
)
def test_a_host_on_trial_without_a_record(reason, upgrade, config, release):
    driver = dict(host()["facts"]["driver"], release=NEW_RELEASE, loaded_release=NEW_RELEASE)
    nodes = nodes_of("a", "b", labels={"openfuyao.com/npu.present": ""})
    tries = host(driver=driver, config=config, upgrade=dict({"trial": NEW_RELEASE}, **upgrade))
    plan = make([host("b"), tries], nodes, reason=reason)
    entry = plan.entries[1]
    assert (entry.verdict, entry.order, plan.green) == ("on-trial", 1, True)
    assert entry.target["release"].startswith(release)
    assert "on trial" in entry.notes[0] and not any("install" in note for note in entry.notes)
    assert "a" not in plan.due_nodes + plan.settled_nodes
    assert "1 on an unconfirmed trial" in plan.summary


def test_a_host_on_trial_whose_node_was_made_anew():
    driver = dict(host()["facts"]["driver"], release=NEW_RELEASE, loaded_release=NEW_RELEASE)
    entry = only(host(driver=driver, upgrade={"trial": NEW_RELEASE}))
    assert entry.verdict == "on-trial" and "lacks the labels of npuops.ascend.install" in entry.notes[1]
    # What another machine tries says nothing about this node.
    entry = only(host(driver=driver, upgrade={"trial": NEW_RELEASE}, boot_id="another"))
    assert entry.verdict == "blocked"


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


def test_a_node_that_failed_and_has_it_now():
    assert only(host(loaded=NEW_RELEASE), nodes=failed()).verdict == "up-to-date"


# --- approval ---


def test_without_approval():
    plan = make([host()], auto=False)
    (entry,) = plan.entries
    assert (entry.verdict, plan.green, entry.order) == ("awaiting-approval", True, 1)
    assert "kubectl annotate node a npu.openfuyao.com/approve-reboot=true" in entry.reasons[0]
    assert plan.summary.startswith("1 of 1 node is due, 1 awaiting approval;")
    assert only(host(), nodes=nodes_of("a", annotations=APPROVED), auto=False).verdict == "ready"


def test_an_approval_that_is_too_old():
    nodes = nodes_of("a", annotations=APPROVED)
    fields = {"f:metadata": {"f:annotations": {"f:npu.openfuyao.com/approve-reboot": {}}}}
    nodes["a"]["metadata"]["managedFields"] = [{"manager": "kubectl", "time": "2026-11-21T11:30:00Z", "fieldsV1": fields}]
    assert only(host(), nodes=nodes, auto=False, approval_max_age=3601).verdict == "ready"
    assert only(host(), nodes=nodes, auto=False, approval_max_age=3599).verdict == "awaiting-approval"


# --- pods ---


def test_a_budget_blocks_and_can_be_deferred():
    plan = make([host("a"), host("b")], pods=[pod("web-1"), pod("train", npus=8)], budgets=[budget()])
    a, b = plan.entries
    assert (a.verdict, a.deferrable, b.verdict) == ("blocked", True, "ready")
    assert a.blockers[0]["budget"]["name"] == "web"
    assert a.evictions == {"npu": 1, "other": 1, "jobs": 0}
    assert plan.due_nodes == ["a", "b"]
    assert plan.problem.splitlines() == [
        "Nothing was changed: the plan is not green. 1 of 2 nodes is due, 1 blocked; duration unknown before the"
        " first one is done.",
        "  a: the pods train/web-1, train/train (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget train/web allows no"
        " disruption now: 2 healthy, 2 needed",
        "To start with the others and try the blocked ones last: -e npu_upgrade_on_blocked=defer.",
    ]


def test_what_the_server_refuses_in_a_dry_run_blocks():
    def confirm(pods):
        return [drain_blocker.Blocker("refused", item, "a webhook says no") for item in pods if item.name == "web-1"]

    plan = make([host("a"), host("b")], pods=[pod("web-1"), pod("web-2", node="b")], tools={"confirm": confirm})
    assert [entry.verdict for entry in plan.entries] == ["blocked", "ready"]


def test_a_job_that_is_waited_for_may_have_a_budget():
    policy = drain_policy.DrainPolicy.of({"selector": "app=web"})
    entry = only(host(), pods=[pod("web-1")], budgets=[budget()], policy=policy)
    assert (entry.verdict, entry.evictions["jobs"]) == ("ready", 1)


def test_pods_in_the_way_come_before_a_missing_approval():
    entry = only(host(), pods=[pod("web-1")], budgets=[budget()], auto=False)
    assert (entry.verdict, entry.deferrable) == ("blocked", True)


def test_where_evicted_pods_could_go():
    pods = [pod("big", npus=8), pod("small", npus=2), pod("there", node="b", npus=6)]
    a, b = make([host("a"), host("b")], pods=pods).entries
    assert [text for text in a.notes if "no other node" in text] == [
        "1 of its 2 pods that use NPUs fit on no other node now and will wait: train/big"
    ]
    assert any("train/there" in text for text in b.notes)


def test_room_is_not_on_cordoned_wedged_or_dead_nodes():
    for unfit in ({"unschedulable": True}, {"ready": False}, {"annotations": {"npuops.ascend/wedged": "{}"}}):
        nodes = dict(nodes_of("a"), **nodes_of("b", **unfit))
        room = fleet_snapshot.Room(snapshot_of(nodes))
        assert room.homeless("a", [drain_pod.Pod(pod("x", npus=1))]), unfit


def test_capacity():
    nodes = dict(nodes_of("a", "b"), **nodes_of("c", unschedulable=True))
    plan = make([host("a"), host("b"), host("c")], nodes=nodes, pods=[pod("x", npus=3), pod("y", node="c", npus=8)])
    assert plan.result()["capacity"] == {RESOURCE: {"allocatable": 16, "requested": 3, "free": 13}}


def test_room_is_used_up():
    nodes = nodes_of("a", "b")
    room = fleet_snapshot.Room(snapshot_of(nodes, [pod("there", node="b", npus=4)]))
    pods = [drain_pod.Pod(pod("x%d" % number, npus=2)) for number in range(3)]
    assert [item.name for item in room.homeless("a", pods)] == ["x2"]
    assert room.homeless("a", pods[:2]) == []


# --- order and time ---


def ended(outcome="success", minutes=10, **changes):
    last = record(started="2026-11-20T10:00:00Z", ended="2026-11-20T10:%02d:00Z" % minutes, outcome=outcome, **changes)
    return {"npuops.ascend/last-maintenance": json.dumps(last)}


def test_order():
    nodes = nodes_of("a", "b", "c", "p", "q", "registry", "wedged")
    nodes["b"]["metadata"]["annotations"] = ended("deferred")
    nodes["wedged"]["metadata"]["annotations"] = {"npuops.ascend/wedged": "{}"}
    hosts = [host(name) for name in ("wedged", "registry", "b", "a", "c")] + [host(name, device="d500") for name in ("p", "q")]
    plan = make(hosts, nodes=nodes, pods=[pod("web", node="a")], registry_nodes={"registry": "the registry's pod"})
    # c has nothing to evict, so it is the first of the 910B.
    assert [entry.name for entry in plan.ordered] == ["c", "p", "wedged", "a", "q", "b", "registry"]
    assert [entry.name for entry in plan.ordered if entry.canary] == ["c", "p"]


@pytest.mark.parametrize(("max_parallel", "seconds"), [(1, 1800), (2, 1200), (0, 600)])
def test_estimate_from_the_past(max_parallel, seconds):
    nodes = nodes_of("a", "b", "c", annotations=ended(minutes=10))
    nodes["c"] = nodes_of("c")["c"]  # without a past: what is usual
    plan = make([host("a"), host("b"), host("c")], nodes=nodes, max_parallel=max_parallel)
    assert plan.estimate == seconds
    assert plan.summary == "3 of 3 nodes are due; about %d min." % (seconds / 60)


def test_failures_are_no_measure():
    assert make([host()], nodes=nodes_of("a", annotations=ended("rolled-back"))).estimate is None


# --- rollback ---


def backward(**changes):
    staged = {
        OLD_RELEASE: {"version": OLD, "kernel": KERNEL, "digest": OLD_DIGEST, "firmware": None},
        NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST, "firmware": None},
    }
    return host(loaded=NEW_RELEASE, upgrade=dict({"previous": OLD_RELEASE, "staged": staged, "holders": []}, **changes))


def test_rollback_goes_to_the_previous_release_without_asking_the_registry():
    entry = only(backward(), reason="rollback", tools={"resolve": lambda *_args: pytest.fail("asked")})
    assert entry.verdict == "ready"
    assert entry.target == {"version": OLD, "release": OLD_RELEASE, "digest": OLD_DIGEST, "image": None}


@pytest.mark.parametrize(
    ("changes", "verdict", "text"),
    [
        ({"previous": None}, "skipped", "has no previous release"),
        ({"staged": {}}, "blocked", "no longer complete"),
        ({"staged": {OLD_RELEASE: {"version": OLD, "kernel": "5.10", "digest": OLD_DIGEST}}}, "blocked", "for the kernel 5.10"),
    ],
)
def test_rollback_that_cannot_be(changes, verdict, text):
    entry = only(backward(**changes), reason="rollback")
    assert entry.verdict == verdict
    assert any(text in line for line in entry.reasons + entry.notes)


def test_a_rollback_takes_the_release_of_the_version_that_is_for_the_running_kernel():
    """The kernel changed since; npu-driver-select would take it as well."""
    fits = release(OLD, "sha256:" + "2c" * 32)
    staged = {
        OLD_RELEASE: {"version": OLD, "kernel": "5.10", "digest": OLD_DIGEST},
        fits: {"version": OLD, "kernel": KERNEL, "digest": "sha256:" + "2c" * 32},
        NEW_RELEASE: {"version": NEW, "kernel": KERNEL, "digest": NEW_DIGEST},
    }
    entry = only(backward(staged=staged), reason="rollback")
    assert (entry.verdict, entry.target["release"], entry.target["digest"]) == ("ready", fits, "sha256:" + "2c" * 32)


def test_a_second_rollback_does_not_go_forward_again():
    last = record(reason="rollback", outcome="success", to={"version": NEW, "release": NEW_RELEASE})
    nodes = nodes_of("a", annotations={"npuops.ascend/last-maintenance": json.dumps(last)})
    assert only(backward(), nodes=nodes, reason="rollback").verdict == "up-to-date"
    assert only(backward(), nodes=nodes, reason="rollback", retry=True).verdict == "ready"


def test_a_node_that_went_back_by_itself_goes_no_further_back():
    """Its previous release is the one before the one that it went back to, or the one that has just failed on it."""
    driver = {"version": NEW, "release": NEW_RELEASE}
    last = record(reason="upgrade", outcome="failure", to={"version": "26.0", "release": "26.0-x"}, **{"from": driver})
    failed = {"npuops.ascend/last-maintenance": json.dumps(last)}
    state = {"npu.openfuyao.com/driver-upgrade-state": "upgrade-failed"}
    entry = only(backward(), nodes=nodes_of("a", labels=state, annotations=failed), reason="rollback")
    assert entry.verdict == "skipped" and "is back on 25.5.2 already: its upgrade to 26.0 failed" in entry.notes[0]
    retry = only(backward(), nodes=nodes_of("a", labels=state, annotations=failed), reason="rollback", retry=True)
    assert retry.verdict == "ready"
    # That it is back must be true.
    other = json.dumps(dict(last, **{"from": {"version": OLD, "release": OLD_RELEASE}}))
    nodes = nodes_of("a", labels=state, annotations={"npuops.ascend/last-maintenance": other})
    assert only(backward(), nodes=nodes, reason="rollback").verdict == "failed"


def wave_record(reason, loaded, ended, **changes):
    version = {"version": loaded.partition("-")[0], "release": loaded}
    text = record(reason=reason, outcome="success", ended=ended, to=version, **changes)
    return {"npuops.ascend/last-maintenance": json.dumps(text)}


@pytest.mark.parametrize("first", ["upgrade", "rollback"])
def test_a_rollback_undoes_the_last_upgrade_and_no_older_one(first):
    """c was not reached by the last upgrade, to NEW; its own previous release is from the year before."""
    nodes = nodes_of("a", "b", "c")
    nodes["a"]["metadata"]["annotations"] = wave_record("upgrade", NEW_RELEASE, "2026-11-20T10:00:00Z")
    nodes["b"]["metadata"]["annotations"] = wave_record("upgrade", NEW_RELEASE, "2026-11-20T09:00:00Z")
    nodes["c"]["metadata"]["annotations"] = wave_record("upgrade", OLD_RELEASE, "2025-11-20T10:00:00Z", run="r0")
    older = {"previous": NEW_RELEASE, "staged": {NEW_RELEASE: {"version": "24.1", "kernel": KERNEL}}, "holders": []}
    hosts = [dict(backward(), name=name) for name in ("a", "b")] + [host("c", upgrade=older)]
    hosts[0]["facts"], hosts[1]["facts"] = [dict(backward()["facts"], boot_id="boot-" + name) for name in ("a", "b")]
    if first == "rollback":  # a went back already
        nodes["a"]["metadata"]["annotations"] = wave_record(
            "rollback", OLD_RELEASE, "2026-11-21T10:00:00Z", **{"from": {"version": NEW, "release": NEW_RELEASE}}
        )
        hosts[0] = host("a", upgrade=older)
    plan = make(hosts, nodes=nodes, reason="rollback")
    verdicts = {entry.name: entry.verdict for entry in plan.entries}
    assert verdicts == {"a": "ready" if first == "upgrade" else "up-to-date", "b": "ready", "c": "skipped"}
    assert "was not part of the last upgrade, to 25.5.2" in plan.entries[2].notes[0]
    assert "c" in plan.settled_nodes
    alone = make([hosts[2]], nodes=nodes, reason="rollback")
    assert alone.entries[0].verdict == "ready"


# --- for people and machines ---


def test_table():
    nodes = nodes_of("a", "b", "c", annotations=ended(minutes=12))
    plan = make(
        [host("a"), host("b"), host("c", loaded=NEW_RELEASE)], nodes=nodes, pods=[pod("web-1", node="b")], budgets=[budget()]
    )
    assert fleet_plan.table(plan) == [
        "#  NODE  CHIPS     FROM    TO      EVICTIONS  VERDICT",
        # c has shown that the driver works on such hosts.
        "1  a     8 x 910B  25.5.0  25.5.2  -          ready",
        "-  b     8 x 910B  25.5.0  25.5.2  1 (0 NPU)  blocked",
        "-  c     8 x 910B  25.5.2  25.5.2  -          up-to-date",
        "",
        "Blockers:",
        "  b: the pod train/web-1 (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget train/web allows no disruption now:"
        " 2 healthy, 2 needed",
        "",
        "1 of 3 nodes is due, 1 blocked; about 12 min.",
    ]


def test_canaries_only():
    """The first of each pool, and in a pool where the driver has shown that it works none; the others are due, but later."""
    hosts = [host("a"), host("b"), host("p", device="d500"), host("q", device="d500", loaded=NEW_RELEASE)]
    plan = make(hosts, canary=True, park=True)
    assert [entry.name for entry in plan.ordered] == plan.result()["order"] == ["a"]
    assert {entry.name: (entry.verdict, entry.later) for entry in plan.entries} == {
        "a": ("ready", False),
        "b": ("ready", True),
        "p": ("ready", True),
        "q": ("up-to-date", False),
    }
    assert plan.due_nodes == ["a", "b", "p"] and plan.green
    assert plan.park == [plan.entries[0].checked.family["resource"]]
    assert "3 of 4 nodes are due, 2 of them later: this run takes only the first of each pool" in plan.summary
    assert fleet_plan.table(plan)[1].endswith("ready, first of its kind") and fleet_plan.table(plan)[2].endswith("ready, later")
    assert make(hosts, park=True).result()["order"] == ["a", "b", "p"]


def test_a_killed_run_for_canaries_is_gone_on_with_by_the_same_node():
    """The node that it left half-way is the first of its pool, whether its record or only its driver on trial says so."""
    nodes = nodes_of("a", "b", "c")
    nodes["b"]["metadata"]["annotations"] = {
        "npuops.ascend/maintenance": json.dumps(record(to={"version": NEW, "release": NEW_RELEASE}))
    }
    plan = make([host("a"), host("b"), host("c")], nodes=nodes, canary=True)
    assert plan.result()["order"] == ["b"] and [entry.later for entry in plan.entries] == [True, False, True]
    staged = {NEW_RELEASE: {"version": NEW, "kernel": KERNEL}}
    trial = host("b", loaded=NEW_RELEASE, upgrade={"trial": NEW_RELEASE, "previous": None, "staged": staged, "holders": []})
    trial["facts"]["driver"]["good"] = OLD_RELEASE
    assert make([host("a"), trial], canary=True).result()["order"] == ["b"]


def test_canaries_only_go_on_with_what_is_in_maintenance_and_leave_what_is_blocked():
    nodes = nodes_of("a", "b")
    plan = make([host("a"), host("b")], nodes=nodes, pods=[pod("web-1", node="a")], budgets=[budget()], canary=True)
    assert plan.result()["order"] == ["b"] and plan.result()["deferred"] == []
    assert "-e npu_upgrade_on_blocked=defer" in plan.problem


def test_what_several_hosts_have_in_common_is_told_once():
    hosts = [host("n%02d" % number) for number in range(20)]
    nodes = nodes_of(*[entry["name"] for entry in hosts])
    lines = fleet_plan.table(make(hosts, nodes=nodes, tools={"support": lambda *_args: ([], ["containerd is old"])}))
    assert "  n00, n01, n02, n03, n04, n05, n06, n07 and 12 more: containerd is old" in lines
    assert sum("containerd is old" in line for line in lines) == 1


def test_hosts_without_a_chip_do_not_count():
    plan = make([host("a"), host("cpu", chip_count=0, family=None)])
    assert plan.summary.startswith("1 of 1 node is due;")


def test_nothing_but_trouble():
    plan = make([host("a", boot_id="x")])
    assert plan.summary == "Nothing can be done on 1 node now, 1 blocked."
    assert "25.5.2" in fleet_plan.table(plan)[1]


def test_npu_nodes_that_this_run_does_not_see_are_named():
    nodes = nodes_of("a", "b", labels={"openfuyao.com/npu.present": ""})
    assert make([host("a")], nodes=nodes).cluster_notes == ["not among the hosts of this run: b"]


def test_halt_and_holders_are_told():
    slots = {
        "max": 2,
        "halted": {"who": "run r1", "why": "npu-b failed.", "when": "2026-11-21T10:00:00Z"},
        "holders": {"b": {"run": "r1", "since": "2026-11-21T10:00:00Z"}},
    }
    plan = make([host()], slots=slots)
    lines = fleet_plan.table(plan)
    told = [line for line in lines if "halted since" in line]
    assert len(told) == 1 and told[0].startswith("  halted since 2026-11-21T10:00:00Z by run r1: npu-b failed. After fixing this")
    assert "  cluster: in maintenance now: b" in lines


HALT = {"who": "run r1", "why": "npu-b failed.", "when": "2026-11-21T10:00:00Z", "reason": "upgrade"}


def test_a_halt_names_all_ways_out():
    plan = make([host()], slots={"max": 1, "halted": HALT, "holders": {}})
    assert not plan.green and plan.park == []
    assert "ansible-playbook npuops.ascend.upgrade -e npu_upgrade_clear_halt=true" in plan.problem
    assert "To go back instead: ansible-playbook npuops.ascend.rollback" in plan.problem
    assert make([host()], slots={"max": 1, "halted": HALT, "holders": {}}, clear_halt=True).green


@pytest.mark.parametrize(("reason", "held"), [("upgrade", False), ("rollback", True)])
def test_going_back_is_no_way_that_a_halted_upgrade_bars(reason, held):
    plan = make([backward()], reason="rollback", slots={"max": 1, "halted": dict(HALT, reason=reason), "holders": {}})
    assert plan.held is held and bool(plan.cluster_reasons) is held
    assert "rollback -e npu_upgrade_clear_halt=true" in plan.problem if held else plan.green


def test_a_halted_run_finishes_what_is_in_maintenance():
    nodes = nodes_of("a", "b")
    nodes["a"]["metadata"]["annotations"] = {"npuops.ascend/maintenance": json.dumps(record())}
    stuck = {"max": 1, "halted": dict(HALT, node="a"), "holders": {"a": {"run": "r1", "since": "2026-11-21T10:00:00Z"}}}
    plan = make([host("a"), host("b")], nodes=nodes, slots=stuck, park=True)
    assert plan.green and plan.held and plan.result()["in_flight"] == ["a"] and plan.result()["order"] == ["a", "b"]
    assert any("only continues nodes already in maintenance" in note for note in plan.cluster_notes)
    assert any(
        "finish a first: ansible-playbook npuops.ascend.upgrade. To continue without it" in line for line in fleet_plan.table(plan)
    )


def test_a_pool_is_proved_by_a_node_that_has_the_driver():
    plan = make([host("a"), host("b", loaded=NEW_RELEASE), host("c")])
    assert [entry.result()["proved"] for entry in plan.entries] == [True, False, True]
    nodes = nodes_of("a", "b")
    nodes["a"]["metadata"]["annotations"] = {"npuops.ascend/maintenance": json.dumps(record())}
    plan = make([host("a"), host("b")], nodes=nodes)
    assert [entry.result()["proved"] for entry in plan.entries] == [False, False], "one that is on its way proves nothing"
    assert plan.entries[0].pool == plan.entries[1].pool


def test_a_host_that_does_not_answer_is_of_the_kind_that_its_node_says():
    """It is the first of its kind, and the others wait for it."""
    nodes = under_way("upgrade", "new", **TRIED)
    nodes["a"]["metadata"]["labels"] = {"npuops.ascend/chip": "910B"}
    nodes.update(nodes_of("b"))
    plan = make([unreachable(), host("b")], nodes=nodes)
    assert plan.entries[0].verdict == "in-flight" and plan.entries[0].pool == plan.entries[1].pool


def test_why_it_is_halted_stands_there_once():
    why = "The upgrade of a to 25.5.2 failed: npu-smi lists 7 chips. It is back on the old driver."
    nodes = nodes_of("a", "b", labels={"npu.openfuyao.com/driver-upgrade-state": "upgrade-failed"})
    for name in nodes:
        told = why if name == "a" else "Its disk is full."
        nodes[name]["metadata"]["annotations"] = ended("rolled-back", failure=told)
    slots = {"max": 1, "halted": {"who": "run r1", "why": why, "when": "2026-11-21T10:00:00Z"}, "holders": {}}
    lines = fleet_plan.table(make([host("a"), host("b")], nodes=nodes, slots=slots))
    assert sum(line.startswith("  halted since 2026-11-21T10:00:00Z by run r1. After") for line in lines) == 1
    assert sum("npu-smi lists 7 chips" in line for line in lines) == 1


def test_a_driver_that_does_not_answer_is_not_merely_up_to_date():
    nodes = nodes_of("a", "b", annotations={"npuops.ascend/wedged": "{}"})
    nodes["b"]["metadata"]["annotations"] = {}
    invalid = {"valid": False, "msg": "7 of 8 chips answer.", "checks": []}
    plan = make([host("a", loaded=NEW_RELEASE), host("b", loaded=NEW_RELEASE, validation=invalid)], nodes=nodes)
    lines = fleet_plan.table(plan)
    assert [line.split("  ")[-1] for line in lines[1:3]] == ["up-to-date, wedged", "up-to-date"]
    assert "  a: its driver no longer responds (npuops.ascend/wedged): npuops.ascend.heal" in lines
    assert "  b: its driver fails validation: 7 of 8 chips answer" in lines
    assert plan.settled_nodes == ["a", "b"]


def test_the_result_is_plain_data():
    plan = make([host("a"), unreachable("b")], pods=[pod("web-1")], budgets=[budget()])
    text = json.dumps(plan.result())
    assert json.loads(text)["counts"]["blocked"] == 1
    assert "registry_password" not in text


def test_an_image_whose_size_cannot_be_told_is_told():
    def size(*_args):
        raise NpuError("The registry\n broke.")

    assert "The registry broke" in only(host(), tools={"size": size}).reasons


def test_an_upgrade_needs_a_version_that_somebody_named():
    """What install begins with, 25.5.0, would move a whole fleet back."""
    entry = host(loaded=NEW_RELEASE, config={"driver_version": None})
    found = only(entry)
    assert found.verdict == "blocked" and "npu_driver_version is not set" in found.reasons[0] and found.target is None
