# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""MindCluster as its users set it up, on the lab: objects with upstream's names, in upstream's namespaces, talking to the kubelet.

What must stay upstream's: names, namespaces, labels, selectors, mounts, rights (Ascend/mind-cluster, component/*/build). The images
are the lab's.
"""

from __future__ import annotations

import json

from support.lab.workloads import PULL_SECRET

PLUGIN, PLUGIN_NAMESPACE = "ascend-device-plugin-daemonset", "kube-system"
EXPORTER, EXPORTER_NAMESPACE = "npu-exporter", "npu-exporter"
ACCOUNT, ROLE, BINDING = (
    "ascend-device-plugin-sa-910",
    "pods-node-ascend-device-plugin-role-910",
    "pods-node-ascend-device-plugin-rolebinding-910",
)
RELEASE = "v7.3.2"
_LOGS = "/var/log/mindx-dl"


class Foreign:
    """`with Foreign(lab, "npu-a")`: deployed for 910 chips, on that node only. Leaving removes it. ``driver``: the tree on the host."""

    def __init__(self, lab, node: str, driver: str = "/usr/local/Ascend/driver") -> None:
        self.lab, self._node, self._driver = lab, node, driver
        self._registry = str(lab.variable("npu_driver_repository")).split("/", maxsplit=1)[0]

    def __enter__(self) -> Foreign:
        self.deploy()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.remove()

    def deploy(self) -> None:
        secrets = []
        for namespace in (PLUGIN_NAMESPACE, EXPORTER_NAMESPACE):
            secret = self.lab.get("secret", PULL_SECRET, "-n", "default")
            secret["metadata"] = {"name": PULL_SECRET, "namespace": namespace}
            secrets.append(secret)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": EXPORTER_NAMESPACE}}
        self.apply(namespace, *secrets, *self._rights(), self._plugin(), self._exporter())
        self.lab.kubectl("apply", "-f", "docs/controller-access-adopt.yml")

    def apply(self, *objects: dict) -> None:
        self.lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def remove(self) -> None:
        self.lab.kubectl("delete", "-f", "docs/controller-access-adopt.yml", "--ignore-not-found")
        self.lab.kubectl("delete", "daemonset", PLUGIN, "-n", PLUGIN_NAMESPACE, "--ignore-not-found", "--wait=true")
        self.lab.kubectl("delete", "serviceaccount", ACCOUNT, "-n", PLUGIN_NAMESPACE, "--ignore-not-found")
        self.lab.kubectl("delete", "secret", PULL_SECRET, "-n", PLUGIN_NAMESPACE, "--ignore-not-found")
        self.lab.kubectl("delete", "clusterrolebinding", BINDING, "--ignore-not-found")
        self.lab.kubectl("delete", "clusterrole", ROLE, "--ignore-not-found")
        self.lab.kubectl("delete", "namespace", EXPORTER_NAMESPACE, "--ignore-not-found", "--wait=true")
        self.lab.wait_for(lambda: not self.pods(), 60, "the pods of others are gone")

    def daemonset(self, name: str = PLUGIN, namespace: str = PLUGIN_NAMESPACE) -> dict:
        return self.lab.api.get(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}")

    def pods(self) -> dict[tuple[str, str], str]:
        """{(DaemonSet, node): UID of its pod}, without pods that end."""
        found = {}
        for namespace, name in ((PLUGIN_NAMESPACE, PLUGIN), (EXPORTER_NAMESPACE, EXPORTER)):
            for pod in self.lab.pods(namespace):
                owners = [owner["name"] for owner in pod["metadata"].get("ownerReferences", [])]
                if name in owners and "deletionTimestamp" not in pod["metadata"]:
                    found[name, pod["spec"].get("nodeName", "")] = pod["metadata"]["uid"]
        return found

    @staticmethod
    def _rights() -> list[dict]:
        rules = [
            ([""], ["pods"], ["get", "list", "update", "watch", "patch"]),
            ([""], ["nodes"], ["get", "patch"]),
            ([""], ["nodes/proxy"], ["get"]),
            ([""], ["nodes/status"], ["get", "patch", "update"]),
            ([""], ["configmaps"], ["get", "create", "update", "list", "watch"]),
            ([""], ["events"], ["create"]),
        ]
        group = "rbac.authorization.k8s.io"
        return [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": PLUGIN_NAMESPACE}},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": ROLE},
                "rules": [{"apiGroups": groups, "resources": resources, "verbs": verbs} for groups, resources, verbs in rules],
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": BINDING},
                "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": PLUGIN_NAMESPACE}],
                "roleRef": {"kind": "ClusterRole", "name": ROLE, "apiGroup": group},
            },
        ]

    def _plugin(self) -> dict:
        mounts = {
            "device-plugin": ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins"),
            "pod-resource": ("/var/lib/kubelet/pod-resources", "/var/lib/kubelet/pod-resources"),
            "hiai-driver": (self._driver, "/usr/local/Ascend/driver"),
            "log-path": (f"{_LOGS}/devicePlugin", f"{_LOGS}/devicePlugin"),
            "tmp": ("/tmp", "/tmp"),
        }
        command = f"device-plugin -useAscendDocker=true -logFile={_LOGS}/devicePlugin/devicePlugin.log -logLevel=0"
        fields = {"NODE_NAME": "spec.nodeName", "HOST_IP": "status.hostIP"}
        env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
        labels = {"name": "ascend-device-plugin-ds"}
        item = self._daemonset(
            PLUGIN, PLUGIN_NAMESPACE, labels, {"accelerator": "huawei-Ascend910"}, "ascend-k8sdeviceplugin", command, mounts, env
        )
        spec = item["spec"]["template"]["spec"]
        spec["serviceAccountName"] = ACCOUNT
        spec["priorityClassName"] = "system-node-critical"
        spec["tolerations"] = [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "huawei.com/Ascend910", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "device-plugin", "operator": "Equal", "value": "v2", "effect": "NoSchedule"},
        ]
        return item

    def _exporter(self) -> dict:
        mounts = {
            "log-npu-exporter": (f"{_LOGS}/npu-exporter", f"{_LOGS}/npu-exporter"),
            "ascend-driver": (self._driver, "/usr/local/Ascend/driver"),
            "containerd": ("/run/containerd", "/run/containerd"),
        }
        log = f"{_LOGS}/npu-exporter/npu-exporter.log"
        command = (
            f"umask 027;npu-exporter -port=8082 -ip=0.0.0.0 -updateTime=5 -logFile={log} -logLevel=0 -containerMode=containerd"
        )
        item = self._daemonset(
            EXPORTER,
            EXPORTER_NAMESPACE,
            {"app": "npu-exporter"},
            {"workerselector": "dls-worker-node", "accelerator": "huawei-Ascend910"},
            "npu-exporter",
            command,
            mounts,
            [],
        )
        item["spec"]["template"]["spec"]["automountServiceAccountToken"] = False
        return item

    def _daemonset(
        self,
        name: str,
        namespace: str,
        labels: dict,
        selector: dict,
        image: str,
        command: str,
        mounts: dict[str, tuple[str, str]],
        env: list[dict],
    ) -> dict:
        container = {
            "name": name[:20].rstrip("-"),
            "image": f"{self._registry}/mindcluster/{image}:{RELEASE}",
            "command": ["/bin/bash", "-c", "--"],
            "args": [command],
            "securityContext": {"privileged": True, "readOnlyRootFilesystem": True, "runAsUser": 0},
            "volumeMounts": [{"name": volume, "mountPath": inside} for volume, (_path, inside) in mounts.items()],
            "env": env,
        }
        spec = {
            "nodeSelector": dict(selector, **{"kubernetes.io/hostname": self._node}),
            "imagePullSecrets": [{"name": PULL_SECRET}],
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": [
                {"name": volume, "hostPath": {"path": path, "type": "DirectoryOrCreate" if _LOGS in path else ""}}
                for volume, (path, _inside) in mounts.items()
            ],
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": labels},
                "updateStrategy": {"type": "RollingUpdate"},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
