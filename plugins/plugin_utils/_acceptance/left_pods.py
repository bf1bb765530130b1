# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own pods that a killed run of accept has left on a node. They use the NPUs, so nothing could be tested."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.pod_removal import PodRemoval
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object


def remove(cluster: AnyCluster, name: str, manifests: Iterable[Object], say: Callable[[str], None], clock: Clock) -> None:
    """Remove those of the ``manifests`` from the node ``name``. Raises NpuError if the API server does not respond.

    Not from a node in maintenance, whose own smoke pod it would be.
    """
    node = cluster.get("/api/v1/nodes/" + name)
    if node is None or kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        return
    for manifest in manifests:
        ours = smoke_pod.for_node(manifest, name)["metadata"]
        path, key = "/api/v1/namespaces/%s/pods" % ours["namespace"], ours["labels"][smoke_pod.LABEL]
        for pod in cluster.list(path, label_selector="%s=%s" % (smoke_pod.LABEL, key)):
            if kube_client.labels(pod).get(smoke_pod.LABEL) == key and pod["metadata"]["name"].startswith(ours["name"]):
                _remove(cluster, "%s/%s" % (path, pod["metadata"]["name"]), say, clock)


def _remove(cluster: AnyCluster, path: str, say: Callable[[str], None], clock: Clock) -> None:
    removal = PodRemoval(cluster, path, clock)
    while not removal.over():
        clock.sleep(smoke_pod.POLL)
    if removal.why:
        say("the pod %s of an earlier run %s" % (path.rpartition("/")[2], removal.why))
