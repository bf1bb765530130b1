# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workloads of all kinds, discovery and lists over all namespaces, on top of the plain stub."""

from __future__ import annotations

import copy
import re

from support.kube.stub import ApiServer

NPU = "huawei.com/Ascend910"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Group, plural, kind, has scale. Fleets have a template in them, Gangs do not; Sets of a group own others and cannot be scaled.
CUSTOM = (
    ("ml.example", "fleets", "Fleet", True),
    ("ml.example", "gangs", "Gang", True),
    ("ml.example", "sets", "Set", False),
)
# Custom resources that are suspended; the first can also be scaled.
SUSPENDED = (("kubeflow.org", "pytorchjobs", "PyTorchJob", True), ("ray.io", "rayjobs", "RayJob", False))
# Of the field: stopped by Commands, by an annotation, and not at all.
FIELD = (
    ("batch.volcano.sh", "jobs", "VolcanoJob", False),
    ("serving.kserve.io", "inferenceservices", "InferenceService", False),
    ("mindxdl.gitee.com", "ascendjobs", "AscendJob", False),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet", True),
    ("resource.k8s.io", "resourceclaims", "ResourceClaim", False),
)
COMMANDS = "/apis/bus.volcano.sh/v1alpha1/namespaces/train/commands"
BUILT_IN = {
    "Deployment": "/apis/apps/v1/%s/deployments",
    "StatefulSet": "/apis/apps/v1/%s/statefulsets",
    "ReplicaSet": "/apis/apps/v1/%s/replicasets",
    "ReplicationController": "/api/v1/%s/replicationcontrollers",
    "Job": "/apis/batch/v1/%s/jobs",
    "CronJob": "/apis/batch/v1/%s/cronjobs",
    "Pod": "/api/v1/%s/pods",
    "Fleet": "/apis/ml.example/v1/%s/fleets",
    "Gang": "/apis/ml.example/v1/%s/gangs",
    "Set": "/apis/ml.example/v1/%s/sets",
    "PyTorchJob": "/apis/kubeflow.org/v1/%s/pytorchjobs",
    "RayJob": "/apis/ray.io/v1/%s/rayjobs",
    "VolcanoJob": "/apis/batch.volcano.sh/v1/%s/jobs",
    "InferenceService": "/apis/serving.kserve.io/v1/%s/inferenceservices",
    "AscendJob": "/apis/mindxdl.gitee.com/v1/%s/ascendjobs",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/%s/leaderworkersets",
    "ResourceClaim": "/apis/resource.k8s.io/v1/%s/resourceclaims",
}
_API_VERSION = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1",
                "CronJob": "batch/v1", "Fleet": "ml.example/v1", "Gang": "ml.example/v1", "Set": "ml.example/v1",
                "PyTorchJob": "kubeflow.org/v1", "RayJob": "ray.io/v1", "VolcanoJob": "batch.volcano.sh/v1",
                "InferenceService": "serving.kserve.io/v1", "AscendJob": "mindxdl.gitee.com/v1",
                "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1"}  # fmt: skip
_REAL_NAME = {"VolcanoJob": "Job"}  # Kubernetes' own has that name, too


def template(npus=1, init=0, labels=None, resource=NPU):
    """A pod template; ``npus``: of its container, ``init``: of the one before that."""

    def container(count):
        return {"name": "c", "resources": {"limits": {resource: str(count)}} if count is not None else {}}

    spec = {"containers": [container(npus)], "initContainers": [container(init)] if init else []}
    return {"metadata": {"labels": labels or {"app": "x"}}, "spec": spec}


def made(kind, name="x", owner=None, namespace="train", pods=None, status=None, **spec):
    """An object; ``owner``: (kind, name) of its controller; ``pods``: its template, by default one with an NPU."""
    pods = template() if pods is None else pods
    if kind == "CronJob":
        spec["jobTemplate"] = {"spec": {"template": pods}}
    elif kind == "Pod":
        spec.update(pods["spec"], nodeName="a")
    elif kind == "VolcanoJob":
        spec["tasks"] = [{"replicas": 2, "template": pods}]
    elif kind not in ("Gang", "Set", "PyTorchJob", "RayJob", "InferenceService", "AscendJob", "LeaderWorkerSet"):
        spec["template"] = pods
    metadata = {"name": name, "namespace": namespace, "uid": "uid-%s-%s" % (kind, name), "labels": {"team": "t"}}
    if owner:
        reference = {
            "apiVersion": _API_VERSION[owner[0]],
            "kind": _REAL_NAME.get(*[owner[0]] * 2),
            "name": owner[1],
            "controller": True,
        }
        metadata["ownerReferences"] = [reference]
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


