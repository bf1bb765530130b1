# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own pod as the last word on a node: it must run to its end there, while the node is still cordoned."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Generator, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.pod_removal import PodRemoval
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import objects as kube_objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import pod_logs
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate

LABEL = "npuops.ascend/smoke-pod"
POLL = 1.0  # seconds
# What takes its time, pause by pause: after each step, its user pauses for POLL seconds.
Steps = Generator[None, None, None]
_Why = Generator[None, None, "str | None"]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


def read(text: str, namespace: str = "default", variable: str = "npu_upgrade_smoke_pod") -> Object:
    """The Pod of a manifest that ``variable`` names. Raises NpuError when there is not exactly one in it."""
    objects = kube_objects.parse(text)
    if len(objects) != 1 or objects[0]["kind"] != "Pod" or not isinstance(objects[0].get("spec"), dict):
        kinds = ", ".join(str(item["kind"]) for item in objects) or "nothing"
        raise NpuError("%s must be the manifest of one Pod; it contains %s" % (variable, kinds))
    pod = objects[0]
    pod["metadata"].setdefault("namespace", namespace)
    return pod


def load(path: str, variable: str = "npu_upgrade_smoke_pod") -> Object:
    """The Pod of the manifest in a file of the controller, which ``variable`` names. Raises NpuError."""
    try:
        with open(path, encoding="utf-8") as file:
            return read(file.read(), variable=variable)
    except (OSError, UnicodeDecodeError) as exc:
        raise NpuError("%s cannot be read: %s" % (variable, exc)) from None


