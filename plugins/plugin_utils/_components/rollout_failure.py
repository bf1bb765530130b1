# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a component does not work on a node, in words. What containers and the kubelet say is data: it is cut, and never more."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.daemonset_view import DaemonSetView
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import pod_logs
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects

_MOST = 500
_LOG_LINES, _LOG_LINE = 5, 200
# With the kubelet's back-off, about a minute after the first start.
_RESTARTS = 3


def why(cluster: AnyCluster, view: DaemonSetView, name: str, before: Mapping[str, int]) -> str:
    """One or more lines: what is wrong with the pod on that node, or with what the node offers; ``before``: its chips."""
    pod = view.pods.get(name)
    if pod is None:
        node = view.node(name)
        events = _events(cluster, view.namespace, view.daemonset["metadata"]["uid"])
        return printable(kube_daemonsets.why_no_pod(view.daemonset, node, events) if node else "no such node in the cluster")
    if kube_daemonsets.pod_ready(pod):
        return _with_log(cluster, pod, "its pod is Ready, but the node offers %s" % ", ".join(view.short_of(name, before)))
    return why_not_ready(cluster, pod)


def why_lost(view: DaemonSetView, names: list[str]) -> str:
    """Where and why it does not work, if nodes went down with it."""
    node = view.node(names[-1])
    said = (kube_client.node_ready(node)[1] or "it is Ready again") if node else "no such node in the cluster"
    what = "NotReady since its pod was replaced (%s). When it is Ready again, it gets the previous template" % printable(said)
    return "%s: %s" % (", ".join(names), what)


def why_not_ready(cluster: AnyCluster, pod: Object) -> str:
    """One or more lines: what is wrong with a pod that is not Ready."""
    metadata = pod["metadata"]
    events = _events(cluster, metadata["namespace"], metadata["uid"])
    return _with_log(cluster, pod, "its pod " + kube_daemonsets.why_pod_not_ready(pod, events, ""))


def _with_log(cluster: AnyCluster, pod: Object, text: str) -> str:
    reasons = [reason for reason in _waiting_reasons(pod) if reason not in text]
    text = printable(text) + ("" if not reasons else " (%s)" % printable(", ".join(reasons)))
    lines = _log(cluster, pod)
    return "\n".join([text, "Its last log lines:", *("  " + line for line in lines)]) if lines else text


def keeps_ending(pod: Object) -> bool:
    """Whether a container of the pod ends so often that nothing is to be waited for."""
    return any(
        status.get("restartCount", 0) >= _RESTARTS
        and ((status.get("state") or {}).get("waiting") or {}).get("reason") == "CrashLoopBackOff"
        for status in _statuses(pod)
    )


def printable(text: object, most: int = _MOST) -> str:
    """One line without control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    return line if len(line) <= most else line[:most] + "..."


def _statuses(pod: Object) -> Objects:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _waiting_reasons(pod: Object) -> list[str]:
    waiting = [((status.get("state") or {}).get("waiting") or {}).get("reason") for status in _statuses(pod)]
    return sorted({str(reason)[:64] for reason in waiting if reason and reason != "PodInitializing"})


def _events(cluster: AnyCluster, namespace: str, uid: str) -> Objects:
    try:
        found = cluster.list("/api/v1/namespaces/%s/events" % namespace, field_selector="involvedObject.uid=" + uid)
    except NpuError:  # what they would explain is a failure already
        return []
    mine = [event for event in found if (event.get("involvedObject") or {}).get("uid") == uid]
    return sorted(mine, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")


def _log(cluster: AnyCluster, pod: Object) -> list[str]:
    """The last lines of the container that is to blame."""
    blamed = [status for status in _statuses(pod) if (status.get("lastState") or {}).get("terminated")] or _statuses(pod)[-1:]
    path = "/api/v1/namespaces/%s/pods/%s" % (pod["metadata"]["namespace"], pod["metadata"]["name"])
    for status in blamed[:1]:
        previous = bool((status.get("lastState") or {}).get("terminated"))
        lines = pod_logs.last_lines(cluster, path, _LOG_LINES, str(status.get("name") or ""), previous)
        return [line for line in (printable(line, _LOG_LINE) for line in lines) if line][-_LOG_LINES:]
    return []
