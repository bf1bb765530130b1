# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people may decide about a rollout: whom it leaves alone, which pods go and how, until when an approval holds, how many may fail.

A reboot takes a while, so that each rollout here shows several of them at once.
"""

from __future__ import annotations

import datetime
import json

import pytest
import yaml

from support.lab.observer import APPROVAL, LAST, REQUESTED, STATE, VERSION
from support.lab.rollout import NPU_NODES, OTHER, host_boots, proof, run, upgrade, version_of, watch
from support.lab.workloads import A2, PULL_SECRET, Team
from support.patience import PATIENCE

SKIP = "npuops.ascend/skip"
KEEP = {"lab/keep": "yes"}


@pytest.fixture
def team(idle):
    with Team(idle, "policy-test") as one:
        yield one


def overlay(path, **hosts: dict) -> tuple[str, str]:
    """Arguments that lay variables of hosts over the lab's inventory. Names of hosts have _ in the place of -."""
    document = {"npu_nodes": {"hosts": {name.replace("_", "-"): values for name, values in hosts.items()}}}
    (path / "zz-overlay.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return "-i", str(path / "zz-overlay.yml")


def said(text: str) -> str:
    """An output with single spaces: Ansible breaks lines."""
    return " ".join(text.split())


def untouched(observer, *nodes: str) -> bool:
    """Whether these nodes were never cordoned, had no record and no other boot."""
    first = {sight.name: sight for sight in observer.timeline if sight.first and sight.kind == "node"}
    return not [
        sight
        for sight in observer.timeline
        if sight.kind == "node"
        and sight.name in nodes
        and (sight.record or sight.cordoned or sight.boot_id != first[sight.name].boot_id)
    ]


def lone(team: Team, name: str, node: str, chips: dict | None = None, scratch: bool = False) -> None:
    """A pod that no controller would create again."""
    volumes = {"volumes": [{"name": "scratch", "emptyDir": {}}]} if scratch else {}
    team.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": team.name},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "terminationGracePeriodSeconds": 1,
                "imagePullSecrets": [{"name": PULL_SECRET}],
                **volumes,
                "containers": [
                    {
                        "name": "main",
                        "image": team.image,
                        "command": ["sleep", "86400"],
                        "resources": {"limits": {key: str(count) for key, count in (chips or {}).items()}},
                    }
                ],
            },
        }
    )
    team.lab.wait_for(lambda: team.lab.pod(name, team.name)["status"]["phase"] == "Running", PATIENCE, f"{name} runs")


def leaving(team: Team, name: str) -> bool:
    """Whether a pod of a Deployment was told to end, or has."""
    return all("deletionTimestamp" in pod["metadata"] or pod["spec"].get("nodeName") is None for pod in team.pods(name))


@pytest.mark.core
def test_who_is_left_alone_and_which_pods_go(idle, team, tmp_path):
    """One run: npu-a is skipped by its label; npu-b is drained by force, NPU pods first, without what a selector keeps; npu-c, of which
    the inventory wants another version than of npu-b, has that one and reboots because its label asks for it."""
    new, same = OTHER[version_of(idle, "npu-b")], version_of(idle, "npu-c")
    versions = overlay(
        tmp_path, npu_a={"npu_driver_version": new}, npu_b={"npu_driver_version": new}, npu_c={"npu_driver_version": same}
    )
    idle.kubectl("label", "node", "npu-a", f"{SKIP}=true")
    idle.kubectl("label", "node", "npu-c", f"{REQUESTED}=true")
    team.deploy("train", node="npu-b", chips={A2: 1}, holds=True)
    team.deploy("other", node="npu-b")
    team.deploy("kept", node="npu-b", labels=KEEP, budget={"minAvailable": 1})
    lone(team, "lone-npu", "npu-b", {A2: 1})
    lone(team, "lone", "npu-b", scratch=True)
    kept = {pod["metadata"]["uid"] for pod in team.pods("kept")}

    with watch(idle) as observer:
        text = said(upgrade(idle, *versions, expect=1, npu_upgrade_drain={"skip_selector": "lab/keep"}))
        for pod, variable in (("lone-npu", "npu_upgrade_pod_deletion"), ("lone", "npu_upgrade_drain")):
            why = "it has no controller and would be lost; delete it, or set"
            assert f"the pod policy-test/{pod} cannot be evicted: {why} {variable}.force: true" in text, text
        assert "policy-test/kept" not in text, text
        assert untouched(observer, *NPU_NODES)

        with run(
            idle,
            *versions,
            npu_upgrade_max_parallel=0,
            npu_upgrade_pod_deletion={"force": True},
            npu_upgrade_drain={"force": True, "delete_empty_dir": True, "skip_selector": "lab/keep"},
        ) as one:
            idle.wait_for(lambda: leaving(team, "train"), PATIENCE, "the NPU pod is told to end")
            observer.wait(
                lambda sight: sight.name == "npu-c" and bool(sight.record) and bool(sight.record["boot_id"]),
                PATIENCE,
                "npu-c reboots",
            )
            # The other one has been on its way all the time, and its NPU pod still holds it up.
            assert not leaving(team, "other"), "it was evicted before the NPU pods were gone"
            team.let_go("train")
            assert one.wait() == 0, one.text[-6000:]
            text = said(one.text)
    assert f"is excluded by its label {SKIP}=true" in text and f"its label {REQUESTED}=true asks for it" in text, text
    assert untouched(observer, "npu-a")
    assert version_of(idle, "npu-a") != new or version_of(idle, "npu-c") == same
    assert proof(idle, observer, {"npu-b": 1, "npu-c": 1}, max_parallel=0) == []
    assert {name: idle.node(name)["metadata"]["labels"][VERSION] for name in ("npu-b", "npu-c")} == {"npu-b": new, "npu-c": same}
    assert (version_of(idle, "npu-b"), version_of(idle, "npu-c")) == (new, same)
    # What is evicted is deleted; this one ended with its host, and the Deployment has another one in its place.
    assert kept <= {pod["metadata"]["uid"] for pod in team.pods("kept")}, "what the selector keeps was evicted"
    left = {pod["metadata"]["name"] for pod in idle.pods(team.name)}
    assert not left & {"lone", "lone-npu"}, left
    team.wait_available("train", 1)
    team.wait_available("other", 1)


