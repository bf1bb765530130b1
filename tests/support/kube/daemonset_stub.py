# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DaemonSets as Kubernetes runs them, on top of the plain stub: its controller, the revisions that it keeps, and kubelets.

Nothing happens by itself: ``pass_time(seconds)`` lets controller and kubelets work. A kubelet reports every ten seconds what its node
offers, as a real one does.
"""

from __future__ import annotations

import copy
import hashlib
import json

from support.kube.stub import ApiServer, node

NAMESPACE = "npu-operator"
NODES = "/api/v1/nodes"
SETS = "/apis/apps/v1/namespaces/%s/daemonsets" % NAMESPACE
PODS = "/api/v1/namespaces/%s/pods" % NAMESPACE
ALL_PODS = "/api/v1/pods"
REVISIONS = "/apis/apps/v1/namespaces/%s/controllerrevisions" % NAMESPACE
CHIPS = "huawei.com/Ascend910"
LABELS = {"npuops.ascend/components": "enabled"}
SOCKETS = "/var/lib/kubelet/device-plugins"

_VERSION = {"groupVersion": "apps/v1", "version": "v1"}
_DISCOVERY = {
    "/apis": {"kind": "APIGroupList", "groups": [{"name": "apps", "versions": [_VERSION], "preferredVersion": _VERSION}]},
    "/apis/apps/v1": {
        "kind": "APIResourceList",
        "resources": [{"name": "daemonsets", "singularName": "", "kind": "DaemonSet", "namespaced": True, "verbs": []}],
    },
}


def definition(image="registry.example/plugin:1", name="plugin", at_once=1, plugin=True, **pod_spec):
    """As a role's template defines it."""
    volumes = [{"name": "device-plugin", "hostPath": {"path": SOCKETS}}] if plugin else []
    spec = {"nodeSelector": dict(LABELS), "containers": [{"name": "main", "image": image}], "volumes": volumes}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": at_once}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": dict(spec, **pod_spec)},
        },
    }


