# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster of bench/rollout.py: a real etcd and API server, and what its kubelets would do to Nodes and pods."""

from __future__ import annotations

import base64
import collections
import contextlib
import datetime
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from support.kube.big_cluster import big_node, big_pod

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
PODS_PER_NODE = 3
NAMESPACE = "work"
# Users of the API server, so that its audit log tells the requests of the run from those of the kubelets.
RUN, KUBELETS = "run", "kubelets"
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}


def programs() -> pathlib.Path:
    """The directory with the lab's etcd and API server."""
    sys.path.insert(0, str(CHECKOUT / "lab"))
    from npulab import binaries
    from npulab.settings import current_lab

    lab = current_lab()
    found = binaries.programs(lab, binaries.kubernetes(lab))
    if not found.is_dir():
        sys.exit("There is no API server yet. Run: make lab lab-down")
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    """``with Cluster(directory, drain, log) as cluster:`` pods take ``drain`` seconds to end; ``log``: a file for the audit log."""

    def __init__(self, directory: pathlib.Path, drain: float, log: pathlib.Path) -> None:
        self._directory, self._drain, self._log = directory, drain, log
        self.address = f"https://127.0.0.1:{free_port()}"
        self.ca = directory / "certs" / "apiserver.crt"
        self._etcd = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ended = threading.Event()

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        threading.Thread(target=self._end_pods, daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        for process in reversed(self._processes):
            process.terminate()
            process.wait()

    def _start(self) -> None:
        directory, found = self._directory, programs()
        client, peer = (f"http://127.0.0.1:{free_port()}" for _url in range(2))
        self._etcd = client
        (directory / "tokens.csv").write_text(f"{RUN},{RUN},1,system:masters\n{KUBELETS},{KUBELETS},2,system:masters\n")
        (directory / "audit.json").write_text(json.dumps(AUDIT))
        key = directory / "service-account.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, stderr=subprocess.DEVNULL)
        self._run(
            found / "etcd",
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
        )
        self._run(
            found / "kube-apiserver",
            f"--etcd-servers={client}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.address.rpartition(':')[2]}",
            f"--cert-dir={directory / 'certs'}",
            f"--token-auth-file={directory / 'tokens.csv'}",
            "--authorization-mode=AlwaysAllow",
            # No controller runs that would remove the taint, or create service accounts.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--endpoint-reconciler-type=none",
            f"--audit-policy-file={directory / 'audit.json'}",
            f"--audit-log-path={self._log.absolute()}",
        )
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError):
                if self.request("GET", "/readyz?verbose", raw=True):
                    return
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                raise SystemExit(f"the API server does not start; see {directory}/*.log")
            time.sleep(0.5)

    def _run(self, program: pathlib.Path, *arguments: object) -> None:
        with open(self._directory / (program.name + ".log"), "wb") as log:
            self._processes.append(subprocess.Popen([program, *map(str, arguments)], stdout=log, stderr=subprocess.STDOUT))

    # --- as a kubelet ---

    def request(self, method: str, path: str, body: Any = None, kind: str = "application/json", raw: bool = False) -> Any:
        request = urllib.request.Request(self.address + path, method=method)
        request.add_header("Authorization", f"Bearer {KUBELETS}")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, timeout=60, context=self._trust()) as answer:
            return answer.read() if raw else json.load(answer)

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def patch(self, path: str, body: Any) -> None:
        self.request("PATCH", path, body, "application/strategic-merge-patch+json")

    def fill(self, names: list[str], stuck: set[str]) -> None:
        """Make the Nodes with their pods. Those of ``stuck`` have a pod that a budget protects."""
        for name in ("npu-operator", NAMESPACE):
            self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: self._add(number, names[number], names[number] in stuck), range(len(names))))

    def fill_at_once(self, names: list[str], pods: int) -> None:
        """Make the Nodes, each with as many ``pods``, straight in etcd: tens of thousands would take the API server minutes."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        for number, name in enumerate(names):
            node = self._node(number, name)
            node["status"]["nodeInfo"].update(bootID="boot-" + name, kernelVersion="6.6", kubeletVersion="v1.37.0")
            node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "Bench", "lastTransitionTime": now}]
            found = {"/registry/minions/" + name: node | {"kind": "Node"}}
            for index in range(pods):
                pod = big_pod(index * len(names) + number, len(names))
                pod["spec"]["nodeName"] = name
                found[f"/registry/pods/{pod['metadata']['namespace']}/{pod['metadata']['name']}"] = pod | {"kind": "Pod"}
            for item in found.values():
                item["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": now}
            self._put({key: json.dumps(item | {"apiVersion": "v1"}) for key, item in found.items()})

    def _put(self, values: dict[str, str]) -> None:
        pairs = [
            {key: base64.b64encode(text.encode()).decode() for key, text in pair}
            for pair in ((("key", key), ("value", value)) for key, value in values.items())
        ]
        body = json.dumps({"success": [{"requestPut": pair} for pair in pairs]}).encode()
        with urllib.request.urlopen(urllib.request.Request(self._etcd + "/v3/kv/txn", body), timeout=60):
            pass

    @staticmethod
    def _node(number: int, name: str) -> Any:
        node = big_node(number)
        node["metadata"]["name"] = name
        node["metadata"]["labels"] |= {"kubernetes.io/hostname": name, "npuops.ascend/components": "enabled"}
        node["status"]["nodeInfo"]["machineID"] = "machine-" + name
        return node

    def _add(self, number: int, name: str, stuck: bool) -> None:
        node = self._node(number, name)
        self.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": node["metadata"]["labels"]}})
        status = {field: node["status"][field] for field in ("allocatable", "images", "addresses")}
        self._tell(name, "boot-" + name, True, dict(status, capacity=status["allocatable"]))
        for index in range(PODS_PER_NODE):
            self._add_pod(name, index, stuck and index == 0)

    def _add_pod(self, node: str, index: int, protected: bool) -> None:
        labels = {"app": "protected-" + node if protected else "work"}
        container = {"name": "main", "image": "registry.example/team/work:1"}
        if index == 0:
            container["resources"] = {"limits": {"huawei.com/Ascend910": "2"}, "requests": {"huawei.com/Ascend910": "2"}}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "work", "uid": "1", "controller": True}
        pod = {
            "metadata": {"name": f"{node}-{index}", "labels": labels, "ownerReferences": [owner]},
            "spec": {"nodeName": node, "containers": [container]},
        }
        self.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.patch(f"/api/v1/namespaces/{NAMESPACE}/pods/{node}-{index}/status", {"status": status})
        if protected:
            path = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
            spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
            self.request("POST", path, {"metadata": {"name": node}, "spec": spec})
            status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
            self.patch_merge(f"{path}/{node}/status", {"status": status})

    def patch_merge(self, path: str, body: Any) -> None:
        self.request("PATCH", path, body, "application/merge-patch+json")

    def _tell(self, name: str, boot_id: str, ready: bool, more: dict[str, Any] | None = None) -> None:
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Bench", "lastTransitionTime": now}
        info = {"bootID": boot_id, "machineID": "machine-" + name, "kernelVersion": "6.6", "kubeletVersion": "v1.37.0"}
        self.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition], "nodeInfo": info, **(more or {})}})

    def told(self, name: str, boot_id: str, ready: bool) -> None:
        """What the kubelet of the node says, or what is said of one that is silent."""
        if ready:
            time.sleep(5)  # it starts a little after its host
        self._tell(name, boot_id, ready)

    def _end_pods(self) -> None:
        """Pods that were told to end do."""
        seen: set[str] = set()
        while not self._ended.is_set():
            with contextlib.suppress(OSError):
                for pod in self._watched():
                    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}"
                    if pod["metadata"].get("deletionTimestamp") and path not in seen:
                        seen.add(path)
                        timer = threading.Timer(self._drain, self._delete, [path])
                        timer.daemon = True
                        timer.start()

    def _watched(self) -> Iterator[Any]:
        request = urllib.request.Request(f"{self.address}/api/v1/namespaces/{NAMESPACE}/pods?watch=true&timeoutSeconds=300")
        request.add_header("Authorization", f"Bearer {KUBELETS}")
        with urllib.request.urlopen(request, timeout=310, context=self._trust()) as answer:
            for line in answer:
                yield json.loads(line)["object"]

    def _delete(self, path: str) -> None:
        with contextlib.suppress(urllib.error.HTTPError):
            self.request("DELETE", path, {"gracePeriodSeconds": 0})

    # --- what the run asked for ---

    def asked(self) -> list[tuple[float, str]]:
        """(time, verb and resource) of each request of the run."""
        found = []
        with open(self._log, encoding="utf-8") as file:
            for line in file:
                event = json.loads(line)
                if event["user"]["username"] != RUN or event["stage"] != "ResponseComplete":
                    continue
                told = event.get("objectRef", {})
                what = " ".join(filter(None, (event["verb"], told.get("resource", event["requestURI"]), told.get("subresource"))))
                found.append((_seconds(event["requestReceivedTimestamp"]), what))
        return found


def _seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def peak(asked: list[tuple[float, str]], window: float = 5.0) -> float:
    """Requests a second in the busiest ``window``."""
    counted = collections.Counter(int(when / window) for when, _what in asked)
    return max(counted.values(), default=0) / window