def test_an_approval_expires(idle):
    """An old one does not count; nothing is out of service, and the way to a new one is told. A younger one would."""
    version = OTHER[version_of(idle, "npu-a")]
    arguments = {"npu_upgrade_auto": False, "npu_driver_version": version}
    idle.kubectl("annotate", "node", "npu-a", f"{APPROVAL}=true")
    # It has a resolution of a second: by the clock that will judge it, it has to be older than one.
    idle.wait_for(lambda: age_of_approval(idle, "npu-a") > 2, PATIENCE, "the approval is two seconds old", 0.2)
    with watch(idle) as observer:
        text = said(upgrade(idle, "--limit=npu-a", npu_upgrade_approval_max_age=1, **arguments))
        assert "its approval of" in text and "is older than 1 s: approve it again" in text, text
        assert untouched(observer, *NPU_NODES)
        assert observer.now()["npu-a"].labels[STATE] in ("approval-required", "upgrade-required")
        # A Node without a record of its last maintenance, as reset leaves it, is asked for a new one in any case.
        idle.kubectl("annotate", "node", "npu-a", f"{APPROVAL}=true", "--overwrite")
        text = said(idle.playbook("plan", "--limit=npu-a", npu_upgrade_approval_max_age=86400, **arguments).stdout)
        assert "is older than" not in text and " ready" in text, text


def age_of_approval(lab, node: str) -> float:
    """Seconds since the annotation was set, by the machine's clock."""
    fields = [
        entry
        for entry in lab.node(node)["metadata"]["managedFields"]
        if f"f:{APPROVAL}" in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})
    ]
    then = max(datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00")) for entry in fields)
    return (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()


def test_more_than_one_may_fail(idle, tmp_path):
    """The smoke pod fails wherever it runs. By default it would be halted after the first node; here it is after the second."""
    image = str(idle.variable("npu_driver_repository")).split("/", maxsplit=1)[0] + "/lab/test:lab"
    (tmp_path / "smoke.yml").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "smoke", "namespace": "default"},
                "spec": {
                    "restartPolicy": "Never",
                    "imagePullSecrets": [{"name": PULL_SECRET}],
                    "containers": [
                        {"name": "main", "image": image, "command": ["/bin/sh", "-c", "echo no collective communication; exit 7"]}
                    ],
                },
            }
        ),
        encoding="utf-8",
    )
    upgrade(idle, npu_driver_version="25.5.0", npu_upgrade_max_parallel=0)
    old = {node: version_of(idle, node) for node in NPU_NODES}
    with watch(idle) as observer:
        text = upgrade(
            idle,
            expect=1,
            npu_driver_version="25.5.1",
            npu_upgrade_max_failures=2,
            npu_upgrade_smoke_pod=str(tmp_path / "smoke.yml"),
        )
    failed = {name for name in NPU_NODES if idle.node(name)["metadata"]["labels"].get(STATE) == "upgrade-failed"}
    assert len(failed) == 2, text[-4000:]
    assert untouched(observer, *set(NPU_NODES) - failed)
    halts = [sight.slots["halted"] for sight in observer.timeline if sight.kind == "lease" and sight.slots["halted"]]
    last = max(failed, key=lambda name: json.loads(idle.node(name)["metadata"]["annotations"][LAST])["times"]["reboot-required"])
    assert halts and f"of {last} to" in json.dumps(halts[0]), halts
    assert {node: version_of(idle, node) for node in NPU_NODES} == old
    for node in failed:
        told = json.loads(idle.node(node)["metadata"]["annotations"][LAST])
        assert told["outcome"] == "rolled-back" and "no collective communication" in told["failure"], told
    assert observer.problems(1, dict.fromkeys(failed, 2)) == []
    assert not idle.pods("default"), "a smoke pod is still there"


HOLDER = "lab-holder"


