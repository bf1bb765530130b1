# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes whose virtual NPUs change leave the NPU service meanwhile: without a device plugin, the kubelet gives no NPU to any pod.

The device plugin looks for virtual NPUs only when it starts, so it has to go anyway. An annotation says whose pause this is, so
that the run after one that was killed gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.client import ANNOTATION_VNPU_CHANGE, Cluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.each import AllOf
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_users_by_node
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import withdrawal

_CLOCK = Clock()


def advice(node: str, pods: Sequence[str]) -> str:
    """Why the virtual NPUs of a node cannot change while these ``pods`` use its NPUs, and what to do."""
    return (
        "its virtual NPUs are to change, and pods use its NPUs: %s. Let them end, or kubectl cordon %s && kubectl drain %s"
        " --ignore-daemonsets --delete-emptydir-data; then run this again, and kubectl uncordon %s"
        % (", ".join(pods), node, node, node)
    )


def pause(
    cluster: Cluster,
    names: Sequence[str],
    namespace: str,
    dra_drivers: Collection[str],
    timeout: float,
    check_mode: bool = False,
    clock: Clock = _CLOCK,
) -> list[str]:
    """Take the nodes ``names`` out of the NPU service; returns phrases of what was (or would be) done.

    All or none: if a pod uses their NPUs, or starts to before the device plugin is gone, everything is given back, and
    NpuError names it. ``timeout``: seconds until the pods of our components have left.
    """
    _check_free(cluster, names, dra_drivers)
    nodes = cluster.nodes()
    done = []
    try:
        for name in names:
            if _write(cluster, nodes, name, lambda node: _to_pause(node, clock.now()), check_mode):
                done.append(name)
        if not check_mode:
            withdrawal.wait_until_gone(cluster, namespace, names, timeout, 1.0, clock)
            # Who got an NPU at the last moment is there by now.
            _check_free(cluster, names, dra_drivers)
    except NpuError as exc:
        # Not what an earlier run paused: its host may be in the middle of the change.
        try:
            resume(cluster, done)
        except NpuError as why:
            raise NpuError(
                "%s\nThese nodes may stay out of the NPU service until a run succeeds: %s. %s"
                % (exc.message, ", ".join(done), why.message)
            ) from None
        raise
    return ["take %s out of the NPU service" % name for name in done]


def resume(cluster: Cluster, names: Sequence[str], check_mode: bool = False) -> list[str]:
    """Give back what ``pause`` did to the nodes; nothing to others."""
    nodes, each = cluster.nodes() if names else {}, AllOf()
    for name in names:
        each.do("the node %s" % name, _write, cluster, nodes, name, _to_resume, check_mode)
    each.check()
    return ["put %s back into the NPU service" % name for name in each.results]


def _check_free(cluster: AnyCluster, names: Sequence[str], dra_drivers: Collection[str]) -> None:
    found = npu_users_by_node.on_nodes(cluster, names, dra_drivers)
    if found:
        told = ["  %s: %s" % (name, advice(name, pods)) for name, pods in found.items()]
        raise NpuError("\n".join(["No virtual NPU was changed:", *told]))


def _write(
    cluster: Cluster, nodes: Mapping[str, Object], name: str, make_patch: Callable[[Object], Object | None], check_mode: bool
) -> str | None:
    """The node's name if it was (or would be) written."""
    path = "/api/v1/nodes/" + name
    node = nodes.get(name)
    if node is None:
        raise NpuError("The cluster has no node %s." % name)
    while True:
        patch = make_patch(node)
        if patch is None:
            return None
        patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"]
        try:
            if not check_mode:
                cluster.merge_patch(path, patch, field_manager=kube_client.FIELD_MANAGER)
            return name
        except kube_client.Conflict:
            node = cluster.request("get", path)


def _to_pause(node: Object, now: float) -> Object | None:
    name, paused = node["metadata"]["name"], kube_client.labels(node).get(kube_client.LABEL_COMPONENTS) == "paused"
    if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        raise NpuError("A maintenance of %s has begun in the meantime. Wait until it ends, then run this again." % name)
    if paused and not is_paused(node):
        raise NpuError("The components of %s were paused in the meantime. Run this again when that has ended." % name)
    if paused:
        return None
    return {
        "metadata": {
            "labels": {kube_client.LABEL_COMPONENTS: "paused"},
            "annotations": {ANNOTATION_VNPU_CHANGE: maintenance_record.rfc3339(now)},
        }
    }


def _to_resume(node: Object) -> Object | None:
    if not is_paused(node):
        return None
    wanted: Object = {"annotations": {ANNOTATION_VNPU_CHANGE: None}}
    if kube_client.ANNOTATION_MAINTENANCE not in kube_client.annotations(node):
        wanted["labels"] = {kube_client.LABEL_COMPONENTS: "enabled"}
    return {"metadata": wanted}


def is_paused(node: Object) -> bool:
    """Whether the node is out of service because its virtual NPUs change."""
    return ANNOTATION_VNPU_CHANGE in kube_client.annotations(node)
