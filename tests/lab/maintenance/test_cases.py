# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can come between in a rollout, one test each; every one is judged by what the cluster and the hosts say."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time

import pytest
import yaml

from support.crash.gate import Gate
from support.lab.observer import APPROVAL, RECORD, STATE, VERSION
from support.lab.rollout import (
    NPU_NODES,
    OTHER,
    TAKEOVER,
    address,
    at_step,
    last,
    proof,
    run,
    slots,
    target,
    untouched,
    upgrade,
    version_of,
    watch,
)
from support.lab.workloads import A2, DUO, Team
from support.paths import CHECKOUT
from support.patience import PATIENCE

ALL = "--limit=" + ",".join(NPU_NODES)
CORDON_STEPS = ("cordon-required", "wait-for-jobs-required", "pod-deletion-required", "drain-required", "reboot-required")


@pytest.fixture
def team(idle):
    with Team(idle, "maintenance-test") as one:
        yield one


# --- refused before anything is touched ---


@pytest.mark.core
def test_a_blocked_node_stops_the_rollout_before_it_begins(idle, team):
    version, gate = target(idle, "npu-a", "npu-b"), Gate()
    team.deploy("stuck", node="npu-b", budget={"minAvailable": 1})
    with watch(idle) as observer:
        text = upgrade(idle, "--limit=npu-a,npu-b", expect=1, gate=gate, npu_driver_version=version)
    pod = team.pods("stuck")[0]["metadata"]["name"]
    assert "maintenance-test/stuck" in text and pod in text, text
    assert untouched(observer, *NPU_NODES) == []
    assert not [call for call in gate.calls if "eviction" in call.what]
    assert proof(idle, observer, {}) == []


def test_an_image_missing_for_one_profile(idle, tmp_path):
    repository = str(idle.variable("npu_driver_repository"))
    more = tmp_path / "more.yml"
    more.write_text(
        yaml.safe_dump({"npu_nodes": {"hosts": {"npu-c": {"npu_driver_image": f"{repository}:25.5.1-nobody-has-it"}}}}),
        encoding="utf-8",
    )
    version = target(idle, "npu-a", "npu-b")
    with watch(idle) as observer:
        text = upgrade(idle, ALL, "-i", str(more), expect=1, npu_driver_version=version)
    assert "25.5.1-nobody-has-it" in text and "npu-c" in text, text
    assert untouched(observer, *NPU_NODES) == []
    assert proof(idle, observer, {}) == []


def test_a_wrong_inventory_alias(idle, tmp_path):
    """npu-a's name with npu-b's address: the one would be drained and the other rebooted.

    Or, where npu-b has the driver already, npu-a would be called up to date.
    """
    more = tmp_path / "more.yml"
    more.write_text(yaml.safe_dump({"npu_nodes": {"hosts": {"npu-a": {"ansible_host": address(idle, "npu-b")}}}}), encoding="utf-8")
    version = target(idle, "npu-a", "npu-b")
    with watch(idle) as observer:
        for wanted in (version, OTHER[version]):
            text = upgrade(idle, "--limit=npu-a", "-i", str(more), expect=1, npu_driver_version=wanted)
            assert "the host is not the node npu-a" in text, text
    assert untouched(observer, *NPU_NODES) == []
    assert proof(idle, observer, {}) == []


def test_a_host_that_does_not_answer(idle):
    version = target(idle, *NPU_NODES)
    with watch(idle) as observer, run(idle, ALL, npu_driver_version=version) as one:
        one.ssh.lost.add(address(idle, "npu-b"))
        assert one.wait() != 0
        assert "npu-b" in one.text
    assert untouched(observer, *NPU_NODES) == []
    assert proof(idle, observer, {}) == []


# --- deferred, interrupted, disturbed ---


