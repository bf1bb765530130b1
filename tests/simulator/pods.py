# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods: Deployments that make them, a scheduler that finds them a node, budgets, evictions, and our own components' pods."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from simulator.api_server import DEPLOYMENTS, ApiServer, Object, node_path, rfc3339
from simulator.host import RESOURCE, Host
from simulator.schedule import Workload
from simulator.timeline import Timeline

PARKED = "npuops.ascend/parked"
_PLUGIN = "ascend-device-plugin-daemonset"
_SCHEDULER = 1.0  # seconds


class Pods:
    """``calm``: whether a person has seen to it that pods go when they are asked."""

    def __init__(self, timeline: Timeline, api: ApiServer, hosts: dict[str, Host], workloads: tuple[Workload, ...]) -> None:
        self._timeline, self._api, self._hosts = timeline, api, hosts
        self._specs = {workload.name: workload for workload in workloads}
        self._numbers = itertools.count(1)
        self._planned = False
        self.calm = False
        self.pods: dict[str, Object] = {}
        self.bound_at: dict[str, float] = {}  # by name
        for workload in workloads:
            self._api.create("/apis/apps/v1/namespaces/train/deployments/" + workload.name, _deployment(workload), "user")
        self.reconcile()

    # --- controllers ---

    def soon(self) -> None:
        """Something changed that may concern the controllers."""
        if not self._planned and self._specs:
            self._planned = True
            self._timeline.at(_SCHEDULER, self.reconcile)

    def reconcile(self) -> None:
        self._planned = False
        for deployment in self._api.all(DEPLOYMENTS):
            name, wanted = deployment["metadata"]["name"], deployment["spec"].get("replicas", 1)
            mine = [pod for pod in self.pods.values() if pod["metadata"]["labels"]["app"] == name]
            alive = [pod for pod in mine if "deletionTimestamp" not in pod["metadata"]]
            for pod in alive[wanted:]:
                self._end(pod)
            for _number in range(wanted - len(alive)):
                self._create(self._specs[name])
            for pod in mine:
                if "nodeName" not in pod["spec"]:
                    self._bind(pod, self._specs[name])
            self._tell_status(deployment, name)

    def _tell_status(self, deployment: Object, name: str) -> None:
        count = sum(pod["metadata"]["labels"]["app"] == name for pod in self.pods.values())
        status = {"replicas": count, "observedGeneration": deployment["metadata"].get("generation", 1)}
        if deployment.get("status") != status:
            path = "/apis/apps/v1/namespaces/train/deployments/" + name
            self._api.change(path, {"status": status}, "kube-controller-manager")

    def _create(self, workload: Workload) -> None:
        name = "%s-%d" % (workload.name, next(self._numbers))
        owner = {"kind": "ReplicaSet", "name": workload.name + "-5d4f", "controller": True}
        self.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": "train",
                "uid": "uid-" + name,
                "labels": {"app": workload.name, "pod-template-hash": "5d4f"},
                "ownerReferences": [owner],
            },
            "spec": {"containers": [{"name": "main", "resources": {"limits": {RESOURCE: str(workload.chips)}}}]},
            "status": {"phase": "Pending", "conditions": []},
        }

    def _bind(self, pod: Object, workload: Workload) -> None:
        for name in sorted(self._hosts):
            node = self._api.peek(node_path(name))
            if node is None or node["status"]["conditions"][0]["status"] != "True":
                continue
            if node["spec"].get("unschedulable") and (self.calm or not workload.tolerates):
                continue
            used = sum(
                int(other["spec"]["containers"][0]["resources"]["limits"][RESOURCE])
                for other in self.pods.values()
                if other["spec"].get("nodeName") == name
            )
            if used + workload.chips <= int(node["status"]["allocatable"].get(RESOURCE, 0)):
                pod["spec"]["nodeName"] = name
                self.bound_at[pod["metadata"]["name"]] = self._timeline.time
                pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                return

    def _end(self, pod: Object) -> None:
        """It is told to end, and ends as soon as it can."""
        grace = 2.0 if self.calm else self._specs[pod["metadata"]["labels"]["app"]].grace
        pod["metadata"]["deletionTimestamp"] = rfc3339(self._timeline.time + grace)
        self._timeline.at(grace, lambda: self._remove(pod["metadata"]["name"]))

    def _remove(self, name: str) -> None:
        if self.pods.pop(name, None) is not None:
            self.soon()

    def on_node(self, name: str) -> list[Object]:
        """The pods of workloads, the objects themselves."""
        return [pod for pod in self.pods.values() if pod["spec"].get("nodeName") == name]

    def tolerates(self, pod: Object) -> bool:
        return self._specs[pod["metadata"]["labels"]["app"]].tolerates

    def host_went_down(self, name: str) -> None:
        """What was told to end has ended when the kubelet is back."""
        for pod in self.on_node(name):
            if "deletionTimestamp" in pod["metadata"]:
                self._timeline.at(25.0, functools.partial(self._remove, pod["metadata"]["name"]))

    def calm_down(self) -> None:
        self.calm = True
        for name in [name for name, pod in self.pods.items() if "deletionTimestamp" in pod["metadata"]]:
            self._remove(name)

    # --- requests ---

    def listed(self, field_selector: str | None) -> list[Object]:
        found = list(self.pods.values()) + [
            _component(name) for name, host in sorted(self._hosts.items()) if host.components and self._api.peek(node_path(name))
        ]
        key, _equals, value = (field_selector or "").partition("=")
        if key == "spec.nodeName":
            found = [pod for pod in found if pod["spec"].get("nodeName") == value]
        return found

    def budgets(self) -> list[Object]:
        found: list[Object] = []
        if self.calm:
            return found
        for workload in self._specs.values():
            if workload.spare is None:
                continue
            ready = self._ready(workload.name)
            desired = max(workload.replicas - workload.spare, 0)
            found.append(
                {
                    "metadata": {"name": workload.name, "namespace": "train"},
                    "spec": {"selector": {"matchLabels": {"app": workload.name}}},
                    "status": {
                        "disruptionsAllowed": max(ready - desired, 0),
                        "currentHealthy": ready,
                        "desiredHealthy": desired,
                    },
                }
            )
        return found

    def _ready(self, workload: str) -> int:
        return sum(
            pod["metadata"]["labels"]["app"] == workload
            and pod["status"]["phase"] == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            and self._hosts[pod["spec"]["nodeName"]].up
            for pod in self.pods.values()
        )

    def evict(self, name: str, uid: str, dry_run: bool) -> Object:
        pod = self.pods.get(name)
        if pod is None:
            raise kube_client.NotFound('pods "%s" not found' % name)
        if pod["metadata"]["uid"] != uid:
            raise kube_client.Conflict("the UID in the precondition does not match")
        if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] == "Running":
            for budget in self.budgets():
                covered = budget["metadata"]["name"] == pod["metadata"]["labels"]["app"]
                if covered and budget["status"]["disruptionsAllowed"] < 1:
                    raise kube_client.TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.")
            if not dry_run:
                self._end(pod)
                self.soon()
        return {"kind": "Status", "status": "Success"}


def _deployment(workload: Workload) -> dict[str, Any]:
    template = {"containers": [{"name": "main", "resources": {"limits": {RESOURCE: str(workload.chips)}}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name, "namespace": "train", "labels": {}, "annotations": {}, "generation": 1},
        "spec": {"replicas": workload.replicas, "template": {"metadata": {"labels": {}}, "spec": template}},
        "status": {},
    }


def _component(node: str) -> Object:
    owner = {"kind": "DaemonSet", "name": _PLUGIN, "controller": True}
    return {
        "metadata": {"name": "plugin-" + node, "namespace": "npu-operator", "uid": "plugin-" + node, "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running", "conditions": []},
    }
