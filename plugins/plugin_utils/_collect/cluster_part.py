# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cluster says of a node. Only reads, and never a Secret; what this account may not read is noted as left out."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import pod_logs
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import LEASE

_MOST_EVENTS = 500
_LOG_LINES = 500
_LOG_BYTES = 256 * 1024
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


class _GivenUp(Exception):
    """The API server does not answer, or knows no such account: the next request has no better chance."""


def gather(part: Gathered, cluster: AnyCluster, node: str, namespace: str) -> None:
    """Add it to ``part``; ``namespace``: of the components."""
    look = _Look(part, cluster)
    try:
        look.add("node.json", "Node %s" % node, "/api/v1/nodes/%s" % node)
        look.add_list("events.json", "Events about Node %s" % node, lambda: _events(cluster, node))
        lease = "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s" % (namespace, LEASE)
        look.add("lease.json", "Lease %s/%s" % (namespace, LEASE), lease)
        look.add_list("daemonsets.json", "DaemonSets in %s" % namespace, lambda: _daemonsets(cluster, namespace))
        pods = look.add_list("pods.json", "Pods of the components on %s" % node, lambda: _pods(cluster, node, namespace))
        for pod in pods:
            _add_logs(look, pod, namespace)
        name = "mindx-dl-deviceinfo-%s" % node
        look.add("deviceinfo.json", "ConfigMap kube-system/%s" % name, "/api/v1/namespaces/kube-system/configmaps/%s" % name)
    except _GivenUp:
        part.leave_out("the rest of the cluster's part", "the Kubernetes API does not answer, or not to this account")


class _Look:
    def __init__(self, part: Gathered, cluster: AnyCluster) -> None:
        self.part, self.cluster = part, cluster

    def ask(self, what: str, question: Callable[[], Any]) -> Any:
        """The answer, or None."""
        if not self.part.has_time(what):
            return None
        try:
            return question()
        except kube_client.NotFound:
            self.part.leave_out(what, "the cluster does not have it", absent=True)
        except NpuError as exc:
            self.part.leave_out(what, exc.message)
            if isinstance(exc, kube_client.Unauthorized) or getattr(exc, "outage", False):
                raise _GivenUp from None
        return None

    def add(self, name: str, what: str, path: str) -> None:
        found = self.ask(what, lambda: self.cluster.without_retries.request("get", path))
        if found is not None:
            self._add(name, what, _shown(found))

    def add_list(self, name: str, what: str, question: Callable[[], Objects]) -> Objects:
        found = self.ask(what, question)
        if found is not None:
            self._add(name, what, [_shown(item) for item in found])
        return found or []

    def _add(self, name: str, what: str, value: Any) -> None:
        self.part.add("cluster/" + name, json.dumps(value, indent=1, ensure_ascii=False) + "\n", what)


def _shown(item: Object) -> Object:
    """Without what only the API server needs, and the copy of the whole object in a text, in which names and values are hard to
    find."""
    item = copy.deepcopy(item)
    metadata = item.get("metadata") or {}
    metadata.pop("managedFields", None)
    (metadata.get("annotations") or {}).pop(_LAST_APPLIED, None)
    return item


def _events(cluster: AnyCluster, node: str) -> Objects:
    """The newest, of the namespace in which Kubernetes keeps Events about nodes."""
    selector = "involvedObject.kind=Node,involvedObject.name=" + node
    found = cluster.without_retries.list("/api/v1/namespaces/default/events", field_selector=selector)
    mine = [event for event in found if _is_about(event.get("involvedObject") or {}, node)]
    mine.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return mine[-_MOST_EVENTS:]


def _is_about(about: Object, node: str) -> bool:
    return about.get("kind") == "Node" and about.get("name") == node


def _daemonsets(cluster: AnyCluster, namespace: str) -> Objects:
    found = cluster.without_retries.list("/apis/apps/v1/namespaces/%s/daemonsets" % namespace)
    return [item for item in found if item["metadata"]["name"] in component_names.DAEMONSETS]


def _pods(cluster: AnyCluster, node: str, namespace: str) -> Objects:
    found = cluster.without_retries.list("/api/v1/namespaces/%s/pods" % namespace, field_selector="spec.nodeName=" + node)
    return [
        pod
        for pod in found
        if (pod.get("spec") or {}).get("nodeName") == node and component_names.daemonset_of(pod["metadata"], namespace)
    ]


def _add_logs(look: _Look, pod: Object, namespace: str) -> None:
    name = str(pod["metadata"].get("name"))
    status = pod.get("status") or {}
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        restarted = bool((container.get("lastState") or {}).get("terminated"))
        for previous in [False, True] if restarted else [False]:
            _add_log(look, namespace, name, str(container.get("name")), previous)


def _add_log(look: _Look, namespace: str, pod: str, container: str, previous: bool) -> None:
    if not _NAME.match(pod) or not _NAME.match(container):
        return
    what = "log of %s/%s, container %s%s" % (namespace, pod, container, ", before its restart" if previous else "")
    path = "/api/v1/namespaces/%s/pods/%s" % (namespace, pod)
    most = max(1, min(_LOG_BYTES, look.part.room))
    log = look.ask(what, lambda: pod_logs.tail(look.cluster, path, _LOG_LINES, most, container, previous))
    if log is None:
        return
    if not log.ended:
        look.part.leave_out(what, "its last %d lines are too long, or came too slowly, to be read to their end" % _LOG_LINES)
    if log.text:
        # Names of pods are longer than those of members may be.
        member = "cluster/logs/%s/%s%s.log" % (pod[-100:].lstrip(".-"), container[:80], "-previous" if previous else "")
        look.part.add(member, log.text, what, cut=log.cut)