def test_a_blocked_node_is_deferred_and_finishes_when_freed(idle, team):
    version = target(idle, "npu-a", "npu-b")
    team.deploy("stuck", node="npu-a", budget={"minAvailable": 1})
    pod = team.pods("stuck")[0]["metadata"]["uid"]
    with (
        watch(idle) as observer,
        run(
            idle,
            "--limit=npu-a,npu-b",
            npu_driver_version=version,
            npu_upgrade_on_blocked="defer",
            npu_upgrade_drain={"timeout": 60},
        ) as one,
    ):
        observer.wait(lambda sight: sight.name == "npu-b" and sight.labels.get(VERSION) == version, PATIENCE, "npu-b is done")
        assert "maintenance-test/stuck" in one.text
        assert [found["metadata"]["uid"] for found in team.pods("stuck")] == [pod]
        idle.kubectl("delete", "pdb", "stuck", "-n", team.name)
        assert one.wait() == 0, one.text[-4000:]
    assert proof(idle, observer, {"npu-a": 1, "npu-b": 1}, version) == []


def test_a_blocked_node_is_given_back(idle, team):
    """Free when the plan looks, blocked when it is drained: at the limit the node is given back, and nothing has rebooted."""
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", holds=True, budget={"maxUnavailable": 1})
    with (
        watch(idle) as observer,
        run(
            idle,
            "--limit=npu-a",
            npu_driver_version=version,
            npu_upgrade_on_blocked="defer",
            npu_upgrade_drain={"timeout": 5},
            npu_upgrade_pod_deletion={"timeout": 5},
        ) as one,
    ):
        status = one.wait()
        text = one.text
    assert status != 0 and "slow" in text, text[-4000:]
    node = observer.now()["npu-a"]
    assert not node.cordoned and not node.record and node.labels.get(STATE) == "upgrade-required"
    assert slots(idle)["holders"] == {}
    assert version_of(idle, "npu-a") != version
    assert observer.problems(1, {}) == []


def test_ctrl_c_tells_what_is_left_and_how_to_go_on(idle, team):
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", holds=True)
    with watch(idle) as observer:
        with run(idle, "--limit=npu-a", npu_driver_version=version) as one:
            at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
            one.controller.interrupt()
            assert one.wait() != 0
            told = one.text[one.text.index("npu-a was interrupted in the step ") :]
        words = shlex.split(told.partition("To continue it: ")[2].partition(". To abandon it: ")[0])
        assert words[0] == "ansible-playbook" and words[words.index("npuops.ascend.upgrade") :][1:3] == ["--limit", "npu-a"]
        assert json.loads(words[-1])["npu_driver_version"] == version
        assert observer.now()["npu-a"].cordoned
        team.let_go("slow")
        upgrade(idle, "--limit=npu-a", npu_driver_version=version, **TAKEOVER)
    assert proof(idle, observer, {"npu-a": 1}, version) == []


def test_lost_ssh(idle, team):
    """For half a minute, from the middle of a drain, in which the drain comes to its end."""
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", holds=True)
    with watch(idle) as observer:
        with run(idle, "--limit=npu-a", npu_driver_version=version) as one:
            at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
            one.ssh.lost.add(address(idle, "npu-a"))
            team.let_go("slow")
            time.sleep(30)  # the fault itself
            one.ssh.lost.clear()
            status = one.wait()
        if status != 0:
            upgrade(
                idle, "--limit=npu-a", npu_driver_version=version, npu_upgrade_clear_halt=True, npu_upgrade_retry=True, **TAKEOVER
            )
    assert proof(idle, observer, {"npu-a": 1}, version) == []


@pytest.mark.core
def test_two_controllers(idle, team):
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", ends_in=10)
    with (
        watch(idle) as observer,
        run(idle, "--limit=npu-a", npu_driver_version=version) as one,
        run(idle, "--limit=npu-a", npu_driver_version=version) as other,
    ):
        statuses = [one.wait(), other.wait()]
    assert 0 in statuses, one.text[-3000:] + other.text[-3000:]
    assert proof(idle, observer, {"npu-a": 1}, version) == []


def test_a_second_controller_comes_later(idle, team):
    """It must see that the first one is at work, and leave the node alone."""
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", holds=True)
    with watch(idle) as observer, run(idle, "--limit=npu-a", npu_driver_version=version) as one:
        at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
        record = observer.now()["npu-a"].record
        with run(idle, "--limit=npu-a", npu_driver_version=version) as other:
            # Its plan is made, and the first one is still at work.
            idle.wait_for(lambda: "VERDICT" in other.text or not other.controller.running, PATIENCE, "the second one's plan")
            team.let_go("slow")
            assert one.wait() == 0, one.text[-4000:]
            other.wait()
    runs = {sight.record["run"] for sight in observer.timeline if sight.kind == "node" and sight.record}
    assert runs == {record["run"]}
    assert proof(idle, observer, {"npu-a": 1}, version) == []


