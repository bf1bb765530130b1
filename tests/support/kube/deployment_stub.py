# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deployments of one pod as Kubernetes runs them, on top of the plain stub: their controller, ReplicaSets, and a kubelet.

Nothing happens by itself: ``pass_time(seconds)`` lets them work. The old pod goes once the new one is available.
"""

from __future__ import annotations

import copy
import hashlib
import json

from support.kube.stub import ApiServer

NAMESPACE = "npu-operator"
DEPLOYMENTS = "/apis/apps/v1/namespaces/%s/deployments" % NAMESPACE
REPLICA_SETS = "/apis/apps/v1/namespaces/%s/replicasets" % NAMESPACE
PODS = "/api/v1/namespaces/%s/pods" % NAMESPACE
REVISION = "deployment.kubernetes.io/revision"
_AVAILABLE_AFTER = 10

_VERSION = {"groupVersion": "apps/v1", "version": "v1"}
_DISCOVERY = {
    "/apis": {"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [_VERSION], "preferredVersion": _VERSION}]},
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "resources": [{"name": "deployments", "singularName": "", "kind": "Deployment", "namespaced": True, "verbs": []}],
    },
}


def definition(image="registry.example/operator:1", name="operator"):
    """As a role's template defines it."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


class DeploymentApi(ApiServer):
    """``images``: image -> what becomes of its pods: ``no image``, ``ends``, ``hangs``, or ``no pod`` if none can be made; any other
    works. ``blind``: the controller sees nothing. ``fewest``: of the pods that worked at any time since ``watch``."""

    def __init__(self):
        super().__init__()
        self.images, self.blind, self.now, self.fewest = {}, False, 0.0, 1
        self._made = 0
        for path in (DEPLOYMENTS, REPLICA_SETS, PODS):
            self.objects[path] = {}

    def answer(self, method, path, query, body):
        collection, _slash, name = path.rpartition("/")
        if path in _DISCOVERY:
            return 200, _DISCOVERY[path]
        if method == "POST" and path == DEPLOYMENTS:
            body = copy.deepcopy(body)
            body["metadata"].update(uid="uid-" + body["metadata"]["name"], generation=1)
            body["status"] = {}
        before = copy.deepcopy(self.objects[DEPLOYMENTS].get(name)) if collection == DEPLOYMENTS else None
        status, answer = super().answer(method, path, query, body)
        if before and method == "PATCH" and status == 200 and answer["spec"] != before["spec"]:
            answer["metadata"]["generation"] = before["metadata"]["generation"] + 1
        return status, answer

    def watch(self):
        self.fewest = 1

    def pass_time(self, seconds):
        for _second in range(max(1, round(seconds))):
            self.now += 1
            for deployment in list(self.objects[DEPLOYMENTS].values()):
                if not self.blind:
                    self._control(deployment)
            for pod in list(self.objects[PODS].values()):
                self._run(pod)
            self.fewest = min(self.fewest, len(self.working()))

    def working(self):
        """The images of the pods that work."""
        return [pod["spec"]["containers"][0]["image"] for pod in self.objects[PODS].values() if _ready(pod)]

    def _control(self, deployment):
        metadata, template = deployment["metadata"], deployment["spec"]["template"]
        if deployment["spec"].get("paused"):
            if deployment["status"].get("observedGeneration") != metadata["generation"]:
                deployment["status"] = dict(deployment["status"], observedGeneration=metadata["generation"], updatedReplicas=0)
                self.put(DEPLOYMENTS, deployment)
            return
        present = "%s-%s" % (metadata["name"], hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8])
        if present not in self.objects[REPLICA_SETS]:
            labels = template["metadata"]["labels"]
            item = {"name": present, "namespace": NAMESPACE, "uid": "uid-" + present, "labels": labels}
            self.put(REPLICA_SETS, {"metadata": dict(item, annotations={}, ownerReferences=_owner("Deployment", metadata))})
        annotations = self.objects[REPLICA_SETS][present]["metadata"]["annotations"]
        newest = max(int(item["metadata"]["annotations"].get(REVISION, 0)) for item in self.objects[REPLICA_SETS].values())
        if int(annotations.get(REVISION, 0)) < newest or not newest:
            annotations[REVISION] = str(newest + 1)
        pods = {pod["metadata"]["name"]: pod for pod in self.objects[PODS].values()}
        mine = [pod for pod in pods.values() if pod["metadata"]["ownerReferences"][0]["name"] == present]
        no_pod = self.images.get(template["spec"]["containers"][0]["image"]) == "no pod"
        if not mine and not no_pod:
            self._made += 1
            name = "%s-%d" % (present, self._made)
            owner = self.objects[REPLICA_SETS][present]["metadata"]
            item = {"name": name, "namespace": NAMESPACE, "uid": "uid-" + name, "labels": template["metadata"]["labels"]}
            item.update(ownerReferences=_owner("ReplicaSet", owner), created=self.now)
            self.put(PODS, {"metadata": item, "spec": copy.deepcopy(template["spec"]), "status": {"phase": "Pending"}})
        available = [pod for pod in mine if _ready(pod) and self.now >= pod["metadata"]["created"] + _AVAILABLE_AFTER]
        others = [pod for pod in pods.values() if pod not in mine]
        # Old pods that are not ready go first, ready ones once a new pod is available.
        for pod in others:
            if available or not _ready(pod):
                del self.objects[PODS][pod["metadata"]["name"]]
        kept = [pod for pod in others if pod["metadata"]["name"] in self.objects[PODS]]
        status = {
            "observedGeneration": metadata["generation"],
            "replicas": len(mine) + len(kept),
            "updatedReplicas": len(mine),
            "availableReplicas": len(available) + len(kept),
            "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "quota exceeded"}] if no_pod else [],
        }
        metadata.setdefault("annotations", {})[REVISION] = annotations[REVISION]
        if status != deployment.get("status"):
            deployment["status"] = status
            self.put(DEPLOYMENTS, deployment)

    def _run(self, pod):
        image, age = pod["spec"]["containers"][0]["image"], self.now - pod["metadata"]["created"]
        fate = self.images.get(image)
        container = {"name": "main", "image": image, "restartCount": 0, "lastState": {}, "state": {"running": {}}}
        if fate == "no image":
            container["state"] = {"waiting": {"reason": "ErrImagePull", "message": "%s: not found" % image}}
        if fate == "ends":
            container.update(restartCount=int(age) // 10, lastState={"terminated": {"exitCode": 0, "reason": "Completed"}})
            container["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
        works = fate is None and age >= 2
        pod["status"] = {
            "phase": "Running",
            "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": "True" if works else "False"}],
        }


def _owner(kind, metadata):
    return [{"kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}]


def _ready(pod):
    return any(item["status"] == "True" for item in pod["status"].get("conditions") or [])
