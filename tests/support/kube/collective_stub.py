# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of nodes that find each other by MASTER_ADDR, on top of the stub: each look at a pod takes it a step further."""

from __future__ import annotations

from support.kube.eviction_stub import EvictionApi
from support.kube.stub import node

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
CHIPS = "huawei.com/Ascend910"
MANIFEST = (
    """
apiVersion: v1
kind: Pod
metadata: {name: reduce}
spec:
  containers:
  - name: main
    image: registry/reduce:1
    env: [{name: NODE_RANK, value: "7"}, {name: MINE, value: "rank $(NODE_RANK)"}]
    resources: {limits: {%s: 8}}
  - {name: beside, image: registry/beside:1}
"""
    % CHIPS
)


def node_of(pod):
    """The node to which a pod is pinned."""
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]


def variables(pod):
    """The env of its first container; of a reference, the field that it names."""
    found = {}
    for entry in pod["spec"]["containers"][0]["env"]:
        found[entry["name"]] = entry.get("value") or entry["valueFrom"]["fieldRef"]["fieldPath"]
    return found


class CollectiveApi(EvictionApi):
    """``bad``: nodes whose pods fail when they have found the other one; ``apart``: sets of two nodes whose pods do so with each other;
    ``alone``: nodes whose pods succeed at once; ``statuses``: node -> what the status of its pods always is.

    ``created``: the pods in order; ``pairs``: the nodes whose pods worked together; ``most``: pods at the same time.
    """

    def __init__(self):
        super().__init__()
        self.bad, self.apart, self.alone, self.statuses = set(), [], set(), {}
        self.created, self.pairs, self.most = [], [], 0

    def node(self, name, chips=8, gate=None, resource=CHIPS):
        """A Node that is drained, or waits to be accepted."""
        made = node(name, boot_id="boot-of-" + name, allocatable={resource: str(chips)}, unschedulable=gate is None)
        if gate:
            made["spec"]["taints"] = [{"key": "npuops.ascend/not-accepted", "value": str(gate), "effect": "NoSchedule"}]
        self.put(NODES, made)
        return made

    @property
    def pods(self):
        return list(self.objects.get(PODS, {}).values())

    def ip_of(self, name):
        return "10.0.0.%d" % (1 + sorted(self.objects[NODES]).index(name))

    def answer(self, method, path, query, body):
        if method == "GET" and path.startswith(PODS + "/") and not path.endswith("/log"):
            pod = self.objects.get(PODS, {}).get(path.rpartition("/")[2])
            if pod:
                self._advance(pod)
        answered = super().answer(method, path, query, body)
        if method == "POST" and path == PODS and answered[0] == 201:
            self.created.append(body)
            self.most = max(self.most, len(self.pods))
            if variables(body)["NODE_RANK"] == "1":
                first = next(pod for pod in self.pods if self._is_peer(pod, body))
                self.pairs.append((node_of(first), node_of(body)))
        return answered

    def _advance(self, pod):
        name, status = node_of(pod), pod.setdefault("status", {})
        if name in self.statuses:
            pod["status"] = dict(self.statuses[name])
        elif not status:
            status.update(phase="Running", podIP=self.ip_of(name))
        elif name in self.alone:
            status.update(phase="Succeeded")
        elif status["phase"] == "Running":
            peer = next((other for other in self.pods if self._is_peer(pod, other) or self._is_peer(other, pod)), None)
            if peer is None or not peer.get("status"):
                return
            if name in self.bad or {name, node_of(peer)} in self.apart:
                ended = {"name": "main", "state": {"terminated": {"exitCode": 1}}}
                status.update(phase="Failed", containerStatuses=[ended])
            elif node_of(peer) not in self.bad:
                status.update(phase="Succeeded")
                peer["status"]["phase"] = "Succeeded"

    @staticmethod
    def _is_peer(first, second):
        """Whether the second one was told the address of the first."""
        return first is not second and variables(second)["MASTER_ADDR"] == first.get("status", {}).get("podIP")
