# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads parked for a rollout, and restored to exactly what they were, whatever comes between."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import tempfile

import pytest

from support.crash.api_proxy import ApiProxy
from support.crash.gate import Controller, Fate, Gate
from support.lab.rollout import OTHER, proof, run, upgrade, version_of, watch
from support.lab.workloads import A2, PULL_SECRET, Team, waiting
from support.paths import CHECKOUT
from support.patience import PATIENCE

NODE = "npu-a"
MARK = "npuops.ascend/parked"
GROUP = "parking.test.npuops"
# Resource, name -> what stops it: path, value.
STOPPED = {
    ("deployment", "web"): ("replicas", 0),
    ("statefulset", "db"): ("replicas", 0),
    ("replicaset", "bare"): ("replicas", 0),
    ("job", "train"): ("suspend", True),
    ("cronjob", "nightly"): ("suspend", True),
    ("fleets." + GROUP, "fleet"): ("replicas", 0),
    ("gangs." + GROUP, "gang"): ("workers", {"count": 0}),
}


class Workloads(Team):
    """One of each kind on NODE. A Fleet has the template of its pods in it; a Gang has not, but owns a pod."""

    def create(self) -> None:
        for plural, kind, replicas in (("fleets", "Fleet", ".spec.replicas"), ("gangs", "Gang", ".spec.workers.count")):
            self.apply(definition(plural, kind, replicas))
            self.lab.kubectl("wait", "--for=condition=Established", "crd", f"{plural}.{GROUP}", f"--timeout={PATIENCE}s")
        self.apply(*granted(self.name))
        super().create()

    def remove(self) -> None:
        super().remove()
        self.lab.kubectl("delete", "clusterrole,clusterrolebinding", self.name, "--ignore-not-found")
        self.lab.kubectl("delete", "crd", "fleets." + GROUP, "gangs." + GROUP, "--ignore-not-found")

    def fill(self) -> None:
        self.deploy("web", 2, node=NODE, chips={A2: 1}, ends_in=3, budget={"minAvailable": 2}, wait=False)
        self.apply(
            self.made("apps/v1", "StatefulSet", "db", replicas=2, serviceName="db"),
            self.made("apps/v1", "ReplicaSet", "bare", replicas=1),
            self.made("batch/v1", "Job", "train", restart="OnFailure", selected=False),
            {
                **self.made("batch/v1", "CronJob", "nightly"),
                "spec": {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": {"template": self.template("nightly", "Never")}}},
            },
            self.made(f"{GROUP}/v1", "Fleet", "fleet", replicas=3),
            {"apiVersion": f"{GROUP}/v1", "kind": "Gang", "metadata": self.metadata("gang"), "spec": {"workers": {"count": 2}}},
        )
        uid = self.lab.get("gangs." + GROUP, "gang", "-n", self.name)["metadata"]["uid"]
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "Gang", "name": "gang", "uid": uid, "controller": True}
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**self.metadata("gang-0"), "ownerReferences": [owner]},
                "spec": self.template("gang")["spec"],
            }
        )
        self.wait_available("web", 2)
        self.lab.wait_for(lambda: self.running() >= 7, PATIENCE, "all pods run")
        self.lab.wait_for(lambda: self._counted("web", 2), PATIENCE, "the budget web knows its pods")

    def metadata(self, name: str) -> dict:
        return {"name": name, "namespace": self.name}

    def template(self, app: str, restart: str = "Always") -> dict:
        return {
            "metadata": {"labels": {"app": app}},
            "spec": {
                "terminationGracePeriodSeconds": 5,
                "imagePullSecrets": [{"name": PULL_SECRET}],
                "restartPolicy": restart,
                "nodeSelector": {"kubernetes.io/hostname": NODE},
                "containers": [
                    {
                        "name": "main",
                        "image": self.image,
                        "command": ["/bin/sh", "-c", waiting(1)],
                        "resources": {"limits": {A2: "1"}},
                    }
                ],
            },
        }

    def made(self, version: str, kind: str, name: str, restart: str = "Always", selected: bool = True, **spec: object) -> dict:
        spec["template"] = self.template(name, restart)
        if selected and kind != "Fleet":
            spec["selector"] = {"matchLabels": {"app": name}}
        return {"apiVersion": version, "kind": kind, "metadata": self.metadata(name), "spec": spec}

    def running(self) -> int:
        return sum(pod["status"]["phase"] == "Running" for pod in self.lab.pods(self.name))

    def now(self) -> dict:
        """Of every workload its specification and metadata, as far as people or we write them."""
        found = {}
        for resource, name in STOPPED:
            item = self.lab.get(resource, name, "-n", self.name)
            found[resource, name] = {
                "spec": item["spec"],
                "labels": item["metadata"].get("labels") or {},
                "annotations": item["metadata"].get("annotations") or {},
            }
        return found

    def not_stopped(self) -> list[str]:
        specs = {key: found["spec"] for key, found in self.now().items()}
        return [f"{key} is {specs[key]}" for key, (field, value) in STOPPED.items() if specs[key].get(field) != value]