def test_somebody_uncordons(idle, team):
    """No reboot while pods can be scheduled: it is cordoned again, or given up; the observer sees to that."""
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", holds=True)
    with watch(idle) as observer:
        with run(idle, "--limit=npu-a", npu_driver_version=version) as one:
            at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
            idle.kubectl("uncordon", "npu-a")
            team.let_go("slow")
            status = one.wait()
        if status != 0:
            upgrade(idle, "--limit=npu-a", npu_driver_version=version, npu_upgrade_retry=True, **TAKEOVER)
    assert proof(idle, observer, {"npu-a": 1}, version) == []


def test_the_node_object_is_deleted_in_a_drain(idle, team):
    """The run stops and gives the slot back; when the kubelet has registered again, a run finishes."""
    version = target(idle, "npu-a")
    before = idle.node("npu-a")["metadata"]
    team.deploy("slow", node="npu-a", holds=True)
    with run(idle, "--limit=npu-a", npu_driver_version=version) as one, watch(idle) as observer:
        at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
        idle.kubectl("delete", "node", "npu-a")
        team.let_go("slow")
        assert one.wait() != 0
    boot = idle.ssh("npu-a", "cat /proc/sys/kernel/random/boot_id").stdout.strip()
    assert boot == before_boot(observer, "npu-a"), "it was rebooted although nobody knew whether it is drained"
    assert slots(idle)["holders"] == {}
    idle.ssh("npu-a", "systemctl restart kubelet")
    idle.wait_for(lambda: idle.kubectl("get", "node", "npu-a", "--ignore-not-found"), PATIENCE, "npu-a is registered again")
    idle.playbook("install")  # its labels went with the object
    upgrade(idle, "--limit=npu-a", npu_driver_version=version, npu_upgrade_clear_halt=True, npu_upgrade_retry=True, **TAKEOVER)
    assert version_of(idle, "npu-a") == version
    assert idle.node("npu-a")["metadata"]["uid"] != before["uid"]


def before_boot(observer, node: str) -> str:
    return next(sight.boot_id for sight in observer.timeline if sight.name == node)


def test_the_node_object_is_deleted_while_it_reboots(idle):
    """A new Node object with another UID: cordoned again, validated, finished, with the one reboot it had."""
    version = target(idle, "npu-a")
    first = idle.node("npu-a")
    idle.fault("npu-a", "no-return")  # until the object is deleted, however long that takes
    with watch(idle) as observer, run(idle, "--limit=npu-a", npu_driver_version=version) as one:
        observer.wait(
            lambda sight: sight.name == "npu-a" and bool(sight.record) and bool(sight.record["boot_id"]), PATIENCE, "the intent"
        )
        idle.wait_for(lambda: idle.ssh("npu-a", "true", check=False).returncode != 0, PATIENCE, "npu-a is down", 0.2)
        idle.kubectl("delete", "node", "npu-a")
        idle.fault("npu-a", "clear")
        status = one.wait()
        text = one.text
    if status != 0:
        idle.playbook("install")
        text += upgrade(
            idle, "--limit=npu-a", npu_driver_version=version, npu_upgrade_clear_halt=True, npu_upgrade_retry=True, **TAKEOVER
        )
    node = idle.node("npu-a")
    assert node["metadata"]["uid"] != first["metadata"]["uid"], "it was not deleted in time"
    assert version_of(idle, "npu-a") == version, text[-4000:]
    assert STATE not in node["metadata"]["labels"] and RECORD not in node["metadata"]["annotations"]
    assert not node["spec"].get("unschedulable") and slots(idle)["holders"] == {}
    boots = {sight.boot_id for sight in observer.timeline if sight.name == "npu-a" and sight.boot_id}
    assert len(boots) == 2, text[-4000:]


# --- bad reboots ---


