# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for DaemonSets and for what they make the nodes offer; and, when it does not come, why."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import pod_logs, shared_chips
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object, Objects

_POLL_SECONDS = 1.0
# Where device plugins have their sockets: the kubelet's directory, and the node agent's in its place.
PLUGIN_SOCKETS = ("/var/lib/kubelet/device-plugins", "/var/lib/npuops/device-plugins")

# Taints every DaemonSet pod tolerates by itself.
_TOLERATED = re.compile(
    r"^node\.kubernetes\.io/(not-ready|unreachable|disk-pressure|memory-pressure|pid-pressure|unschedulable"
    r"|network-unavailable)$"
)
_PULL = ("ErrImagePull", "ImagePullBackOff")
_NEVER = ("InvalidImageName", "ErrImageNeverPull")
# The init container of our DaemonSets.
DRIVER_WAIT = "wait-for-driver"

# What containerd and the kubelet put before the cause.
_PULL_WORDS = re.compile(r'Failed to pull image "[^"]*": |rpc error: code = \w+ desc = |failed to pull and unpack image "[^"]*": ')
# A registry says of what a client may not see, too, that it does not exist.
_PULL_REFUSED = re.compile(r"unauthorized|denied|no basic auth|authorization|forbidden", re.I)
_PULL_NEVER = re.compile(r"not found|manifest unknown", re.I)
# Seconds: a kubelet may pull before it has seen the pull secret of a new namespace. It tries again after 10 s.
_SECOND_TRY = 30


# The update strategy, as a merge patch, with which Kubernetes replaces no pod by itself.
ON_DELETE: Object = {"type": "OnDelete", "rollingUpdate": None}


def strategy_of(daemonset: Object) -> Object:
    return daemonset["spec"].get("updateStrategy") or {"type": "RollingUpdate"}


