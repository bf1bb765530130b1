# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded API: nodes and pods as full as a real cluster's, any number of them, in pages.

As a program it serves until its standard input ends; it prints its address first. So a measurement does not count what
the server costs.
"""

from __future__ import annotations

import argparse
import json
import sys

from support import collection  # noqa: F401  pylint: disable=unused-import
from support.kube.eviction_stub import BUDGETS, PODS, EvictionApi, budget, pod
from support.kube.stub import node

RESOURCE = "huawei.com/Ascend910"
SERVICES = "/api/v1/services"


def _fields(count):
    """managedFields of a usual size."""
    entry = {"f:k%02d" % number: {".": {}, "f:name": {}, "f:value": {}} for number in range(count)}
    return [
        {"apiVersion": "v1", "fieldsType": "FieldsV1", "manager": manager, "operation": "Update",
         "time": "2026-11-20T10:00:00Z", "fieldsV1": {"f:spec": entry}}
        for manager in ("kube-controller-manager", "kubelet")
    ]  # fmt: skip


def big_node(number):
    item = node("n%04d" % number, boot_id="boot-n%04d" % number, allocatable={RESOURCE: "8", "cpu": "96", "memory": "700Gi"},
                labels={"label-%02d.example.com/x" % index: "value-%d" % index for index in range(25)})  # fmt: skip
    item["metadata"]["managedFields"] = _fields(20)
    item["metadata"]["labels"].update({"kubernetes.io/os": "linux", "openfuyao.com/npu.present": ""})
    item["status"]["images"] = [
        {"names": ["registry.example/some/long/image/name@sha256:" + "ab" * 32, "registry.example/x:%d" % index],
         "sizeBytes": 10**9}
        for index in range(50)
    ]  # fmt: skip
    item["status"]["addresses"] = [{"type": "InternalIP", "address": "10.1.%d.%d" % divmod(number, 250)}]
    return item


def big_pod(number, nodes):
    app = "app-%04d" % (number % 2000)
    item = pod("%s-5d4f6c7b8-%05d" % (app, number), node="n%04d" % (number % nodes), owner=("ReplicaSet", app + "-5d4f6c7b8"),
               namespace="ns-%02d" % (number % 2000 % 40), npus=2 if number % 30 < 3 else 0,
               labels={"app": app, "pod-template-hash": "5d4f6c7b8", "tier": "back", "release": app})  # fmt: skip
    item["metadata"]["managedFields"] = _fields(15)
    item["status"]["podIP"] = "10.%d.%d.%d" % (number >> 16 & 255, number >> 8 & 255, number & 255)
    main = item["spec"]["containers"][0]
    main.update(
        image="registry.example/team/%s:1.2.3" % app,
        env=[{"name": "VARIABLE_%02d" % index, "value": "value %d" % index} for index in range(20)],
        volumeMounts=[{"name": "v%d" % index, "mountPath": "/data/%d" % index, "readOnly": True} for index in range(4)],
    )
    item["spec"]["tolerations"] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    item["status"]["containerStatuses"] = [
        {"name": "main", "ready": True, "restartCount": 0, "image": main["image"], "imageID": "sha256:" + "cd" * 32,
         "containerID": "containerd://" + "ef" * 32, "state": {"running": {"startedAt": "2026-11-20T10:00:00Z"}}}
    ]  # fmt: skip
    item["status"]["conditions"] += [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-11-20T10:00:00Z"}
        for kind in ("Initialized", "ContainersReady", "PodScheduled")
    ]
    return item


class BigCluster(EvictionApi):
    """``nodes`` nodes, ``pods`` pods; one budget for each app with an even number."""

    def __init__(self, nodes, pods):
        super().__init__()
        self.put("/api/v1/nodes", *[big_node(number) for number in range(nodes)])
        for number in range(pods):
            item = big_pod(number, nodes)
            self.objects[PODS][item["metadata"]["name"]] = item
        self.objects[SERVICES] = {}
        budgets = [
            budget("app-%04d" % number, allowed=1, healthy=15, desired=14, namespace="ns-%02d" % (number % 40),
                   selector={"matchLabels": {"app": "app-%04d" % number}})
            for number in range(0, min(2000, pods), 2)
        ]  # fmt: skip
        self.put(BUDGETS, *budgets)
        self._lists = {}

    def answer(self, method, path, query, body):
        if method == "GET" and path == PODS and "status.phase" in query.get("fieldSelector", ""):
            key = (query.get("continue"), query.get("limit"))
            # As text: the server's own work must not count in what is measured.
            if key not in self._lists:
                items = list(self.objects[PODS].values())
                self._lists[key] = json.dumps(self._page(items, query))
            return 200, self._lists[key]
        return super().answer(method, path, query, body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=30000)
    arguments = parser.parse_args()
    with BigCluster(arguments.nodes, arguments.pods) as api:
        for start in range(0, arguments.pods, 500):
            query = {"limit": "500", "fieldSelector": "status.phase!=Failed"}
            if start:
                query["continue"] = str(start)
            api.answer("GET", PODS, query, None)
        print(api.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