class FieldKinds(Team):
    """Custom resources that are stopped in their own ways, each with a pod. The definitions have only what parking needs."""

    KINDS = (
        ("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
        ("bus.volcano.sh", "v1alpha1", "commands", "Command"),
        ("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService"),
        ("mindxdl.gitee.com", "v1", "ascendjobs", "AscendJob"),
        (GROUP, "v1", "runs", "Run"),
    )

    def create(self) -> None:
        for group, version, plural, kind in self.KINDS:
            self.apply(definition(plural, kind, group=group, version=version))
            self.lab.kubectl("wait", "--for=condition=Established", "crd", f"{plural}.{group}", f"--timeout={PATIENCE}s")
        rules = [
            {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "patch", "create", "delete"]}
            for group, _version, plural, _kind in self.KINDS
        ]
        self.apply(*granted(self.name, rules))
        super().create()

    def remove(self) -> None:
        super().remove()
        self.lab.kubectl("delete", "clusterrole,clusterrolebinding", self.name, "--ignore-not-found")
        definitions = [f"{plural}.{group}" for group, _version, plural, _kind in self.KINDS]
        self.lab.kubectl("delete", "crd", *definitions, "--ignore-not-found")

    def fill(self) -> None:
        for group, version, plural, kind in self.KINDS:
            if kind == "Command":
                continue
            api_version, name = f"{group}/{version}", kind.lower()
            self.apply({"apiVersion": api_version, "kind": kind, "metadata": self.named(name), "spec": {"maxRetry": 3}})
            uid = self.lab.get(f"{plural}.{group}", name, "-n", self.name)["metadata"]["uid"]
            owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}
            containers = [{"name": "main", "image": self.image, "resources": {"limits": {A2: "1"}}}]
            # None of them starts: parking looks at what they ask for.
            spec = {"nodeSelector": {"none": "such"}, "containers": containers}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**self.named(name), "ownerReferences": [owner]}, "spec": spec}
            self.apply(pod)
        self.phase("Running")

    def named(self, name: str) -> dict:
        return {"name": name, "namespace": self.name}

    def phase(self, phase: str) -> None:
        """As Volcano's controller writes it."""
        patch = json.dumps({"status": {"state": {"phase": phase}}})
        self.lab.kubectl("patch", "jobs.batch.volcano.sh", "job", "-n", self.name, "--type=merge", "-p", patch)

    def take_command(self) -> tuple[str, str]:
        """As Volcano's controller does: delete the Command, then execute it. Returns its action and the uid of its target."""
        (command,) = self.lab.get("commands.bus.volcano.sh", "-n", self.name)["items"]
        self.lab.kubectl("delete", "commands.bus.volcano.sh", command["metadata"]["name"], "-n", self.name)
        self.phase({"AbortJob": "Aborted", "ResumeJob": "Running"}[command["action"]])
        return command["action"], command["target"]["uid"]

    def commands(self) -> list[dict]:
        return self.lab.get("commands.bus.volcano.sh", "-n", self.name)["items"]

    def now(self) -> dict:
        found = {}
        for group, _version, plural, kind in self.KINDS:
            if kind != "Command":
                item = self.lab.get(f"{plural}.{group}", kind.lower(), "-n", self.name)
                metadata = {key: item["metadata"].get(key) or {} for key in ("labels", "annotations")}
                found[kind] = {"spec": item["spec"], "status": item.get("status"), **metadata}
        return found


def granted(name: str, rules: list[dict] | None = None) -> list[dict]:
    """What docs/access.md asks an administrator for who has kinds of his own."""
    api = "rbac.authorization.k8s.io"
    rules = rules or [{"apiGroups": [GROUP], "resources": ["fleets", "gangs"], "verbs": ["get", "list", "patch"]}]
    return [
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{api}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "npu-controller", "namespace": "npu-operator"}],
        },
    ]


