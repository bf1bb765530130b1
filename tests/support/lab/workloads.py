# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads for rollouts to disturb: Deployments whose pods want chips, take their time to end, and have a budget."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping

from support.patience import PATIENCE

PULL_SECRET = "lab-registry"
HELD = 3600  # seconds; longer than any test waits
HOLDING = "trap 'while [ ! -e /hold/go ]; do sleep 0.2; done; exit 0' TERM; while :; do sleep 3600 & wait $!; done"
A2, DUO = "huawei.com/Ascend910", "huawei.com/Ascend310P"


class Team:
    """A namespace with workloads: `with Team(lab, "name") as team`. Leaving removes it with all that is in it."""

    def __init__(self, lab, name: str) -> None:
        self.lab, self.name = lab, name
        self._held: dict[str, tuple[str, str]] = {}  # Deployment -> node, directory there
        self.image = str(lab.variable("npu_driver_repository")).split("/", maxsplit=1)[0] + "/lab/test:lab"

    def __enter__(self) -> Team:
        self.create()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.remove()

    def create(self) -> None:
        secret = self.lab.get("secret", PULL_SECRET, "-n", "default")
        secret["metadata"] = {"name": PULL_SECRET, "namespace": self.name}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}, secret)

    def remove(self) -> None:
        """With all that is in it, also pods that were not let go."""
        self.lab.kubectl("delete", "namespace", self.name, "--ignore-not-found", "--wait=false")
        if self._held:
            self.lab.kubectl("delete", "pods", "--all", "-n", self.name, "--force", "--grace-period=0", check=False)
        self.lab.kubectl("wait", "--for=delete", f"namespace/{self.name}", f"--timeout={PATIENCE}s")
        for node, directory in self._held.values():
            self.lab.ssh(node, f"rm -rf {directory}", check=False)  # it may be down

    def apply(self, *objects: dict) -> None:
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps(document))

    def deploy(
        self,
        name: str,
        replicas: int = 1,
        node: str | None = None,
        chips: Mapping[str, int] | None = None,
        ends_in: int = 0,
        budget: dict | None = None,
        wait: bool = True,
        holds: bool = False,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Make a Deployment.

        :param node: its pods run nowhere else
        :param chips: resource -> how many each pod asks for
        :param ends_in: seconds a pod takes to end when it is told to
        :param budget: spec of a PodDisruptionBudget without selector, for example {"minAvailable": 1}
        :param wait: until all replicas are available
        :param holds: pods that are told to end go on until `let_go`; they need a node
        :param labels: of its pods
        """
        selector = {"app": name}
        pod = {
            "terminationGracePeriodSeconds": HELD if holds else ends_in + 5,
            "imagePullSecrets": [{"name": PULL_SECRET}],
            "containers": [
                {
                    "name": "main",
                    "image": self.image,
                    "command": ["/bin/sh", "-c", HOLDING if holds else waiting(ends_in)],
                    "resources": {"limits": {resource: str(count) for resource, count in (chips or {}).items()}},
                }
            ],
        }
        if holds:
            # On the host and not in the pod: a pod that comes in the place of one that was let go is let go, too, also after a reboot.
            self._held[name] = (node, f"/var/tmp/lab-hold-{uuid.uuid4().hex}")
            pod["volumes"] = [{"name": "hold", "hostPath": {"path": self._held[name][1], "type": "DirectoryOrCreate"}}]
            pod["containers"][0]["volumeMounts"] = [{"name": "hold", "mountPath": "/hold"}]
        if node:
            pod["nodeSelector"] = {"kubernetes.io/hostname": node}
        metadata = {"name": name, "namespace": self.name}
        objects = [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": selector},
                    "template": {"metadata": {"labels": {**(labels or {}), **selector}}, "spec": pod},
                },
            }
        ]
        if budget:
            objects.append(
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": metadata,
                    "spec": {"selector": {"matchLabels": selector}, **budget},
                }
            )
        self.apply(*objects)
        if wait:
            self.wait_available(name, replicas)
            # Before this the budget's controller has not counted them, and it forbids every eviction.
            if budget:
                self.lab.wait_for(lambda: self._counted(name, replicas), 60, f"the budget {name} knows its pods")

    def let_go(self, name: str) -> None:
        """From now on the pods of a Deployment with `holds` end when they are told to."""
        node, directory = self._held[name]
        self.lab.ssh(node, f"touch {directory}/go")

    def wait_available(self, name: str, replicas: int, timeout: float = 120) -> None:
        def available() -> bool:
            return self.lab.get("deployment", name, "-n", self.name).get("status", {}).get("availableReplicas", 0) >= replicas

        self.lab.wait_for(available, timeout, f"{replicas} pods of {name}")

    def _counted(self, name: str, replicas: int) -> bool:
        return self.lab.get("pdb", name, "-n", self.name).get("status", {}).get("currentHealthy", 0) >= replicas

    def pods(self, name: str) -> list[dict]:
        return self.lab.pods(self.name, labelSelector=f"app={name}")


def waiting(ends_in: int) -> str:
    """A shell script that runs until it is told to end, and then takes its time. As process 1 it needs the trap."""
    return f"trap 'sleep {ends_in} & wait $!; exit 0' TERM; while :; do sleep 3600 & wait $!; done"


# --- for molecule/upgrade ---

SCENARIO = "upgrade-scenario"
# Name, replicas. Drained one node at a time, all of it can go on within its budgets.
SCENARIO_WORKLOADS = {"train": 4, "infer": 1, "web": 3}


def scenario(lab) -> Team:
    """Workloads on all NPU nodes, each under a budget: training that moves, inference that cannot, and what needs no chip."""
    team = Team(lab, SCENARIO)
    team.create()
    team.deploy("train", SCENARIO_WORKLOADS["train"], chips={A2: 2}, ends_in=3, budget={"maxUnavailable": 1})
    team.deploy("infer", SCENARIO_WORKLOADS["infer"], chips={DUO: 1}, ends_in=3, budget={"maxUnavailable": 1})
    team.deploy("web", SCENARIO_WORKLOADS["web"], ends_in=1, budget={"minAvailable": 2})
    return team


def ascend_job(team: Team, script: str) -> dict:
    """An AscendJob of two pods with two chips each, for PyTorch and Kubernetes' own scheduler."""
    container = {
        "name": "ascend",
        "image": team.image,
        "command": ["/bin/sh", "-c", script],
        "ports": [{"name": "ascendjob-port", "containerPort": 2222}],
        "resources": {"limits": {A2: "2"}},
    }
    pod = {"imagePullSecrets": [{"name": "lab-registry"}], "containers": [container]}
    replica = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod}}
    return {
        "apiVersion": "mindxdl.gitee.com/v1",
        "kind": "AscendJob",
        "metadata": {"name": "train", "namespace": team.name, "labels": {"framework": "pytorch"}},
        "spec": {"schedulerName": "default-scheduler", "replicaSpecs": {"Master": replica, "Worker": replica}},
    }