@pytest.fixture
def holder(idle):
    """holder(device): a process of the host, in no pod, holds a chip. It ends with the test."""

    def hold(device: str) -> None:
        # The lab has no driver that could open a device; a file descriptor that only stands for it is all there can be.
        code = f'import os, signal; os.open("/dev/{device}", os.O_PATH); signal.pause()'
        idle.ssh("npu-a", f"systemd-run --quiet --unit={HOLDER} python3 -c '{code}'")
        idle.wait_for(
            lambda: device in idle.ssh("npu-a", f"ls -l /proc/$(systemctl show -P MainPID {HOLDER})/fd", check=False).stdout,
            PATIENCE,
            "it has it open",
        )

    yield hold
    idle.ssh("npu-a", f"systemctl stop {HOLDER}.service; systemctl reset-failed {HOLDER}.service", check=False)


def test_a_hidden_holder_of_a_chip(idle, team, holder):
    """Found by the plan; and where it comes after the plan, the node is given back and nothing is cut off."""
    version = OTHER[version_of(idle, "npu-a")]
    team.deploy("slow", node="npu-a", holds=True)
    boots = host_boots(idle)
    with watch(idle) as observer:
        holder("davinci3")
        text = said(upgrade(idle, "--limit=npu-a", expect=1, npu_driver_version=version))
        assert "has davinci3 open and belongs to no pod; stop it" in text, text
        assert untouched(observer, *NPU_NODES)
        idle.ssh("npu-a", f"systemctl stop {HOLDER}.service")

        with run(idle, "--limit=npu-a", npu_driver_version=version) as one:
            observer.wait(lambda sight: sight.name == "npu-a" and sight.cordoned, PATIENCE, "npu-a is cordoned")
            holder("davinci3")
            team.let_go("slow")
            assert one.wait() != 0
            text = said(one.text)
    assert "hold chips: " in text and "davinci3" in text, text[-4000:]
    node = observer.now()["npu-a"]
    assert not node.cordoned and not node.record and node.labels.get(STATE) == "upgrade-required", text[-4000:]
    assert host_boots(idle) == boots and version_of(idle, "npu-a") != version


GROUP = "whitelist.test.npuops"


@pytest.fixture
def white_list(idle):
    """The kind ImageWhiteList in its namespace, with the rights that docs/access.md asks for; white_list(text...) says what it names."""
    api = "rbac.authorization.k8s.io"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"imagewhitelists.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "imagewhitelists", "kind": "ImageWhiteList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }
    place = {"namespace": "cpaas-system"}

    def apply(*items: dict) -> None:
        idle.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))

    def name_images(*texts: str) -> None:
        apply(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ImageWhiteList",
                "metadata": {"name": "ascend-driver", **place},
                "spec": {"images": list(texts)},
            }
        )

    try:
        apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cpaas-system"}}, definition)
        idle.kubectl("wait", "--for=condition=Established", "crd", f"imagewhitelists.{GROUP}", f"--timeout={PATIENCE}s")
        apply(
            {
                "apiVersion": f"{api}/v1",
                "kind": "Role",
                "metadata": {"name": "white-list", **place},
                "rules": [{"apiGroups": [GROUP], "resources": ["imagewhitelists"], "verbs": ["get", "patch"]}],
            },
            {
                "apiVersion": f"{api}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "white-list", **place},
                "roleRef": {"apiGroup": api, "kind": "Role", "name": "white-list"},
                "subjects": [{"kind": "ServiceAccount", "name": "npu-controller", "namespace": "npu-operator"}],
            },
        )
        yield name_images
    finally:
        idle.kubectl("delete", "crd", f"imagewhitelists.{GROUP}", "--ignore-not-found")
        idle.kubectl("delete", "namespace", "cpaas-system", "--ignore-not-found")


def test_images_that_may_not_run(idle, white_list):
    """Without the object no driver image may; with it those whose tag it names."""
    version = OTHER[version_of(idle, "npu-a")]
    plan = ("plan", "--limit=npu-a")
    arguments = {"npu_driver_version": version, "npu_upgrade_auto": True, "npu_plan_fail": True}
    with watch(idle) as observer:
        text = said(idle.playbook(*plan, check=False, **arguments).stdout)
        assert "no object ascend-driver in cpaas-system: no driver image is allowed" in text, text
        white_list(f"mlops/ascend-driver:{OTHER[version]}-910b-6.6.0-oe2403sp3")
        text = said(upgrade(idle, "--limit=npu-a", expect=1, npu_driver_version=version))
        assert "the ImageWhiteList ascend-driver in cpaas-system does not contain" in text, text
        (tag,) = {word.rstrip(";") for word in text.split("does not contain ")[1:2][0].split()[:1]}
        assert tag.startswith(version), text
        image = f"registry.example/mlops/ascend-driver:{tag}"
        auth = {"kubeconfig": str(idle.controller_kubeconfig)}
        assert idle.module("localhost", "npu_image_white_list", images=[image], **auth)["added"] == [f"mlops/ascend-driver:{tag}"]
        assert not idle.module("localhost", "npu_image_white_list", images=[image], **auth)["changed"]
        text = said(idle.playbook(*plan, **arguments).stdout)
        assert "ImageWhiteList" not in text and " ready" in text, text
        assert untouched(observer, *NPU_NODES)
