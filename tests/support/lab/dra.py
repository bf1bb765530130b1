# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' example of a DRA driver on the lab, and pods with ResourceClaims of it."""

from __future__ import annotations

import json

from support.lab.workloads import PULL_SECRET, Team, waiting
from support.paths import CHECKOUT
from support.patience import PATIENCE, RUN_PATIENCE

DRIVER = "test-driver.cdi.k8s.io"
NAME = "dra-plugin"  # of what runs the driver's plugin, and what that needs
RBAC = "rbac.authorization.k8s.io"
RESOURCE = "resource.k8s.io"
# https://github.com/kubernetes/kubernetes/blob/v1.37.2/test/e2e/dra/test-driver/deploy/example/plugin-permissions.yaml
RULES = [
    {"apiGroups": [RESOURCE], "resources": ["resourceclaims"], "verbs": ["get"]},
    {
        "apiGroups": [RESOURCE],
        "resources": ["resourceslices"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
]
DIRECTORIES = {
    "registry": "/var/lib/kubelet/plugins_registry",
    "plugin": f"/var/lib/kubelet/plugins/{DRIVER}",
    "cdi": "/var/run/cdi",
}


class DraTeam(Team):
    """A namespace with the driver's plugin on nodes that have the label `label`: none at first. Leaving frees its claims and removes
    it."""

    def __init__(self, lab, name: str) -> None:
        super().__init__(lab, name)
        self.label = f"lab/{name}"

    def create(self) -> None:
        super().create()
        meta = {"name": NAME, "namespace": self.name}
        role = {"name": f"{self.name}-{NAME}"}
        subject = {"kind": "ServiceAccount", **meta}
        self.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": role, "rules": RULES},
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": role,
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", **role},
                "subjects": [subject],
            },
            {
                "apiVersion": f"{RESOURCE}/v1",
                "kind": "DeviceClass",
                "metadata": {"name": self.name},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
            },
            {
                "apiVersion": f"{RESOURCE}/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "device", "namespace": self.name},
                "spec": {"spec": {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": self.name}}]}}},
            },
        )

    def run_plugin(self, kind: str) -> None:
        """Have a DaemonSet run the plugin, as drivers are deployed mostly; or a Deployment, whose pod a drain evicts."""
        other = {"DaemonSet": "deployment", "Deployment": "daemonset"}[kind]
        self.lab.kubectl("delete", other, NAME, "-n", self.name, "--ignore-not-found")
        spec = self._plugin(self.lab._run([str(CHECKOUT / "lab" / "dra-driver")], timeout=RUN_PATIENCE).stdout.strip())
        if kind == "Deployment":
            spec.update(replicas=1, strategy={"type": "Recreate"})
        self.apply(
            {
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": {"name": NAME, "namespace": self.name, "labels": {"app": NAME}},
                "spec": spec,
            }
        )

    def _plugin(self, image: str) -> dict:
        mounts = [{"name": name, "mountPath": path} for name, path in DIRECTORIES.items()]
        volumes = [{"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for name, path in DIRECTORIES.items()]
        container = {
            "name": "plugin",
            "image": image,
            "args": ["kubelet-plugin", "--node-name=$(NODE)", f"--drivername={DRIVER}"],
            "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "securityContext": {"privileged": True},
            "volumeMounts": mounts,
        }
        labels = {"app": NAME}
        spec = {
            "serviceAccountName": NAME,
            "nodeSelector": {self.label: "yes"},
            "imagePullSecrets": [{"name": PULL_SECRET}],
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": volumes,
        }
        return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}

    def remove(self) -> None:
        for pod in self.lab.pods(self.name):  # a pod that hangs would keep the namespace
            if "deletionTimestamp" in pod["metadata"] and pod["spec"].get("resourceClaims"):
                self.start(pod["spec"]["nodeName"])
        role = f"{self.name}-{NAME}"
        self.lab.kubectl("delete", "deployment", "-n", self.name, f"--selector=app!={NAME}")
        self.lab.wait_for(lambda: not self.holders(), PATIENCE, "no pod holds a claim", 0.5)
        super().remove()
        for kind in ("clusterrole", "clusterrolebinding"):
            self.lab.kubectl("delete", kind, role, "--ignore-not-found")
        self.lab.kubectl("delete", "deviceclass", self.name, "--ignore-not-found")
        self.lab.kubectl("label", "nodes", "--all", f"{self.label}-")

    def start(self, node: str) -> None:
        """Have the plugin run on a node."""
        self.lab.kubectl("label", "node", node, f"{self.label}=yes", "--overwrite")
        self.lab.wait_for(lambda: self.slices(node), PATIENCE, f"the plugin of {DRIVER} runs on {node}", 0.5)

    def stop(self, node: str) -> None:
        """Take the plugin away, and wait until the kubelet has noticed."""
        self.lab.kubectl("label", "node", node, f"{self.label}-")
        self.lab.wait_for(lambda: not self.slices(node), PATIENCE, f"the plugin of {DRIVER} is gone from {node}", 0.5)

    def slices(self, node: str) -> list[dict]:
        """The node's ResourceSlices of the driver."""
        selector = f"spec.nodeName={node},spec.driver={DRIVER}"
        return self.lab.api.get(f"/apis/{RESOURCE}/v1/resourceslices?fieldSelector={selector}")["items"]

    def claims(self) -> list[dict]:
        return self.lab.api.get(f"/apis/{RESOURCE}/v1/namespaces/{self.name}/resourceclaims")["items"]

    def holders(self) -> list[dict]:
        """Pods with claims."""
        return [pod for pod in self.lab.pods(self.name) if pod["spec"].get("resourceClaims")]

    def prepared(self, node: str) -> list[str]:
        """The names of the claims that the kubelet of a node has prepared, as its own file has them."""
        text = self.lab.ssh(node, "cat /var/lib/kubelet/dra_manager_state 2>/dev/null || echo '{}'").stdout
        data = json.loads(text).get("Data") or {}
        state = json.loads(data) if isinstance(data, str) else data
        return sorted(entry["ClaimName"] for entry in _entries(state) if entry.get("Namespace") == self.name)

    def deploy_holder(self, name: str, node: str) -> str:
        """A Deployment whose one pod holds a claim of the driver on a node, and takes its time to end; the claim's name."""
        labels = {"app": name}
        container = {
            "name": "main",
            "image": self.image,
            "command": ["sh", "-c", waiting(3)],
            "resources": {"claims": [{"name": "device"}]},
        }
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 5,
            "imagePullSecrets": [{"name": PULL_SECRET}],
            "containers": [container],
            "resourceClaims": [{"name": "device", "resourceClaimTemplateName": "device"}],
        }
        template = {"metadata": {"labels": labels}, "spec": spec}
        self.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": self.name},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
            }
        )
        self.wait_available(name, 1)
        (claim,) = self.claims()
        return claim["metadata"]["name"]


def _entries(state: object) -> list[dict]:
    """All dictionaries with a ClaimName in a decoded checkpoint, whatever its version."""
    if isinstance(state, dict):
        found = [state] if "ClaimName" in state else []
        return found + [entry for value in state.values() for entry in _entries(value)]
    return [entry for value in state for entry in _entries(value)] if isinstance(state, list) else []