def test_a_node_that_does_not_return(idle):
    """Halted, the others as they were; when it is back, the next run finishes."""
    version = target(idle, *NPU_NODES)
    idle.fault("npu-a", "no-return")
    with watch(idle) as observer:
        text = upgrade(idle, ALL, expect=1, npu_driver_version=version, npu_upgrade_reboot={"timeout": 30})
        assert slots(idle)["halted"] and "npu-a" in json.dumps(slots(idle)["halted"]), text[-3000:]
        assert list(slots(idle)["holders"]) == ["npu-a"]
        node = observer.now()["npu-a"]
        assert node.cordoned and node.record["step"] == "reboot-required"
        assert untouched(observer, "npu-b", "npu-c") == []
        # Halted means halted: no run begins with another node.
        upgrade(idle, "--limit=npu-b", expect=1, npu_driver_version=version, **TAKEOVER)
        assert untouched(observer, "npu-b", "npu-c") == []
        idle.fault("npu-a", "clear")
        idle.wait_for(lambda: idle.ssh("npu-a", "true", check=False).returncode == 0, PATIENCE, "npu-a is back")
        upgrade(idle, ALL, npu_driver_version=version, npu_upgrade_clear_halt=True, **TAKEOVER)
    assert proof(idle, observer, dict.fromkeys(NPU_NODES, 1), version) == []


# --- more than one at a time ---


@pytest.mark.parametrize("parallel", [pytest.param(2, marks=pytest.mark.core), 0])
def test_several_at_once(idle, team, parallel):
    """Never more than allowed, and as many as allowed."""
    version = target(idle, *NPU_NODES)
    for node in NPU_NODES:
        team.deploy(f"on-{node}", node=node, ends_in=5)
    with watch(idle) as observer:
        upgrade(idle, ALL, npu_driver_version=version, npu_upgrade_max_parallel=parallel)
    assert proof(idle, observer, dict.fromkeys(NPU_NODES, 1), version, parallel) == []
    most = max(len(sight.slots["holders"]) for sight in observer.timeline if sight.kind == "lease")
    assert most == (parallel or len(NPU_NODES))


# --- approval ---


def documented(lab, begin: str, version: str = "25.5.1") -> str:
    """Run the one command line of the guide that begins so, as it is printed there, but for the ``version`` of the driver."""
    guide = (CHECKOUT / "docs" / "upgrade.md").read_text(encoding="utf-8").splitlines()
    (line,) = (text[2:].replace("25.5.1", version) for text in guide if text.startswith("$ " + begin))
    environ = {**os.environ, "KUBECONFIG": str(lab.kubeconfig), "PATH": f"{lab.state}/bin:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-c", line], env=environ, check=True, capture_output=True, text=True, timeout=PATIENCE, cwd=CHECKOUT
    ).stdout


STATES = "kubectl get nodes -l openfuyao.com/npu.present -o 'custom-columns="
APPROVE_ALL = "kubectl get nodes -l openfuyao.com/npu.present -o name"


@pytest.mark.core
def test_approval_is_asked_for_and_given(idle):
    """Then two nodes at a time are taken into maintenance: never more, and as many as that."""
    version = target(idle, *NPU_NODES)
    with watch(idle) as observer:
        text = upgrade(idle, ALL, npu_upgrade_auto="false", npu_driver_version=version)
        assert untouched(observer, *NPU_NODES) == []
        assert documented(idle, STATES).count("approval-required") == 3, text[-3000:]
        assert documented(idle, "kubectl get nodes -l npu.openfuyao.com/driver-upgrade-state").count("npu-") == 3
        events = documented(idle, "kubectl get events -A")
        assert events.count("reason=upgrade") >= 3, events
        documented(idle, APPROVE_ALL, version)
        upgrade(idle, ALL, npu_upgrade_auto="false", npu_driver_version=version, npu_upgrade_max_parallel=2)
    assert proof(idle, observer, dict.fromkeys(NPU_NODES, 1), version, 2) == []
    assert max(len(sight.slots["holders"]) for sight in observer.timeline if sight.kind == "lease") == 2
    record = last(idle, "npu-a")
    assert record["approval"]["time"] and record["approval"]["manager"], record
    assert documented(idle, STATES).count("<none>") == 3


