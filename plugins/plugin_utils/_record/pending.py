# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are due, written on all of them before anything else happens: a run killed after one node of a hundred must
not look finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.each import AllOf
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, LabelChanges, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, node_conditions
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

_CLOCK = Clock()
_NONE: Mapping[str, str] = MappingProxyType({})

# What is taken back from a node that is not due. Any other step belongs to a maintenance under way.
_BEFORE_AND_AFTER = (*maintenance_record.DUE, maintenance_record.FAILED)


def change(node: Object, due: bool, version: str | None = None) -> tuple[LabelChanges, LabelChanges]:
    """The labels and the annotations to write, as merge patches of them, or {}. A node with a record is in maintenance: nothing
    is. Whether what failed before is due again, the plan says. ``version``: what it is due for, where that is known.
    """
    if kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        return {}, {}
    return _labels(node, due), approval.ask_for(node, version) if due else approval.no_longer_asked(node)


def _labels(node: Object, due: bool) -> LabelChanges:
    state = maintenance_record.state(node)
    if due and state in (None, maintenance_record.FAILED):
        return {maintenance_record.LABEL_STATE: maintenance_record.UPGRADE}
    if not due and state in _BEFORE_AND_AFTER:
        labels: LabelChanges = {maintenance_record.LABEL_STATE: None}
        if maintenance_record.LABEL_REBOOT_REQUIRED in kube_client.labels(node):
            wanted = maintenance_record.reboot_required(node, False)
            if wanted is None:
                labels[maintenance_record.LABEL_REBOOT_REQUIRED] = None
        return labels
    return {}


def label(
    cluster: AnyCluster,
    due: Sequence[str],
    settled: Iterable[str],
    check_mode: bool = False,
    clock: Clock = _CLOCK,
    versions: Mapping[str, str] = _NONE,
) -> list[dict[str, Any]]:
    """Label the nodes named ``due``; take the label from those named ``settled``. Their conditions tell the same.
    ``versions``: of the driver that nodes are due for, by their names: approvals for another one are withdrawn.

    Returns a list of {name, before, after} (labels and annotations) for those that changed, or would in check mode. One request
    for the list of nodes and two for each that changes; one that another client writes meanwhile is read and judged again. Raises
    NpuError naming all nodes that are not in the cluster before anything is written, and those that could not be written when all
    others have been.
    """
    if not due and not settled:
        return []
    nodes = {node["metadata"]["name"]: node for node in cluster.each("/api/v1/nodes")}
    missing = [name for name in due if name not in nodes]
    if missing:
        raise NpuError("No such node in the cluster: %s." % ", ".join(missing))
    each = AllOf()
    for name, is_due in [(name, True) for name in due] + [(name, False) for name in settled if name in nodes]:
        each.do(name, _settle, cluster, nodes[name], is_due, versions.get(name), check_mode, clock.now())
    each.check()
    return each.results


def _settle(cluster: AnyCluster, node: Object, due: bool, asked: str | None, check_mode: bool, now: float) -> dict[str, Any] | None:
    if check_mode:
        return _write(cluster, node, due, asked, check_mode)[0]
    # Conditions come after the label and go before it: a run that dies in between leaves none without the label.
    if not due and kube_client.ANNOTATION_MAINTENANCE not in kube_client.annotations(node):
        node = node_conditions.write(cluster, node, now, ended=True) or node
    result, latest = _write(cluster, node, due, asked, check_mode)
    if due and latest is not None:
        node_conditions.write(cluster, latest, now)
    return result


def _write(
    cluster: AnyCluster, node: Object, due: bool, asked: str | None, check_mode: bool
) -> tuple[dict[str, Any] | None, Object | None]:
    """(the change or None, the Node as it is now: None if it is gone)."""
    path = maintenance_record.path_of(node["metadata"]["name"])
    while True:
        labels, annotations = change(node, due, asked)
        if not labels and not annotations:
            return None, node
        have, wanted = {**kube_client.labels(node), **kube_client.annotations(node)}, {**labels, **annotations}
        result = {
            "name": node["metadata"]["name"],
            "before": {key: have[key] for key in sorted(wanted) if key in have},
            "after": {key: wanted[key] for key in sorted(wanted) if wanted[key] is not None},
        }
        if check_mode:
            return result, node
        version = node["metadata"]["resourceVersion"]
        try:
            metadata = {"resourceVersion": version, "labels": labels, "annotations": annotations}
            return result, cluster.merge_patch(path, {"metadata": metadata})
        except kube_client.Conflict:
            again = cluster.get(path)
            if again is None:
                return None, None
            node = again
