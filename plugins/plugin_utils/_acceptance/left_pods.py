# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own pods that another run of accept has on a node: they use the NPUs, so nothing could be tested. Those of a run that
may be alive are waited for; what a killed run left is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.pod_removal import PodRemoval
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

# Seconds after which a pod without a time limit is one that a killed run left.
_UNLIMITED = 600


def remove(
    cluster: AnyCluster, name: str, manifests: Iterable[Object], timeout: int, say: Callable[[str], None], clock: Clock
) -> None:
    """Remove those of the ``manifests`` from the node ``name``. Raises NpuError if the API server does not respond.

    Not from a node in maintenance, whose own smoke pod it would be; and none that runs before its time is over, ``timeout`` seconds
    (0 = any number). ``clock``: of the API server.
    """
    node = cluster.get("/api/v1/nodes/" + name)
    if node is None or kube_client.ANNOTATION_MAINTENANCE in kube_client.annotations(node):
        return
    for manifest in manifests:
        ours = smoke_pod.for_node(manifest, name)["metadata"]
        path, key = "/api/v1/namespaces/%s/pods" % ours["namespace"], ours["labels"][smoke_pod.LABEL]
        for pod in cluster.list(path, label_selector="%s=%s" % (smoke_pod.LABEL, key)):
            if kube_client.labels(pod).get(smoke_pod.LABEL) == key and pod["metadata"]["name"].startswith(ours["name"]):
                single = "%s/%s" % (path, pod["metadata"]["name"])
                _wait_for(cluster, single, timeout or _UNLIMITED, say, clock)
                _remove(cluster, single, say, clock)


def _wait_for(cluster: AnyCluster, path: str, most: int, say: Callable[[str], None], clock: Clock) -> None:
    """Until the pod has ended or is gone, or is ``most`` seconds old."""
    told = False
    while True:
        pod = cluster.get(path)
        if pod is None or not _may_be_used(pod, clock.now() - most):
            return
        if not told:
            say("waits up to %d s for the pod %s of another run of accept" % (most, path.rpartition("/")[2]))
            told = True
        clock.sleep(smoke_pod.POLL)


def _may_be_used(pod: Object, since: float) -> bool:
    """Whether a run may wait for the pod: it has not ended, and was created after ``since``, seconds since 1970."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]
    created = maintenance_record.seconds_of(pod["metadata"].get("creationTimestamp"))
    return not ended and created is not None and created > since


def _remove(cluster: AnyCluster, path: str, say: Callable[[str], None], clock: Clock) -> None:
    removal = PodRemoval(cluster, path, clock)
    while not removal.over():
        clock.sleep(smoke_pod.POLL)
    if removal.why:
        say("the pod %s of an earlier run %s" % (path.rpartition("/")[2], removal.why))