class WorkloadApi(ApiServer):
    """``add(object)``, ``get(kind, name)``. ``aggregated``: whether discovery comes in one answer; ``custom``: the kinds there
    are besides Kubernetes' own; ``away``: lists that are answered with 500; ``after_patch``: called after each that worked;
    ``volcano``: whether Volcano's controller runs."""

    def __init__(self):
        super().__init__()
        self.aggregated, self.custom, self.away = True, CUSTOM, set()
        self.after_patch = lambda: None
        self.volcano = True

    def start_volcano(self):
        """It executes what waits, in any order; here the last first, which is the worst."""
        self.volcano = True
        for name in sorted(self.objects.get(COMMANDS, {}), reverse=True):
            self._execute(self.objects[COMMANDS].pop(name))

    def _execute(self, command):
        """As pkg/controllers/job/state of Volcano does."""
        job = self.get("VolcanoJob", command["target"]["name"])
        assert (command["target"]["uid"], command["target"]["kind"]) == (job["metadata"]["uid"], "Job")
        state, status = job["status"].setdefault("state", {"phase": "Pending"}), job["status"]
        if command["action"] == "AbortJob" and state["phase"] in ("Pending", "Running"):
            state["phase"] = "Aborted"
        elif command["action"] == "ResumeJob" and state["phase"] == "Aborted":
            status["retryCount"] = status.get("retryCount", 0) + 1
            state["phase"] = "Running" if status["retryCount"] < job["spec"].get("maxRetry", 3) else "Failed"
        self.put(BUILT_IN["VolcanoJob"] % "namespaces/train", job)

    def add(self, *items):
        for item in items:
            self.put(BUILT_IN[item["kind"]] % ("namespaces/" + item["metadata"]["namespace"]), item)

    def get(self, kind, name="x", namespace="train"):
        return self.objects[BUILT_IN[kind] % ("namespaces/" + namespace)][name]

    def define(self, plural, replicas, status=".status.replicas", group="ml.example", version="v1"):
        """The CustomResourceDefinition of a kind that scales."""
        scale = {"specReplicasPath": replicas, "statusReplicasPath": status}
        versions = [{"name": version, "subresources": {"scale": scale}}]
        self.put(CRDS, {"metadata": {"name": "%s.%s" % (plural, group)}, "spec": {"versions": versions}})

    def everything(self):
        """All workloads without what every write changes, for comparisons."""
        ours = ("/apis/coordination.k8s.io/",)
        found = {
            path: items for path, items in self.objects.items() if items and "/namespaces/" in path and not path.startswith(ours)
        }
        found = copy.deepcopy(found)
        for items in found.values():
            for item in items.values():
                item["metadata"].pop("resourceVersion")
                item["metadata"].setdefault("annotations", {})
        return found

    def answer(self, method, path, query, body):
        if method == "GET" and (method, path) not in self.faults:
            if path == "/apis":
                at_once = self.aggregated and "as=APIGroupDiscoveryList" in self.accepted
                return 200, self._groups() if at_once else self._plain_groups()
            if path == "/apis/ml.example/v1":
                return 200, self._plain_resources()
            if path in self.away:
                return 500, {"kind": "Status", "message": "conversion webhook failed"}
            if any(path == pattern.replace("/%s", "") for pattern in BUILT_IN.values()):
                return 200, self._page(self._everywhere(path, query.get("labelSelector")), query)
        if (method, path) == ("POST", COMMANDS) and body["metadata"]["name"] in self.objects.get(COMMANDS, {}):
            return 409, {"kind": "Status", "message": "it exists already"}
        status, answer = super().answer(method, path, query, body)
        if (method, path, status) == ("POST", COMMANDS, 201) and self.volcano:
            self._execute(self.objects[COMMANDS].pop(body["metadata"]["name"]))
        if method == "PATCH" and status == 200:
            self.after_patch()
        return status, answer

    def _everywhere(self, path, selector):
        root, _slash, plural = path.rpartition("/")
        wanted = re.compile(re.escape(root) + "/namespaces/[^/]+/" + plural + r"\Z")
        found = [item for name, items in self.objects.items() if wanted.match(name) for item in items.values()]
        if selector:
            key, _equals, value = selector.partition("=")
            found = [item for item in found if (item["metadata"].get("labels") or {}).get(key) == value]
        return found

    def _groups(self):
        resources = {}
        for group, plural, kind, scale in self.custom:
            kind = _REAL_NAME.get(kind, kind)
            resources.setdefault(group, []).append(
                {"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
                 "verbs": ["get", "list", "patch"], "subresources": [{"subresource": "scale"}] if scale else []})  # fmt: skip
        groups = [
            {"metadata": {"name": group}, "versions": [{"version": "v1", "resources": found}]} for group, found in resources.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "items": groups}

    def _plain_groups(self):
        version = {"groupVersion": "ml.example/v1", "version": "v1"}
        groups = [{"name": "ml.example", "versions": [version], "preferredVersion": version}]
        return {"kind": "APIGroupList", "groups": groups if self.custom else []}

    def _plain_resources(self):
        found = []
        for _group, plural, kind, scale in self.custom:
            found.append({"name": plural, "kind": kind, "namespaced": True, "verbs": ["get", "list", "patch"]})
            if scale:
                found.append({"name": plural + "/scale", "kind": "Scale", "namespaced": True, "verbs": ["get"]})
        return {"kind": "APIResourceList", "resources": found}