class DaemonSetApi(ApiServer):
    """``fleet(names)`` makes nodes with eight chips. ``images``: image -> what becomes of its pods: ``no image``, ``ends``, ``no chips``,
    ``hangs``; any other works. ``per_node``: the same by (node, image). ``blind``: the controller sees nothing.
    ``devices``: how many a node offers, instead of eight for each that its plugin makes of a chip.
    ``unavailable``: the most nodes at once that had no working pod; ``deleted``: UIDs of pods that clients deleted.
    """

    def __init__(self):
        super().__init__()
        self.images, self.per_node, self.blind, self.devices = {}, {}, False, None
        self.unavailable, self.deleted, self.now = 0, [], 0.0
        self._made, self._offered = 0, {}
        for path in (NODES, SETS, PODS, REVISIONS, ALL_PODS):
            self.objects[path] = {}

    def fleet(self, *names):
        self.put(NODES, *[node(name, labels=dict(LABELS), allocatable={CHIPS: "8", "cpu": "4"}) for name in names])

    # --- requests ---

    def answer(self, method, path, query, body):
        collection, _slash, name = path.rpartition("/")
        if path in _DISCOVERY:
            return 200, _DISCOVERY[path]
        if (method, path) in self.faults:
            return super().answer(method, path, query, body)
        if method == "DELETE" and collection == PODS:
            return self._delete_pod(name, body or {})
        if path == ALL_PODS and "spec.nodeName=" in query.get("fieldSelector", ""):
            wanted = query["fieldSelector"].partition("=")[2]
            return 200, {"items": [pod for pod in self.objects[ALL_PODS].values() if pod["spec"]["nodeName"] == wanted]}
        if method == "POST" and path == SETS:
            self._made += 1
            body = copy.deepcopy(body)
            body["metadata"].update(uid="uid-%s-%d" % (body["metadata"]["name"], self._made), generation=1)
            body["status"] = {}
        before = copy.deepcopy(self.objects[SETS].get(name)) if collection == SETS else None
        status, answer = super().answer(method, path, query, body)
        if before and method == "PATCH" and status == 200 and answer["spec"] != before["spec"]:
            answer["metadata"]["generation"] = before["metadata"]["generation"] + 1
        return status, answer

    def _delete_pod(self, name, options):
        pod = self.objects[PODS].get(name)
        if pod is None:
            return 404, {"message": 'pods "%s" not found' % name}
        uid = (options.get("preconditions") or {}).get("uid")
        if uid not in (None, pod["metadata"]["uid"]):
            return 409, {"message": "the UID in the precondition does not match"}
        self.deleted.append(pod["metadata"]["uid"])
        self._end(pod)
        return 200, pod

    # --- what goes on meanwhile ---

    def pass_time(self, seconds):
        for _second in range(max(1, round(seconds))):
            self.now += 1
            for daemonset in list(self.objects[SETS].values()):
                if not self.blind:
                    self._control(daemonset)
                self._count(daemonset)
            self._run_kubelets()
            if not self.now % 10:
                for item in list(self.objects[NODES].values()):
                    self._report(item)

    def settle(self):
        self.pass_time(30)
        self.unavailable, self.deleted = 0, []

    def pods_of(self, daemonset):
        uid = daemonset["metadata"]["uid"]
        return [pod for pod in self.objects[PODS].values() if pod["metadata"]["ownerReferences"][0]["uid"] == uid]

    def running(self, name="plugin"):
        """{node: image} of the pods that work."""
        pods = self.pods_of(self.objects[SETS][name])
        return {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["image"] for pod in pods if _ready(pod)}

    def _control(self, daemonset):
        metadata, spec, status = daemonset["metadata"], daemonset["spec"], daemonset.setdefault("status", {})
        present = self._revision(daemonset)
        pods = {}
        for pod in self.pods_of(daemonset):
            pods[pod["spec"]["nodeName"]] = pod
        wanted = [
            name for name, item in self.objects[NODES].items() if _selects(spec["template"]["spec"], item["metadata"]["labels"])
        ]
        for name in wanted:
            if name not in pods:
                self._create(daemonset, name, present)
        for name, pod in pods.items():
            if name not in wanted:
                self._end(pod)
        if spec.get("updateStrategy", {}).get("type", "RollingUpdate") == "RollingUpdate":
            self._replace(spec, pods, present, len(wanted))
        ready = [pod for pod in pods.values() if _ready(pod)]
        told = {
            "observedGeneration": metadata["generation"],
            "desiredNumberScheduled": len(wanted),
            "numberReady": len(ready),
            "numberAvailable": len(ready),
            "updatedNumberScheduled": sum(
                pod["metadata"]["labels"]["controller-revision-hash"] == present for pod in pods.values()
            ),
        }
        if told != status:
            daemonset["status"] = told
            self.put(SETS, daemonset)

    def _replace(self, spec, pods, present, desired):
        most = spec.get("updateStrategy", {}).get("rollingUpdate", {}).get("maxUnavailable", 1)
        most = -(-desired * int(most[:-1]) // 100) if str(most).endswith("%") else int(most)
        gone = desired - sum(map(_ready, pods.values()))
        for pod in pods.values():
            old = pod["metadata"]["labels"]["controller-revision-hash"] != present
            if old and "deletionTimestamp" not in pod["metadata"]:
                if not _ready(pod):
                    self._end(pod)
                elif gone < most:
                    gone += 1
                    self._end(pod)

    def _revision(self, daemonset):
        """The hash of the present template; made if there is no such revision, and the newest from now on."""
        data = {"spec": {"template": dict(daemonset["spec"]["template"], **{"$patch": "replace"})}}
        text = hashlib.sha256(json.dumps([daemonset["metadata"]["uid"], data], sort_keys=True).encode()).hexdigest()[:10]
        name = "%s-%s" % (daemonset["metadata"]["name"], text)
        newest = max([item["revision"] for item in self._revisions(daemonset)], default=0)
        item = self.objects[REVISIONS].get(name)
        if item is None or item["revision"] < newest:
            labels = dict(daemonset["spec"]["template"]["metadata"]["labels"], **{"controller-revision-hash": text})
            metadata = {"name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": _owner(daemonset)}
            self.put(REVISIONS, {"metadata": metadata, "revision": newest + 1, "data": copy.deepcopy(data)})
        return text

    def _revisions(self, daemonset):
        return [item for item in self.objects[REVISIONS].values() if item["metadata"]["ownerReferences"] == _owner(daemonset)]

    def _create(self, daemonset, name, present):
        self._made += 1
        labels = dict(daemonset["spec"]["template"]["metadata"]["labels"], **{"controller-revision-hash": present})
        title = "%s-%d" % (daemonset["metadata"]["name"], self._made)
        metadata = {"name": title, "namespace": NAMESPACE, "uid": "uid-" + title, "labels": labels}
        spec = dict(copy.deepcopy(daemonset["spec"]["template"]["spec"]), nodeName=name)
        metadata.update(ownerReferences=_owner(daemonset), created=self.now)
        self.put(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def _end(self, pod):
        if "deletionTimestamp" not in pod["metadata"]:
            pod["metadata"].update(deletionTimestamp="2026-11-23T10:00:00Z", ended=self.now)
            self.put(PODS, pod)

    def _run_kubelets(self):
        for pod in list(self.objects[PODS].values()):
            metadata, on = pod["metadata"], self.objects[NODES].get(pod["spec"]["nodeName"])
            if on is None or on["status"]["conditions"][0]["status"] != "True":
                continue
            if "deletionTimestamp" in metadata:
                if self.now > metadata["ended"]:
                    del self.objects[PODS][metadata["name"]]
                    self._offer(pod, on["metadata"]["name"], "0")
            elif self.now >= metadata["created"] + 2:
                self._start(pod, on)

    def _start(self, pod, on):
        image = pod["spec"]["containers"][0]["image"]
        fate = self.per_node.get((on["metadata"]["name"], image), self.images.get(image))
        container = {"name": "main", "image": image, "restartCount": 0, "lastState": {}, "state": {"running": {}}}
        if fate == "no image":
            container["state"] = {"waiting": {"reason": "ErrImagePull", "message": "%s: not found" % image}}
        if fate == "ends":
            container.update(restartCount=int(self.now - pod["metadata"]["created"]) // 10)
            container["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}
            container["lastState"] = {"terminated": {"exitCode": 127, "reason": "Error"}}
        works = fate not in ("no image", "ends", "hangs")
        told = {"phase": "Running", "containerStatuses": [container],
                "conditions": [{"type": "Ready", "status": "True" if works else "False"}]}  # fmt: skip
        if told != pod["status"]:
            pod["status"] = told
            self.put(PODS, pod)
        if works and self.now >= pod["metadata"]["created"] + 4:
            self._offer(pod, on["metadata"]["name"], "0" if fate == "no chips" else str(self.devices or 8 * self._shares(pod)))

    @staticmethod
    def _shares(pod):
        """How many devices a plugin makes of a chip, by its flag."""
        (text,) = pod["spec"]["containers"][0].get("args") or [""]
        return int(text.partition("-shareDevCount=")[2] or 1)

    def _offer(self, pod, name, count):
        if pod["spec"].get("volumes"):
            self._offered[name] = count

    def _report(self, on):
        count = self._offered.get(on["metadata"]["name"], "8")
        if on["status"]["allocatable"][CHIPS] != count:
            on["status"]["allocatable"][CHIPS] = count
            self.put(NODES, on)

    def _count(self, daemonset):
        """A node without a working pod is unavailable, unless it is not there for others either."""
        up = [name for name, item in self.objects[NODES].items() if item["status"]["conditions"][0]["status"] == "True"]
        ready = self.running(daemonset["metadata"]["name"])
        self.unavailable = max(self.unavailable, sum(name not in ready for name in up))


def _selects(pod_spec, labels):
    """By node selector and required node affinity, of which the stub knows In and NotIn."""

    def holds(entry):
        return (labels.get(entry["key"]) in entry["values"]) == (entry["operator"] == "In")

    terms = pod_spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = [term["matchExpressions"] for term in terms.get("nodeSelectorTerms", [])]
    affine = not terms or any(all(map(holds, term)) for term in terms)
    return affine and pod_spec.get("nodeSelector", {}).items() <= labels.items()


def _owner(daemonset):
    metadata = daemonset["metadata"]
    return [{"kind": "DaemonSet", "name": metadata["name"], "uid": metadata["uid"], "controller": True}]


def _ready(pod):
    conditions = pod["status"].get("conditions") or []
    return "deletionTimestamp" not in pod["metadata"] and any(item["status"] == "True" for item in conditions)


class Clock:
    """Time that passes only by sleeping, and with it the stub's; ``then`` is called with the second that it is."""

    def __init__(self, api, then=lambda _second: None):
        self._api, self._then = api, then

    def now(self):
        return self._api.now

    monotonic = now

    def heard(self, _date, _took):
        pass

    def sleep(self, seconds):
        self._api.pass_time(seconds)
        self._then(self._api.now)
