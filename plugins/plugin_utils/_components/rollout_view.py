# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollouts of components that have not ended, for people who look on: which DaemonSet, how far, and to which revision."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import revisions as components_revisions
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.held_daemonset import is_as_left
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_failure import printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import (
    ANNOTATION,
    BACK,
    progress_of,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.and_more import and_more
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.duration import duration
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Of the nodes whose pods are being replaced: in the result, and in a sentence.
_MOST_NODES = 500


def read(cluster: AnyCluster, namespace: str, now: float) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """(the rollouts as the module npu_status documents them, lines for people). (None, why) if DaemonSets may not be listed.

    ``now``: seconds since 1970.
    """
    try:
        daemonsets = cluster.list("/apis/apps/v1/namespaces/%s/daemonsets" % namespace)
    except NpuError as exc:
        if not exc.details.get("missing"):
            raise
        permission = kube_client.describe_permission("list", "daemonsets", "apps", namespace)
        return None, ["not known: the Kubernetes user may not %s" % permission]
    ours = [item for item in daemonsets if item["metadata"]["name"] in component_names.DAEMONSETS]
    found = [view for view in (_view(cluster, item, now) for item in ours) if view]
    return found, [view["text"] for view in found]


def _view(cluster: AnyCluster, daemonset: Object, now: float) -> dict[str, Any] | None:
    """None without a rollout."""
    metadata = daemonset["metadata"]
    name = "%s/%s" % (metadata["namespace"], metadata["name"])
    view: dict[str, Any] = {"daemonset": name} | dict.fromkeys(
        ("run", "direction", "image", "revision", "previous", "updated", "nodes", "replacing", "heartbeat", "failure")
    )
    view["replacing"] = []
    try:
        progress = progress_of(daemonset)
    except NpuError as exc:
        return dict(view, text=printable(exc.message, 1000))
    if progress is None:
        return None
    status = daemonset.get("status") or {}
    seen = status.get("observedGeneration", 0) >= metadata.get("generation", 0)
    view.update(
        run=progress.run,
        direction=progress.direction,
        image=printable(components_revisions.images(daemonset["spec"]["template"])),
        revision=_newest(cluster, daemonset) if seen else None,
        previous=progress.good,
        updated=status.get("updatedNumberScheduled", 0) if seen else None,
        nodes=status.get("desiredNumberScheduled", 0),
        replacing=[printable(node, 253) for node in sorted(progress.nodes)[:_MOST_NODES]],
        heartbeat=_heartbeat(daemonset),
        failure=printable((progress.failure or "").partition("\n")[0]) or None,
    )
    return dict(view, text=_text(view, is_as_left(daemonset, progress), now))


def _newest(cluster: AnyCluster, daemonset: Object) -> str | None:
    """The hash of the present revision; None for a user who may not list revisions."""
    try:
        return components_revisions.Revisions(cluster, daemonset).newest
    except NpuError as exc:
        if not exc.details.get("missing"):
            raise
        return None


def _heartbeat(daemonset: Object) -> str | None:
    """When the annotation was last written, as the API server says it."""
    times = [entry.get("time") for entry, names in kube_client.owned_keys(daemonset, "annotations") if ANNOTATION in names]
    return max(filter(None, times), default=None)


def _text(view: dict[str, Any], as_left: bool, now: float) -> str:
    back = view["direction"] == BACK
    revision = " (revision %s)" % view["revision"] if view["revision"] else ""
    text = "DaemonSet %s %s the image %s%s" % (view["daemonset"], "back to" if back else "to", view["image"], revision)
    text += ": %s of %d nodes" % ("?" if view["updated"] is None else view["updated"], view["nodes"])
    if view["replacing"]:
        text += ", now %s" % and_more(view["replacing"])
    if not as_left:
        text += "; it was changed since"
    elif not back:
        text += "; if it does not work, back to revision %s" % view["previous"]
    if view["failure"]:
        text += "; %s" % view["failure"].rstrip(".")
    text += ". Run %s" % view["run"]
    beat = maintenance_record.seconds_of(view["heartbeat"])
    return text + (", last heartbeat %s ago" % duration(max(0, now - beat)) if beat is not None else "")