def definition(plural: str, kind: str, replicas: str | None = None, group: str = GROUP, version: str = "v1") -> dict:
    """With a scale subresource if ``replicas`` says where it is."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    scale = {"specReplicasPath": replicas, "statusReplicasPath": ".status.replicas"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": anything},
                    "subresources": {"scale": scale} if replicas else {},
                }
            ],
        },
    }


@pytest.fixture
def team(idle):
    with Workloads(idle, "parking-test") as one:
        yield one


@contextlib.contextmanager
def module(lab, gate: Gate, **options: object):
    """The module on its own, in a process that can be killed."""
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="npu-")))
        proxy = stack.enter_context(ApiProxy(lab.controller_kubeconfig, directory, gate))
        command = [
            "ansible",
            NODE,
            "-i",
            str(lab.inventory),
            "-m",
            "npuops.ascend.npu_workloads",
            "-a",
            json.dumps({"kubeconfig": str(proxy.kubeconfig), **options}),
        ]
        environ = {**os.environ, **lab.environment()}
        controller = Controller(command, directory / "log", environ, CHECKOUT)
        gate.kill = controller.kill
        try:
            yield controller
        finally:
            controller.kill()


def act(lab, state: str, gate: Gate | None = None, **options: object) -> Gate:
    """Park or restore, to the end unless the gate kills it."""
    gate = gate or Gate()
    with module(lab, gate, state=state, resources=[A2], run="run-1", **options) as one:
        status = one.wait(PATIENCE)
        assert gate.dead or status == 0, one.text
    return gate


def test_kinds_that_are_stopped_in_their_own_ways(idle):
    """A Volcano Job by a Command, of which the controller dies; a service by an annotation; a declared kind by a field."""
    declared = [{"group": GROUP, "kind": "Run", "field": "spec.paused"}]
    settings = {"workload_kinds": declared, "pod_deletion": {"timeout": 1}}
    with FieldKinds(idle, "parking-kinds") as team:
        team.fill()
        before = team.now()
        gate = act(idle, "parked", Gate("POST .*/commands", Fate.KILL_AFTER), settings=settings)
        assert gate.dead and team.now()["Job"]["annotations"]
        act(idle, "parked", settings=settings)
        uid = idle.get("jobs.batch.volcano.sh", "job", "-n", team.name)["metadata"]["uid"]
        assert team.take_command() == ("AbortJob", uid)
        now = team.now()
        assert now["InferenceService"]["annotations"]["serving.kserve.io/stop"] == "true"
        assert now["Run"]["spec"] == {"maxRetry": 3, "paused": True} and now["AscendJob"] == before["AscendJob"]

        # With other settings, and while Volcano looks on.
        with module(idle, Gate(), state="restored", run="run-1") as one:
            idle.wait_for(team.commands, PATIENCE, "the Command that resumes the Job")
            assert team.take_command() == ("ResumeJob", uid)
            assert one.wait(PATIENCE) == 0, one.text
        assert team.now() == before and not team.commands()


@pytest.mark.core
def test_an_upgrade_with_everything_parked(idle, team, tmp_path):
    """A budget that would block, and a user who scales a workload up meanwhile."""
    team.fill()
    team.deploy("mine", 1, node=NODE, chips={A2: 1})
    before = team.now()
    version = OTHER[version_of(idle, NODE)]
    text = upgrade(idle, f"--limit={NODE}", expect=1, npu_driver_version=version)
    assert "allows no disruption now" in text
    with (
        watch(idle) as observer,
        run(
            idle, f"--limit={NODE}", npu_driver_version=version, npu_upgrade_workloads="park", npu_upgrade_report_dir=str(tmp_path)
        ) as one,
    ):
        observer.wait(
            lambda sight: sight.name == NODE and bool(sight.record) and sight.record["step"] == "reboot-required",
            PATIENCE,
            "the reboot",
        )
        assert team.not_stopped() == []
        idle.kubectl("scale", "deployment", "mine", "-n", team.name, "--replicas=2")
        assert one.wait() == 0, one.text[-6000:]
        text = one.text
    assert "8 workloads will be parked" in text, text
    assert f"Deployment {team.name}/mine: it was changed while it was parked" in text, text
    assert proof(idle, observer, {NODE: 1}, version) == []
    assert team.now() == before
    (report,) = [json.loads(path.read_text(encoding="utf-8"))["workloads"] for path in tmp_path.glob("*.json")]
    assert (len(report["parked"]), len(report["restored"])) == (8, 7)
    assert [entry["object"] for entry in report["left"]] == [f"Deployment {team.name}/mine"]
    mine = idle.get("deployment", "mine", "-n", team.name)
    assert mine["spec"]["replicas"] == 2 and MARK not in mine["metadata"]["annotations"]
    team.wait_available("web", 2)
    idle.wait_for(lambda: idle.get("job", "train", "-n", team.name)["status"].get("active") == 1, PATIENCE, "the Job goes on")


@pytest.mark.parametrize("state", ["parked", "restored"])
def test_every_crash(idle, team, state):
    """The module dies before or after each of its writes; the next one restores everything."""
    team.fill()
    before = team.now()
    for stop in ("parked", "restored"):
        calls = act(idle, stop).calls
        # Beside the workloads, it writes who has parked them.
        assert len([call for call in calls if "/leases" not in call.what]) == len(STOPPED), calls
        assert stop == "restored" or team.not_stopped() == []
    assert team.now() == before
    for fate in (Fate.KILL_BEFORE, Fate.KILL_AFTER):
        for number in itertools.count(1):
            if state == "restored":
                act(idle, "parked")
            gate = act(idle, state, Gate(number, fate))
            act(idle, "restored")
            assert team.now() == before, f"{fate.value} {gate.calls[-1].what}"
            if not gate.dead:
                assert number > len(STOPPED)
                break


def test_a_killed_run_is_restored_by_one_that_has_nothing_to_do(idle, team):
    team.fill()
    before, old = team.now(), version_of(idle, NODE)
    gate = Gate("PATCH .*/jobs/train", Fate.KILL_AFTER)
    with run(idle, f"--limit={NODE}", gate=gate, npu_driver_version=OTHER[old], npu_upgrade_workloads="park") as one:
        one.wait()
        assert gate.dead, one.text
    assert team.now() != before
    upgrade(idle, f"--limit={NODE}", npu_driver_version=old)
    assert team.now() == before


def test_a_killed_run_is_restored_by_one_that_is_refused(idle, team):
    """What asks for no NPU is in the way; it is not parked."""
    team.fill()
    before, version = team.now(), OTHER[version_of(idle, NODE)]
    gate = Gate("PATCH .*/jobs/train", Fate.KILL_AFTER)
    with run(idle, f"--limit={NODE}", gate=gate, npu_driver_version=version, npu_upgrade_workloads="park") as one:
        one.wait()
        assert gate.dead, one.text
    team.deploy("stuck", node=NODE, budget={"minAvailable": 1})
    text = upgrade(idle, f"--limit={NODE}", expect=1, npu_driver_version=version, npu_upgrade_workloads="park")
    assert f"{team.name}/stuck" in text and "restored Job" in text, text
    assert team.now() == before


def test_nothing_is_parked_while_people_decide(idle, team):
    team.fill()
    before = team.now()
    gate = Gate()
    text = upgrade(
        idle,
        f"--limit={NODE}",
        gate=gate,
        npu_driver_version=OTHER[version_of(idle, NODE)],
        npu_upgrade_workloads="park",
        npu_upgrade_auto=False,
    )
    assert "awaiting-approval" in text, text
    assert not [call for call in gate.calls if team.name in call.what]
    assert team.now() == before


def test_a_run_that_cannot_restore_fails(idle, team):
    """A user edited the annotation of a parked workload. All others are restored, and the run after the repair succeeds."""
    team.fill()
    before, version = team.now(), version_of(idle, NODE)
    act(idle, "parked")
    idle.kubectl("annotate", "deployment", "web", "-n", team.name, f"{MARK}=oops", "--overwrite")
    text = upgrade(idle, f"--limit={NODE}", expect=1, npu_driver_version=version)
    assert "1 parked workload was not restored" in text and f"Deployment {team.name}/web" in text, text
    now, web = team.now(), ("deployment", "web")
    assert {key: found for key, found in now.items() if key != web} == {key: found for key, found in before.items() if key != web}
    assert now[web]["spec"]["replicas"] == 0
    idle.kubectl("scale", "deployment", "web", "-n", team.name, "--replicas=2")
    idle.kubectl("label", "deployment", "web", "-n", team.name, f"{MARK}-")
    upgrade(idle, f"--limit={NODE}", npu_driver_version=version)
    idle.kubectl("annotate", "deployment", "web", "-n", team.name, f"{MARK}-")
    assert team.now() == before
