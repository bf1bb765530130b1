# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods, disruption budgets and evictions as the API server does them, on top of the plain stub."""

from __future__ import annotations

from support.kube.stub import ApiServer

PODS = "/api/v1/pods"
NAMESPACED_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def pod(name, node="a", owner=("ReplicaSet", "web-5d4f"), labels=None, phase="Running", ready=True, namespace="train",
        npus=0, volumes=(), node_selector=None, annotations=None, resource="huawei.com/Ascend910"):  # fmt: skip
    """A Pod; ``owner``: (kind, name) of its controller or None."""
    resources = {"requests": {"cpu": "1"}, "limits": {resource: str(npus)}} if npus else {}
    metadata = {"name": name, "namespace": namespace, "uid": "uid-" + name, "labels": labels or {"app": "web"}}
    metadata["annotations"] = annotations or {}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "nodeSelector": node_selector or {},
            "volumes": list(volumes),
            "containers": [{"name": "main", "resources": resources}],
        },
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def budget(name="web", allowed=0, healthy=2, desired=2, selector=None, namespace="train", **spec):
    """A PodDisruptionBudget."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": dict(spec, selector={"matchLabels": {"app": "web"}} if selector is None else selector),
        "status": {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired},
    }


class EvictionApi(ApiServer):
    """``evicted``: names of pods in the order they were really evicted; ``dry_runs``: of those only asked about.

    ``on_evict``: called with the Pod after an eviction was accepted; by default it is gone at once. ``refuse``: pod name ->
    (status, body) that its evictions get.
    """

    def __init__(self):
        super().__init__()
        self.evicted, self.dry_runs, self.refuse = [], [], {}
        self.on_evict = self.remove
        self.objects.update({PODS: {}, BUDGETS: {}})

    def remove(self, item):
        self.objects[PODS].pop(item["metadata"]["name"], None)

    def answer(self, method, path, query, body):
        if (method, path) in self.faults:
            return super().answer(method, path, query, body)
        if path.endswith("/eviction"):
            return self._evict(path.split("/")[-2], body, bool(query.get("dryRun")))
        if method == "GET" and path == PODS and "fieldSelector" in query:
            found = [item for item in self.objects[PODS].values() if self._selected(item, query["fieldSelector"])]
            return 200, self._page(found, query)
        if method == "GET" and (path == SLICES or path.startswith(NAMESPACED_CLAIMS)):
            return self._devices(path, query)
        return super().answer(method, path, query, body)

    def _evict(self, name, body, dry_run):
        item = self.objects[PODS].get(name)
        if item is None:
            return 404, {"message": 'pods "%s" not found' % name}
        if dry_run:
            self.dry_runs.append(name)
        if name in self.refuse:
            return self.refuse[name]
        if body["deleteOptions"]["preconditions"]["uid"] != item["metadata"]["uid"]:
            return 409, {"message": "the UID in the precondition does not match"}
        covering = [entry for entry in self.objects[BUDGETS].values() if self._covers(entry, item)]
        if len(covering) > 1:
            return 500, {
                "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            }
        for entry in covering:
            if entry["status"]["disruptionsAllowed"] <= 0:
                return 429, violation(entry)
            if not dry_run:
                entry["status"]["disruptionsAllowed"] -= 1
        if not dry_run:
            self.evicted.append(name)
            self.on_evict(item)
        return 201, {"kind": "Status", "status": "Success"}

    @staticmethod
    def _selected(item, selector):
        """Of the field selectors those that the collection uses."""
        have = {"spec.nodeName": item["spec"]["nodeName"], "status.phase": item["status"]["phase"]}
        for requirement in selector.split(","):
            field, operator, value = requirement.partition("!=" if "!=" in requirement else "=")
            if (have[field] == value) is (operator == "!="):
                return False
        return True

    def _devices(self, path, query):
        """ResourceClaims of a namespace and ResourceSlices, by fields."""
        collection = SLICES if path == SLICES else CLAIMS
        if ("GET", collection) in self.faults or collection not in self.objects:
            return super().answer("GET", collection, query, None)
        found = list(self.objects[collection].values())
        if path != SLICES:
            namespace = path.split("/")[5]
            found = [item for item in found if item["metadata"]["namespace"] == namespace]
        for requirement in filter(None, query.get("fieldSelector", "").split(",")):
            field, _equals, value = requirement.partition("=")
            found = [item for item in found if _field(item, field) == value]
        return 200, self._page(found, query)

    @staticmethod
    def _covers(entry, item):
        wanted = entry["spec"]["selector"]["matchLabels"].items()
        labels = item["metadata"]["labels"]
        same_namespace = entry["metadata"]["namespace"] == item["metadata"]["namespace"]
        return same_namespace and all(labels.get(key) == value for key, value in wanted)


def _field(item, path):
    for name in path.split("."):
        item = item.get(name) or {}
    return item


def violation(entry, retry_after=0):
    """What the API server says when a budget does not allow an eviction."""
    needed = "The disruption budget %s needs %d healthy pods and has %d currently" % (
        entry["metadata"]["name"], entry["status"]["desiredHealthy"], entry["status"]["currentHealthy"])  # fmt: skip
    details = {"causes": [{"reason": "DisruptionBudget", "message": needed}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return {"message": "Cannot evict pod as it would violate the pod's disruption budget.", "details": details}


# --- Dynamic Resource Allocation ---

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
DAEMONSETS = "/apis/apps/v1/daemonsets"


def holding(item, *names):
    """The Pod with ResourceClaims: the first of its own, as of a template, the others shared."""
    entries = [{"name": "own", "resourceClaimTemplateName": "t"}]
    entries += [{"name": name, "resourceClaimName": name} for name in names[1:]]
    item["spec"]["resourceClaims"] = entries
    item["status"]["resourceClaimStatuses"] = [{"name": "own", "resourceClaimName": names[0]}]
    return item


def claim(name, driver="npu.huawei.com", pool="a", namespace="train", **result):
    """An allocated ResourceClaim."""
    results = [dict({"request": "r", "driver": driver, "pool": pool, "device": "npu-0"}, **result)]
    return {"metadata": {"name": name, "namespace": namespace}, "status": {"allocation": {"devices": {"results": results}}}}


def resource_slice(driver="npu.huawei.com", pool="a"):
    """What the driver's plugin publishes of its node."""
    return {"metadata": {"name": "%s-%s" % (pool, driver)}, "spec": {"driver": driver, "nodeName": pool, "pool": {"name": pool}}}


def plugin_volumes(driver="npu.huawei.com"):
    """Of a pod that is a DRA driver's plugin."""
    paths = ("/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins/" + driver)
    return [{"name": "v%d" % number, "hostPath": {"path": path}} for number, path in enumerate(paths)]


def plugin_daemonset(name="npu-dra", driver="npu.huawei.com", namespace="dra"):
    """The DaemonSet of such pods."""
    spec = {"volumes": plugin_volumes(driver), "containers": [{"name": "plugin"}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": {"spec": spec}}}