def for_node(pod: Object, node: str, number: int = 0, variables: Sequence[Object] = ()) -> Object:
    """The Pod as it runs on ``node`` (a name): nowhere else, in spite of a cordon or a gate, once. ``number``: of those that run
    there at once; ``variables``: entries of env for all of its containers."""
    pod = copy.deepcopy(pod)
    metadata, spec = pod["metadata"], pod["spec"]
    key = hashlib.sha256(node.encode()).hexdigest()[:8]
    metadata["name"] = "%s-%s%s" % (metadata["name"][:200], key, "-%d" % number if number else "")
    # What a manifest names without a value is null.
    metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: key}
    spec["restartPolicy"] = "Never"
    spec["tolerations"] = list(spec.get("tolerations") or []) + [_CORDON, acceptance_gate.TOLERATION]
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec.get("affinity") or {}
    of_node = affinity.get("nodeAffinity") or {}
    required = of_node.get(_REQUIRED) or {}
    # The terms are alternatives: each of them has to name the node.
    terms = [dict(term, matchFields=[*(term.get("matchFields") or []), here]) for term in required.get("nodeSelectorTerms") or [{}]]
    spec["affinity"] = {**affinity, "nodeAffinity": {**of_node, _REQUIRED: {**required, "nodeSelectorTerms": terms}}}
    ours = {variable["name"] for variable in variables}
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])] if ours else []:
        others = [entry for entry in container.get("env") or [] if entry.get("name") not in ours]
        # First, because an entry can refer to those before it only.
        container["env"] = [*copy.deepcopy(list(variables)), *others]
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
        variables: Sequence[Object] = (),
        called: str = "the smoke pod",
    ) -> None:
        """``pod``: from ``read``; ``timeout``: seconds until it must have succeeded, 0 = any number; ``number``, ``variables``: as
        for_node has them; ``called``: what it is in messages, before its name."""
        self._cluster, self._timeout, self._beat, self._say, self._clock = cluster, timeout, beat, say, clock
        self._pod = for_node(pod, node, number, variables)
        self._deadline = 0.0
        self._seen: Object = self._pod
        self._namespace = self._pod["metadata"]["namespace"]
        self._collection = "/api/v1/namespaces/%s/pods" % self._namespace
        self._path = "%s/%s" % (self._collection, self._pod["metadata"]["name"])
        self._label = "%s %s/%s" % (called, self._namespace, self._pod["metadata"]["name"])

    def run(self) -> None:
        """Run the pod to its end and remove it. Raises SmokeFailed with why it did not succeed."""
        self.begin()
        self.end()

    def begin(self) -> None:
        """Create the pod. Raises SmokeFailed."""
        self._through(self.beginning())

    def end(self) -> None:
        """Wait until the pod that was begun has ended, and remove it. Raises SmokeFailed with why it did not succeed."""
        self._through(self.ending())

    def remove(self) -> None:
        """Remove the pod, or say why it stays: it has ended, and blocks nothing."""
        self._through(self.leaving())

    def _through(self, steps: Steps) -> None:
        for _pause in steps:
            self._beat()
            self._clock.sleep(POLL)

    # The same step by step, for those who have several pods at once.

    def beginning(self, since: float | None = None) -> Steps:
        """``since``: from when its time counts, by the clock; None is when it has been created."""
        # A run that died may have left one, started before the driver was in order.
        why = yield from self._removed()
        if why:
            raise self.failure("of an earlier run %s" % why)
        why = yield from self._created()
        if why:
            yield from self.leaving()
            raise self.failure(why)
        self._deadline = (self._clock.monotonic() if since is None else since) + kube_retry.limit(self._timeout)

    def succeeding(self) -> Steps:
        """Wait until it has succeeded. It is not removed."""
        why = yield from self._outcome()
        if why:
            raise self.failure(why)

    def ending(self) -> Steps:
        why = yield from self._outcome()
        yield from self.leaving()
        if why:
            raise self.failure(why)

    def leaving(self) -> Steps:
        why = yield from self._removed()
        if why:
            self._say("%s stays: it %s" % (self._label, why))

    def delete(self) -> None:
        """Have it deleted, without waiting for anything: for a run that ends."""
        try:
            self._cluster.without_retries.request("delete", self._path)
        except kube_client.NotFound:
            pass
        except NpuError as exc:
            self._say("%s stays: it cannot be removed: %s" % (self._label, exc.message))

    def failure(self, why: str) -> SmokeFailed:
        """That it failed; ``why``: what it does, as a phrase."""
        return SmokeFailed("%s %s" % (self._label, why))

    @property
    def address(self) -> object:
        """Its IP address as the kubelet of its node reports it, not validated; None before that."""
        return (self._seen.get("status") or {}).get("podIP")

    def state(self) -> str:
        """What it does, as a phrase."""
        return self._why(self._seen)

    def _removed(self) -> _Why:
        """None when there is no such pod any more; else what it does instead, after a minute at most."""
        removal = PodRemoval(self._cluster, self._path, self._clock)
        while not removal.over():
            yield
        return removal.why

    def _created(self) -> _Why:
        """None when it exists, else why not. Retries: a webhook that is down may have run on this node, and come back elsewhere."""
        deadline = self._clock.monotonic() + kube_retry.limit(self._timeout)
        while True:
            try:
                try:
                    self._cluster.request("post", self._collection, body=self._pod)
                    return None
                except kube_client.Conflict:
                    # Ours if it exists: the answer to an earlier try was lost. Otherwise, others create pods under the same quota.
                    if self._cluster.get(self._path) is not None:
                        return None
                    raise
            except kube_client.Refused as exc:
                again = isinstance(exc, (kube_client.Failing, kube_client.Conflict))
                if not again or self._clock.monotonic() >= deadline:
                    return "cannot be created: " + exc.message
            yield

    def _outcome(self) -> _Why:
        """None when it succeeded, else why not."""
        pulls = kube_daemonsets.Pulls(self._clock.monotonic)
        while True:
            try:
                pod = self._cluster.get(self._path)
            except kube_client.Failing as exc:
                if self._clock.monotonic() >= self._deadline:
                    return "cannot be looked at: " + exc.message
                yield
                continue
            if pod is None:
                return "was deleted while it ran"
            self._seen = pod
            phase = pod.get("status", {}).get("phase")
            if phase == "Succeeded":
                return None
            if phase == "Failed":
                return "failed: %s" % self._why(pod)
            if pulls.in_vain([pod]):
                return self._why(pod)
            if self._clock.monotonic() >= self._deadline:
                return "did not succeed within %d s: it %s" % (self._timeout, self._why(pod))
            yield

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
        lines = pod_logs.last_lines(self._cluster, self._path, 5)
        return lines[-1][:400] if lines else ""
