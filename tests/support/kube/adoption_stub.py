# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster with the device plugin and the exporter of another installation, and ours, which install deployed beside them."""

from __future__ import annotations

import copy

from support.kube.daemonset_stub import ALL_PODS, CHIPS, NODES, PODS, SETS, DaemonSetApi, definition
from support.kube.stub import node

ALL_SETS = "/apis/apps/v1/daemonsets"
THEIRS, THEIR_EXPORTER, OURS, OUR_EXPORTER = (
    "ascend-device-plugin-daemonset-910",
    "their-npu-exporter",
    "ascend-device-plugin-daemonset",
    "npu-exporter",
)
THEIR_IMAGE, OUR_IMAGE = (
    "hub.example/ascendhub/ascend-k8sdeviceplugin:v7.3.0",
    "hub.example/ascendhub/ascend-k8sdeviceplugin:v26.1.0",
)
THEIR_LABELS = {"accelerator": "huawei-Ascend910", "workerselector": "dls-worker-node"}
FLEET = ("a", "b", "c")


def their_plugin(**pod_spec):
    """With upstream's name and selectors. In our namespace, as the stub knows only that one."""
    item = definition(THEIR_IMAGE, THEIRS, **dict({"nodeSelector": dict(THEIR_LABELS)}, **pod_spec))
    item["spec"]["template"]["spec"]["containers"][0]["args"] = ["device-plugin -useAscendDocker=true -volcanoType=false"]
    return item


def their_exporter():
    item = definition("hub.example/npu-exporter:v7.3.0", THEIR_EXPORTER, plugin=False, nodeSelector=dict(THEIR_LABELS))
    item["spec"]["template"]["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    return item


class AdoptionApi(DaemonSetApi):
    """``fleet`` makes nodes with the labels of the other installation, and on each a pod that uses chips.

    ``both``: the nodes on which pods of two device plugins have been at once.
    """

    def __init__(self):
        super().__init__()
        self.both = set()

    def fleet(self, *names):
        self.put(NODES, *[node(name, labels=dict(THEIR_LABELS), allocatable={CHIPS: "8", "cpu": "4"}) for name in names])
        for name in names:
            limits = {"containers": [{"name": "main", "resources": {"limits": {CHIPS: "2"}}}], "nodeName": name}
            metadata = {"name": "train-" + name, "namespace": "team", "uid": "uid-train-" + name}
            status = {"phase": "Running", "containerStatuses": [{"restartCount": 0}]}
            self.put(ALL_PODS, {"metadata": metadata, "spec": limits, "status": status})

    def deploy(self, *definitions):
        for item in definitions:
            body = copy.deepcopy(item)
            self._made += 1
            body["metadata"].update(uid="uid-%s-%d" % (body["metadata"]["name"], self._made), generation=1)
            body["status"] = {}
            self.put(SETS, body)

    def deploy_all(self):
        """Theirs, which works, and ours, which runs nowhere yet."""
        self.deploy(their_plugin(), their_exporter())
        self.settle()
        self.deploy(definition(OUR_IMAGE, OURS), definition("hub.example/npu-exporter:v26.1.0", OUR_EXPORTER, plugin=False))
        self.settle()

    def answer(self, method, path, query, body):
        if path == ALL_SETS and method == "GET":
            return 200, {"metadata": {}, "items": list(self.objects[SETS].values())}
        if path == ALL_PODS and not query.get("fieldSelector"):
            return 200, {"metadata": {}, "items": [*self.objects[ALL_PODS].values(), *self.objects[PODS].values()]}
        return super().answer(method, path, query, body)

    def pass_time(self, seconds):
        for _second in range(max(1, round(seconds))):
            super().pass_time(1)
            there = {}
            for item in self.objects[PODS].values():
                if item["spec"].get("volumes"):
                    there.setdefault(item["spec"]["nodeName"], set()).add(item["metadata"]["ownerReferences"][0]["name"])
            self.both |= {name for name, owners in there.items() if len(owners) > 1}

    def uids(self, name):
        """{node: UID} of the pods of a DaemonSet."""
        return {item["spec"]["nodeName"]: item["metadata"]["uid"] for item in self.pods_of(self.objects[SETS][name])}

    def labels(self, name):
        return self.objects[NODES][name]["metadata"]["labels"]

    def annotations(self, name):
        return self.objects[NODES][name]["metadata"]["annotations"]
