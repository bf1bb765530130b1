# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the user's smoke pod can be created, found before the first node is cordoned.

A pod that the API server refuses is a check that failed: it would take the first node back to its old driver.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import permissions as kube_permissions
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster

_VERBS = ("get", "create", "delete")
# Of an admission webhook that has side effects. It is asked again when the pod is created.
_NO_DRY_RUN = "does not support dry run"
# It exists, or the server or a webhook is busy or down for now: creating it is tried again then.
_PASSES = (kube_client.Conflict, kube_client.Failing, kube_client.TooManyRequests)


def problems(cluster: AnyCluster, path: str | None, node: str) -> list[str]:
    """Why the Pod of the manifest ``path`` cannot run on ``node`` (a name), as sentences without a period; none without a path.
    Creates it with dryRun=All only. Raises NpuError when the API server does not answer."""
    if not path:
        return []
    try:
        pod = smoke_pod.for_node(smoke_pod.load(path), node)
    except NpuError as exc:
        return [one_line(exc.message).rstrip(".")]
    metadata = pod["metadata"]
    missing = kube_permissions.missing(cluster, [(verb, "pods", "", metadata["namespace"], None) for verb in _VERBS])
    if missing:
        return ["for npu_upgrade_smoke_pod, " + text for text in kube_permissions.told(missing)]
    try:
        cluster.request("post", "/api/v1/namespaces/%s/pods" % metadata["namespace"], body=pod, dry_run="All")
    except _PASSES:
        pass
    except (kube_client.Refused, kube_client.Forbidden) as exc:
        if _NO_DRY_RUN not in exc.message:
            why = one_line(exc.message).rstrip(".")
            return ["the smoke pod %s/%s cannot be created: %s" % (metadata["namespace"], metadata["name"], why)]
    return []