def test_approval_before_everything(idle):
    version = target(idle, "npu-a")
    documented(idle, APPROVE_ALL, version)
    with watch(idle) as observer:
        upgrade(idle, "--limit=npu-a", npu_upgrade_auto=False, npu_driver_version=version)
        approved = {name: node.annotations.get(APPROVAL) for name, node in observer.now().items() if name in NPU_NODES}
        assert approved == {"npu-a": None, "npu-b": "true", "npu-c": "true"}
        for node in ("npu-b", "npu-c"):
            idle.kubectl("annotate", "node", node, f"{APPROVAL}-")
    assert proof(idle, observer, {"npu-a": 1}, version) == []


def test_approval_while_it_waits(idle):
    version = target(idle, "npu-a")
    with (
        watch(idle) as observer,
        run(idle, "--limit=npu-a", npu_upgrade_auto=False, npu_driver_version=version, npu_upgrade_approval_wait="300") as one,
    ):
        observer.wait(lambda sight: sight.name == "npu-a" and sight.labels.get(STATE) == "approval-required", PATIENCE, "it asks")
        assert not observer.now()["npu-a"].cordoned
        idle.kubectl("annotate", "node", "npu-a", f"{APPROVAL}=true")
        assert one.wait() == 0, one.text[-4000:]
    assert proof(idle, observer, {"npu-a": 1}, version) == []


def test_approval_withdrawn(idle, team):
    """In the middle of a drain: no reboot, and the node is given back."""
    version = target(idle, "npu-a")
    team.deploy("slow", node="npu-a", holds=True)
    idle.kubectl("annotate", "node", "npu-a", f"{APPROVAL}=true")
    with watch(idle) as observer, run(idle, "--limit=npu-a", npu_upgrade_auto=False, npu_driver_version=version) as one:
        at_step(observer, "npu-a", "pod-deletion-required", "drain-required")
        idle.kubectl("annotate", "node", "npu-a", f"{APPROVAL}-")
        team.let_go("slow")
        one.wait()
        text = one.text
    node = observer.now()["npu-a"]
    assert not node.cordoned and not node.record, text[-4000:]
    assert node.labels.get(STATE) in ("approval-required", "upgrade-required"), text[-4000:]
    assert slots(idle)["holders"] == {}
    assert observer.problems(1, {}) == []
    assert version_of(idle, "npu-a") != version


# --- nothing to do ---


def test_a_second_run_changes_nothing(idle):
    version = target(idle, *NPU_NODES)
    upgrade(idle, ALL, npu_driver_version=version, npu_upgrade_max_parallel=0)
    gate = Gate()
    with watch(idle) as observer:
        text = upgrade(idle, ALL, gate=gate, npu_driver_version=version, npu_upgrade_max_parallel="0")
    assert "changed=0" in text and "changed=1" not in text, text[-3000:]
    assert [call.what for call in gate.calls if call.target == "api"] == []
    assert proof(idle, observer, {}) == []


def test_options_as_text(idle, team):
    """As a survey gives them."""
    version = target(idle, "npu-c")
    team.deploy("work", node="npu-c", chips={DUO: 1})
    with watch(idle) as observer:
        upgrade(
            idle,
            "--limit=npu-c",
            npu_driver_version=version,
            npu_upgrade_auto="true",
            npu_upgrade_max_parallel="1",
            npu_upgrade_wait_for_jobs={"selector": "", "timeout": "0"},
            npu_upgrade_pod_deletion={"force": "false", "timeout": "60", "delete_empty_dir": "false"},
            npu_upgrade_drain={"enable": "true", "force": "false", "timeout": "60", "skip_selector": ""},
            npu_upgrade_reboot={"timeout": "300"},
            npu_upgrade_max_failures="1",
            npu_upgrade_retry="false",
            npu_upgrade_smoke_pod="",
            npu_upgrade_approval_wait="",
            npu_upgrade_plan_file="",
        )
    assert proof(idle, observer, {"npu-c": 1}, version) == []


def test_pods_with_chips_go_first(idle, team):
    """NPU pods leave before the others, and come back when the chips do."""
    version = target(idle, "npu-a")
    team.deploy("train", node="npu-a", chips={A2: 2}, replicas=2, ends_in=2)
    team.deploy("other", node="npu-a", ends_in=2)
    with watch(idle) as observer:
        upgrade(idle, "--limit=npu-a", npu_driver_version=version)
        team.wait_available("train", 2)
        team.wait_available("other", 1)
    assert proof(idle, observer, {"npu-a": 1}, version) == []
