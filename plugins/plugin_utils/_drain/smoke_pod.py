# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own pod as the last word on a node: it must run to its end there, while the node is still cordoned."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate

LABEL = "npuops.ascend/smoke-pod"
_POLL = 1.0
_GONE_LIMIT = 60  # seconds
_CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


def read(text: str, namespace: str = "default") -> Object:
    """The Pod of a manifest. Raises NpuError when there is not exactly one in it."""
    objects = kube_objects.parse(text)
    if len(objects) != 1 or objects[0]["kind"] != "Pod" or not isinstance(objects[0].get("spec"), dict):
        kinds = ", ".join(str(item["kind"]) for item in objects) or "nothing"
        raise NpuError("npu_upgrade_smoke_pod must be the manifest of one Pod; it contains %s" % kinds)
    pod = objects[0]
    pod["metadata"].setdefault("namespace", namespace)
    return pod


def load(path: str) -> Object:
    """The Pod of the manifest in a file of the controller, which npu_upgrade_smoke_pod names. Raises NpuError."""
    try:
        with open(path, encoding="utf-8") as file:
            return read(file.read())
    except (OSError, UnicodeDecodeError) as exc:
        raise NpuError("npu_upgrade_smoke_pod cannot be read: %s" % exc) from None


def for_node(pod: Object, node: str, number: int = 0) -> Object:
    """The Pod as it runs on ``node`` (a name): nowhere else, in spite of a cordon or a gate, once. ``number``: of those that run
    there at once."""
    pod = copy.deepcopy(pod)
    metadata, spec = pod["metadata"], pod["spec"]
    key = hashlib.sha256(node.encode()).hexdigest()[:8]
    metadata["name"] = "%s-%s%s" % (metadata["name"][:200], key, "-%d" % number if number else "")
    metadata.setdefault("labels", {})[LABEL] = key
    spec["restartPolicy"] = "Never"
    spec["tolerations"] = list(spec.get("tolerations") or []) + [_CORDON, acceptance_gate.TOLERATION]
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    # The terms are alternatives: each of them has to name the node.
    required["nodeSelectorTerms"] = [
        dict(term, matchFields=list(term.get("matchFields") or []) + [here]) for term in required.get("nodeSelectorTerms") or [{}]
    ]
    return pod


class SmokeFailed(NpuError):
    """The pod did not run to its end."""


class SmokePod:
    def __init__(
        self,
        cluster: AnyCluster,
        node: str,
        pod: Object,
        timeout: int,
        beat: Callable[[], None],
        say: Callable[[str], None],
        clock: Clock,
        number: int = 0,
    ) -> None:
        """``pod``: from ``read``; ``timeout``: seconds until it must have succeeded, 0 = any number; ``number``: as for_node has
        it."""
        self._cluster, self._timeout, self._beat, self._say, self._clock = cluster, timeout, beat, say, clock
        self._pod = for_node(pod, node, number)
        self._deadline = 0.0
        self._namespace = self._pod["metadata"]["namespace"]
        self._collection = "/api/v1/namespaces/%s/pods" % self._namespace
        self._path = "%s/%s" % (self._collection, self._pod["metadata"]["name"])
        self._label = "%s/%s" % (self._namespace, self._pod["metadata"]["name"])

    def run(self) -> None:
        """Run the pod to its end and remove it. Raises SmokeFailed with why it did not succeed."""
        self.begin()
        self.end()

    def begin(self) -> None:
        """Create the pod. Raises SmokeFailed."""
        # A run that died may have left one, started before the driver was in order.
        why = self._removed()
        if why:
            raise SmokeFailed("the smoke pod %s of an earlier run %s" % (self._label, why))
        why = self._create()
        if why:
            self.remove()
            raise SmokeFailed("the smoke pod %s %s" % (self._label, why))
        self._deadline = self._clock.monotonic() + kube_retry.limit(self._timeout)

    def end(self) -> None:
        """Wait until the pod that was begun has ended, and remove it. Raises SmokeFailed with why it did not succeed."""
        why = self._wait()
        self.remove()
        if why:
            raise SmokeFailed("the smoke pod %s %s" % (self._label, why))

    def remove(self) -> None:
        """Have no such pod, or say why it stays: it has ended, and keeps nobody."""
        why = self._removed()
        if why:
            self._say("the smoke pod %s stays: it %s" % (self._label, why))

    def _removed(self) -> str | None:
        """None when there is no such pod any more; else what it does instead, after a minute at most."""
        deadline = self._clock.monotonic() + _GONE_LIMIT
        told, why = False, None
        while self._clock.monotonic() < deadline:
            try:
                if self._cluster.get(self._path) is None:
                    return None
                if not told:
                    self._cluster.request("delete", self._path)
                    told, why = True, None
            except kube_client.NotFound:
                return None
            except kube_client.Failing as exc:
                why = exc.message
            except kube_client.Refused as exc:
                return "cannot be removed: " + exc.message
            self._pause()
        return "cannot be removed: " + why if why else "still exists %d s after it was deleted" % _GONE_LIMIT

    def _create(self) -> str | None:
        """None when it is there, else why it is not. What is down may have run on this very node, and come back elsewhere."""
        deadline = self._clock.monotonic() + kube_retry.limit(self._timeout)
        while True:
            try:
                self._cluster.request("post", self._collection, body=self._pod)
                return None
            except kube_client.Conflict:
                return None  # ours: the answer to an earlier try was lost
            except kube_client.Refused as exc:
                if not isinstance(exc, kube_client.Failing) or self._clock.monotonic() >= deadline:
                    return "cannot be created: " + exc.message
            self._pause()

    def _pause(self) -> None:
        self._beat()
        self._clock.sleep(_POLL)

    def _wait(self) -> str | None:
        """None when it succeeded, else why not."""
        pulls = kube_daemonsets.Pulls(self._clock.monotonic)
        while True:
            try:
                pod = self._cluster.get(self._path)
            except kube_client.Failing as exc:
                if self._clock.monotonic() >= self._deadline:
                    return "cannot be looked at: " + exc.message
                self._pause()
                continue
            if pod is None:
                return "was deleted while it ran"
            phase = pod.get("status", {}).get("phase")
            if phase == "Succeeded":
                return None
            if phase == "Failed":
                return "failed: %s" % self._why(pod)
            if pulls.in_vain([pod]):
                return self._why(pod)
            if self._clock.monotonic() >= self._deadline:
                return "did not succeed within %d s: it %s" % (self._timeout, self._why(pod))
            self._pause()

    def _why(self, pod: Object) -> str:
        """Why it is not through, from its states, Events and last log line."""
        log = self._last_log_line()
        if pod.get("status", {}).get("phase") == "Failed":
            for status in pod["status"].get("containerStatuses") or []:
                ended = (status.get("state") or {}).get("terminated") or {}
                if ended.get("exitCode"):
                    text = "its container %s ended with %s" % (status["name"], ended["exitCode"])
                    return "%s%s" % (text, ", its last line: %s" % log if log else "")
        return kube_daemonsets.why_pod_not_ready(pod, self._events(pod), log)

    # What only explains is not waited for: logs come from the node itself, which may not answer.

    def _events(self, pod: Object) -> Objects:
        try:
            found = self._cluster.without_retries.list("/api/v1/namespaces/%s/events" % self._namespace)
        except NpuError:
            return []
        return [event for event in found if event["involvedObject"].get("uid") == pod["metadata"].get("uid")]

    def _last_log_line(self) -> str:
        try:
            text = self._cluster.without_retries.request("get", self._path + "/log", text=True, query_params=[("tailLines", "5")])
        except NpuError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:400] if lines else ""