def wait(
    cluster: kube_client.Cluster,
    daemonsets: Objects,
    nodes: Objects,
    timeout: int,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> DaemonSetSnapshot:
    """Wait until every DaemonSet runs everywhere it should and every node offers its chips.

    ``daemonsets``: list of {namespace, name, nodes}; nodes (names) must each have a ready pod, whatever becomes of others; None
    leaves it to the DaemonSet's own status, which counts nodes that are down, too. ``nodes``: list of {name, resource, count,
    least}: allocatable must be exactly what the device plugin there makes of so many chips; of ``least`` or more of them, where
    that is given.
    ``timeout``: seconds without progress; a fleet that comes up one node after another is not cut off.
    Returns the DaemonSetSnapshot in which all is done. Raises NpuError with the reason per node; at once
    when waiting is in vain (an image that does not exist).
    """
    best, deadline = -1, clock() + timeout
    pulls = Pulls(clock)
    while True:
        snapshot = DaemonSetSnapshot(cluster, daemonsets, nodes)
        if snapshot.finished:
            return snapshot
        if snapshot.progress > best:
            best, deadline = snapshot.progress, clock() + timeout
        if pulls.in_vain(snapshot.pods_to_come()):
            raise NpuError(_message("The rollout cannot finish", snapshot.reasons()))
        if clock() >= deadline:
            head = "The rollout did not finish, and made no progress for %d s" % timeout
            raise NpuError(_message(head, snapshot.reasons()))
        sleep(_POLL_SECONDS)


class DaemonSetSnapshot:
    """DaemonSets, their pods and the nodes at one moment."""

    def __init__(self, cluster: kube_client.Cluster, daemonsets: Objects, nodes: Objects) -> None:
        self._cluster = cluster
        self._expected_nodes = nodes
        self._pods: dict[str, Objects] = {}
        self._events: dict[str, Objects] = {}
        self._revisions: dict[str, Objects] = {}
        asked = nodes or any(entry.get("nodes") is not None for entry in daemonsets)
        self.nodes = cluster.nodes() if asked else {}
        self._sets = [
            DaemonSet(entry, self._get(entry), self._list_pods(entry["namespace"]), self._newest_hash) for entry in daemonsets
        ]
        self._missing = [(daemonset, name) for daemonset in self._sets for name in daemonset.unfinished_nodes()]
        self._short = [entry for entry in nodes if not self._has_enough(entry)]

    @property
    def finished(self) -> bool:
        return not self._missing and not self._short and all(entry.complete for entry in self._sets)

    @property
    def progress(self) -> int:
        """Grows while pods become ready and chips allocatable."""
        return sum(entry.done for entry in self._sets) + sum(self._offers(entry) for entry in self._expected_nodes)

    def pods_to_come(self) -> Objects:
        """The pods made from the present templates that are not ready, where the kubelet tells how they are."""
        return [
            pod
            for entry in self._sets
            for pod in entry.new_pods()
            if entry.asks_for(pod_node(pod)) and not pod_ready(pod) and not self._why_down(pod_node(pod))
        ]

    def summary(self) -> list[dict[str, Any]]:
        return [entry.summary() for entry in self._sets]

    def reasons(self) -> list[tuple[str, str]]:
        """Lines (who, why) for all that is unfinished; reads events and logs."""
        lines, told = [], set()
        if self._missing and not self.nodes:
            with contextlib.suppress(NpuError):  # what they would explain is a failure already
                self.nodes = self._cluster.nodes()
        for daemonset in self._sets:
            if daemonset.object is None:
                lines.append((daemonset.label, "there is no such DaemonSet"))
            elif not daemonset.observed:
                lines.append((daemonset.label, "the controller manager has not seen the change yet: is it running?"))
            unfinished = daemonset.unfinished_nodes()
            for name in unfinished:
                why, down = "%s: %s" % (daemonset.label, self._why_not_ready(daemonset, name)), self._why_down(name)
                lines.append((name, "%s; %s" % (down, why) if down else why))
                told.add(name)
            if daemonset.object is not None and daemonset.observed and not unfinished and not daemonset.complete:
                lines.append((daemonset.label, daemonset.counts()))
        for entry in self._short:
            if entry["name"] not in told:
                lines.append((entry["name"], self._why_short(entry)))
        return lines

    def _get(self, entry: Object) -> Object | None:
        return self._cluster.get("/apis/apps/v1/namespaces/%(namespace)s/daemonsets/%(name)s" % entry)

    def all_pods(self) -> Objects:
        """The pods of the namespaces that have one of the DaemonSets."""
        return [pod for pods in self._pods.values() for pod in pods]

    def _list_pods(self, namespace: str) -> Objects:
        if namespace not in self._pods:
            self._pods[namespace] = self._cluster.list("/api/v1/namespaces/%s/pods" % namespace)
        return self._pods[namespace]

    def _newest_hash(self, namespace: str, uid: str) -> str | None:
        """Of the present template of the DaemonSet with that UID; None for a user who may not list revisions."""
        if namespace not in self._revisions:
            try:
                found = self._cluster.list("/apis/apps/v1/namespaces/%s/controllerrevisions" % namespace)
            except kube_client.Forbidden:
                found = []
            self._revisions[namespace] = found
        mine = [item for item in self._revisions[namespace] if _is_of(item, uid)]
        newest: Object = max(mine, key=lambda item: item.get("revision") or 0, default={"metadata": {}})
        return kube_client.labels(newest).get(_HASH)

    def _why_down(self, name: str | None) -> str | None:
        """Why nothing comes of that node, None if something may."""
        node = self.nodes.get(name or "")
        ready, why = kube_client.node_ready(node) if node else (True, None)
        return None if ready else "the node is not Ready: %s" % (why or "").rstrip(".")

    def _offers(self, entry: Object) -> int:
        node = self.nodes.get(entry["name"])
        return kube_client.allocatable(node, entry["resource"]) if node else 0

    def _has_enough(self, entry: Object) -> bool:
        each, least = self._devices_per_chip(entry), entry.get("least")
        return (entry["count"] if least is None else least) * each <= self._offers(entry) <= entry["count"] * each

    def _devices_per_chip(self, entry: Object) -> int:
        pods = [daemonset.pod_on(entry["name"]) for daemonset in self._sets if daemonset.is_plugin]
        return shared_chips.devices_per_chip(pod for pod in pods if pod is not None)

    def _events_of(self, namespace: str, uid: str) -> Objects:
        if namespace not in self._events:
            self._events[namespace] = self._cluster.list("/api/v1/namespaces/%s/events" % namespace)
        events = [event for event in self._events[namespace] if event["involvedObject"].get("uid") == uid]
        return sorted(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")

    def _why_not_ready(self, daemonset: DaemonSet, name: str) -> str:
        pod = daemonset.pod_on(name)
        if pod is None:
            node = self.nodes.get(name)
            if node is None:
                return "no such node in the cluster"
            if daemonset.object is None:
                raise AssertionError("otherwise no node would be unfinished")
            events = self._events_of(daemonset.namespace, daemonset.object["metadata"]["uid"])
            return why_no_pod(daemonset.object, node, events)
        events = self._events_of(daemonset.namespace, pod["metadata"]["uid"])
        # The kubelet has the log.
        log_line = "" if self._why_down(name) else self._last_log_line(pod)
        return "its pod " + why_pod_not_ready(pod, events, log_line)

    def _why_short(self, entry: Object) -> str:
        node = self.nodes.get(entry["name"])
        if node is None:
            return "no such node in the cluster"
        text = "offers %d of %s, the host has %d" % (self._offers(entry), entry["resource"], entry["count"])
        each = self._devices_per_chip(entry)
        if each > 1:
            text += " chips that are offered %d times each" % each
        down = self._why_down(entry["name"])
        if down:
            return "%s; it %s" % (down, text)
        for daemonset in self._sets:
            pod = daemonset.pod_on(entry["name"])
            if pod is not None and daemonset.is_plugin:
                return "%s; its device plugin %s%s" % (text, _how_it_runs(pod), _log_text(self._last_log_line(pod)))
        return text

    def _last_log_line(self, pod: Object) -> str:
        """The last line a container of the pod logged before it ended (or so far), '' when there is none."""
        path = "/api/v1/namespaces/%s/pods/%s" % (pod["metadata"]["namespace"], pod["metadata"]["name"])
        lines = pod_logs.last_lines(self._cluster, path, 5, previous=bool(_last_termination(pod)))
        return lines[-1][:400] if lines else ""


class DaemonSet:
    """One DaemonSet with its pods; ``object`` is None when it does not exist. ``newest_hash(namespace, uid)``: its template's."""

    def __init__(
        self, wanted: Object, daemonset: Object | None, pods: Objects, newest_hash: Callable[[str, str], str | None]
    ) -> None:
        self.namespace = wanted["namespace"]
        self.name = wanted["name"]
        self.label = "DaemonSet %s/%s" % (self.namespace, self.name)
        self.object = daemonset
        self._wanted_nodes: set[str] | None = None if wanted.get("nodes") is None else set(wanted["nodes"])
        self._newest_hash = newest_hash
        uid = daemonset["metadata"]["uid"] if daemonset else None
        self._pods = [pod for pod in pods if _is_of(pod, uid) and not pod["metadata"].get("deletionTimestamp")]

    @property
    def _status(self) -> Object:
        return (self.object or {}).get("status") or {}

    @property
    def is_plugin(self) -> bool:
        """Whether it is a device plugin, by the directory of sockets that it mounts."""
        volumes = self.object["spec"]["template"]["spec"].get("volumes") or [] if self.object else []
        return any((volume.get("hostPath") or {}).get("path") in PLUGIN_SOCKETS for volume in volumes)

    @property
    def observed(self) -> bool:
        return self.object is not None and self._status.get("observedGeneration", 0) >= self.object["metadata"].get("generation", 0)

    @property
    def ready(self) -> int:
        return self._status.get("numberReady", 0)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing but pods of ``unfinished_nodes``."""
        if self._wanted_nodes is not None:
            return self.observed
        desired = self._status.get("desiredNumberScheduled", 0)
        return self.observed and self._all_updated and self._status.get("numberAvailable", 0) >= desired

    @property
    def done(self) -> int:
        """Grows while pods become ready."""
        if self._wanted_nodes is None or self.object is None:
            return self.ready
        return len(self._wanted_nodes) - len(self.unfinished_nodes())

    @property
    def _all_updated(self) -> bool:
        return self._status.get("updatedNumberScheduled", 0) >= self._status.get("desiredNumberScheduled", 0)

    def counts(self) -> str:
        return "%d of %d pods are ready, %d are up to date" % (
            self.ready,
            self._status.get("desiredNumberScheduled", 0),
            self._status.get("updatedNumberScheduled", 0),
        )

    def new_pods(self) -> Objects:
        """The pods made from the present template; none before the controller has seen it."""
        if self.object is None or not self.observed:
            return []
        if self._all_updated:
            return list(self._pods)
        generation = kube_client.annotations(self.object).get(_GENERATION)
        # If a template was changed and changed back, the pods that kept it have the number of an earlier generation.
        newest = self._newest_hash(self.namespace, self.object["metadata"]["uid"])
        return [
            pod
            for pod in self._pods
            if kube_client.labels(pod).get(_POD_GENERATION) == generation
            or (newest is not None and kube_client.labels(pod).get(_HASH) == newest)
        ]

    def pod_on(self, node: str) -> Object | None:
        for pod in self._pods:
            if pod_node(pod) == node:
                return pod
        return None

    def asks_for(self, node: str | None) -> bool:
        """Whether the pod on that node counts."""
        return self._wanted_nodes is None or node in self._wanted_nodes

    def unfinished_nodes(self) -> list[str]:
        """Nodes that should have a ready, up to date pod and have none."""
        if self.object is None:
            return []
        done = {pod_node(pod) for pod in self.new_pods() if pod_ready(pod)}
        wanted = set(map(pod_node, self._pods)) if self._wanted_nodes is None else self._wanted_nodes
        return sorted(name for name in wanted - done if name is not None)

    def summary(self) -> dict[str, Any]:
        if self.object is None:
            raise AssertionError("of a Snapshot that is finished")
        return {
            "namespace": self.namespace,
            "name": self.name,
            "image": ", ".join(_images(self.object["spec"]["template"])),
            "desired": self._status.get("desiredNumberScheduled", 0),
            "ready": self.ready,
        }


# Of a DaemonSet and its pods. The images do not tell: a webhook may have changed those of the pods.
_GENERATION, _POD_GENERATION = "deprecated.daemonset.template.generation", "pod-template-generation"
# Of pods and ControllerRevisions.
_HASH = "controller-revision-hash"


def _is_of(item: Object, uid: str | None) -> bool:
    return any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or [])


def _images(pod_or_template: Object) -> list[str]:
    return [container["image"] for container in pod_or_template["spec"]["containers"]]


def pod_node(pod: Object) -> str | None:
    """The node of a DaemonSet's pod, also while it waits to be scheduled there; None when unknown."""
    name = pod["spec"].get("nodeName")
    if name:
        return name
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field in term.get("matchFields") or []:
            if field["key"] == "metadata.name" and field.get("values"):
                return field["values"][0]
    return None


def pod_ready(pod: Object) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod.get("status", {}).get("conditions") or []
    )


def _statuses(pod: Object) -> Objects:
    """Those of init containers first, without what has done its part: an end is what they are for."""
    status = pod.get("status", {})
    begun = [container for container in status.get("initContainerStatuses") or [] if not _has_succeeded(container)]
    return begun + (status.get("containerStatuses") or [])


def _has_succeeded(container: Object) -> bool:
    ended = (container.get("state") or {}).get("terminated")
    return ended is not None and ended.get("exitCode") == 0


def _last_termination(pod: Object) -> Object | None:
    for status in _statuses(pod):
        ended = (status.get("lastState") or {}).get("terminated")
        if ended:
            return ended
    return None


class Pulls:
    """Pods that wait for an image which will not come by waiting. ``clock()``: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refused: dict[str, float] = {}  # since when, by the pods' UIDs

    def in_vain(self, pods: Objects) -> bool:
        """Whether one of the pods, as they are now, has no hope."""
        now, before, self._refused = self._clock(), self._refused, {}
        hopeless = False
        for pod in pods:
            uid = pod["metadata"].get("uid") or pod["metadata"]["name"]
            for waiting in _pulling(pod):
                message = waiting.get("message") or ""
                refused = _PULL_REFUSED.search(message)
                hopeless |= waiting["reason"] in _NEVER or bool(not refused and _PULL_NEVER.search(message))
                # While the kubelet pauses it does not say why.
                if refused or uid in before:
                    self._refused[uid] = before.get(uid, now)
        return hopeless or any(now - since >= _SECOND_TRY for since in self._refused.values())


def _pulling(pod: Object) -> Iterator[Object]:
    for status in _statuses(pod):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _PULL + _NEVER:
            yield waiting


def why_pod_not_ready(pod: Object, events: Objects, log_line: str) -> str:
    """A sentence's end: why this pod is not ready ("cannot pull its image: ...")."""
    status = pod.get("status", {})
    warnings = [event for event in events if event.get("type") == "Warning"]
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return "is not scheduled: %s" % condition.get("message", condition.get("reason"))
    if status.get("phase") == "Failed" and not status.get("containerStatuses"):
        return "was rejected: %s" % (status.get("message") or status.get("reason"))
    for container in status.get("initContainerStatuses") or []:
        if container.get("name") == DRIVER_WAIT and "running" in (container.get("state") or {}):
            return "waits for the driver of its host: journalctl -b -u npu-driver.service on that host shows its progress"
    for container in _statuses(pod):
        reason = _why_container_waits(container, warnings, log_line)
        if reason:
            return reason
    if warnings:
        return "is %s: %s" % (status.get("phase", "Pending"), _event_text(warnings[-1]))
    return "is %s; %s" % (status.get("phase", "Pending"), _event_text(events[-1]) if events else "no events yet")


def _why_container_waits(container: Object, warnings: Objects, log_line: str) -> str | None:
    state = container.get("state") or {}
    waiting = state.get("waiting")
    if waiting:
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        if reason in _PULL + _NEVER:
            told = [event["message"] for event in warnings if "Failed to pull image" in event.get("message", "")]
            cause = _PULL_WORDS.sub("", (told or [message or reason])[-1])
            return "cannot get its image %s: %s" % (container.get("image"), cause)
        ended = _keeps_ending(container, log_line)
        if ended:
            return ended
        if reason in ("ContainerCreating", "PodInitializing"):
            return "cannot start: %s" % _event_text(warnings[-1]) if warnings else None
        return "waits: %s %s" % (reason, message)
    ended = state.get("terminated")
    if ended:
        return "ended: %s%s" % (_exit_text(ended), _log_text(log_line))
    # One that ends again and again runs now and then.
    return _keeps_ending(container, log_line)


def _keeps_ending(container: Object, log_line: str) -> str | None:
    ended = (container.get("lastState") or {}).get("terminated")
    if not ended or container.get("ready"):
        return None
    return "keeps ending: %s, %d restarts%s" % (
        _exit_text(ended),
        container.get("restartCount", 0),
        _log_text(log_line),
    )


def _how_it_runs(pod: Object) -> str:
    ended = _last_termination(pod)
    return "runs" if not ended else "ended with %s and was started again" % _exit_text(ended)


def _log_text(line: str) -> str:
    return ", last log line: %s" % line if line else ""


def _exit_text(ended: Object) -> str:
    text = "exit code %s" % ended.get("exitCode")
    if ended.get("reason") and ended["reason"] not in ("Error", "Completed"):
        text += " (%s)" % ended["reason"]
    if ended.get("message"):
        text += ", %s" % ended["message"].strip()[-400:]
    return text


def _event_text(event: Object) -> str:
    return "%s: %s" % (event.get("reason", ""), event.get("message", "").strip())


def why_no_pod(daemonset: Object, node: Object, events: Objects) -> str:
    """Why a node that should run the DaemonSet has no pod of it."""
    spec = daemonset["spec"]["template"]["spec"]
    have = kube_client.labels(node)
    missing = sorted("%s=%s" % (key, value) for key, value in (spec.get("nodeSelector") or {}).items() if have.get(key) != value)
    if missing:
        return "no pod: the node lacks the label %s" % ", ".join(missing)
    taints = [taint for taint in node.get("spec", {}).get("taints") or [] if not _tolerated(taint, spec)]
    if taints:
        return "no pod: the taint %s is not tolerated; see npu_tolerations" % ", ".join(map(_taint_text, taints))
    failed = [event for event in events if event.get("reason") == "FailedCreate"]
    if failed:
        return "no pod: %s" % failed[-1].get("message", "").strip()
    return "no pod yet"


def _tolerated(taint: Object, spec: Object) -> bool:
    if taint.get("effect") == "PreferNoSchedule" or _TOLERATED.match(taint["key"]):
        return True
    for toleration in spec.get("tolerations") or []:
        if toleration.get("effect") not in (None, "", taint.get("effect")):
            continue
        if toleration.get("operator") == "Exists":
            if toleration.get("key") in (None, "", taint["key"]):
                return True
        elif toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""):
            return True
    return False


def _taint_text(taint: Object) -> str:
    value = "=" + taint["value"] if taint.get("value") else ""
    return "%s%s:%s" % (taint["key"], value, taint.get("effect"))


def _message(head: str, reasons: list[tuple[str, str]]) -> str:
    """One readable block; the same reason on many nodes is told once."""
    grouped: dict[str, list[str]] = {}
    for who, why in reasons:
        grouped.setdefault(why, []).append(who)
    lines = ["  %s: %s" % (", ".join(names), why) for why, names in grouped.items()]
    return "\n".join([head + ":"] + lines)
