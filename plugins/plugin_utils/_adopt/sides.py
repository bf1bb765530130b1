# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two sides that a node moves between, the previous components and ours, and what the node offers meanwhile."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import schema
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import quantity as kube_quantity
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, LabelChanges, Object, Objects
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import component_names
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import resources as npu_resources
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster.foreign import ANNOTATION_ADOPTION, LABEL_ADOPTED

_LONGEST = 16 * 1024
_BEFORE = schema.table(schema.number(0, 100000), 100)


class Theirs:
    """The previous device plugins and exporters. ``plugins``, ``others``: DaemonSets."""

    called = "the previous components"
    enter: LabelChanges = {LABEL_ADOPTED: None}
    leave: LabelChanges = {LABEL_ADOPTED: "true"}

    def __init__(self, plugins: Sequence[Object], others: Sequence[Object]) -> None:
        self._plugins = list(plugins)
        self.daemonsets = [*plugins, *others]

    def pods(self, cluster: AnyCluster) -> Objects:
        uids = {item["metadata"]["uid"] for item in self.daemonsets}
        namespaces = sorted({item["metadata"]["namespace"] for item in self.daemonsets})
        found = [pod for name in namespaces for pod in cluster.list("/api/v1/namespaces/%s/pods" % name)]
        return [pod for pod in found if owner_of(pod).get("uid") in uids]

    def awaited(self, node: Object) -> list[str]:
        """The UIDs of the DaemonSets whose pods must be Ready on the node. Exporters are not waited for."""
        labels = kube_client.labels(node)
        return [item["metadata"]["uid"] for item in self._plugins if left_daemonset.selects(item, labels)]


class Ours:
    """Those that install has deployed. ``names``: by node, of the DaemonSets that are to run there."""

    called = "the components of npuops.ascend"
    enter: LabelChanges = {kube_client.LABEL_COMPONENTS: "enabled"}
    leave: LabelChanges = {kube_client.LABEL_COMPONENTS: None}

    def __init__(self, namespace: str, names: Mapping[str, Collection[str]]) -> None:
        self._namespace, self._names = namespace, names
        self._uids: dict[str, str] = {}

    def pods(self, cluster: AnyCluster) -> Objects:
        found = cluster.list("/api/v1/namespaces/%s/pods" % self._namespace)
        mine = [pod for pod in found if component_names.daemonset_of(pod["metadata"], self._namespace)]
        if not self._uids:
            sets = cluster.list("/apis/apps/v1/namespaces/%s/daemonsets" % self._namespace)
            self._uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in sets}
        return mine

    def awaited(self, node: Object) -> list[str]:
        names = self._names.get(node["metadata"]["name"], ())
        return [self._uids.get(name, name) for name in sorted(names)]


def owner_of(pod: Object) -> Object:
    """The reference to the controller of a pod, {} without one."""
    return next((owner for owner in pod["metadata"].get("ownerReferences") or [] if owner.get("controller")), {})


def on_node(pods: Objects, node: str) -> Objects:
    """Those on a node, also ones that end."""
    return [pod for pod in pods if kube_daemonsets.pod_node(pod) == node]


def works(pods: Objects, awaited: Collection[str]) -> bool:
    """Whether each DaemonSet that is awaited has a Ready pod among those of a node."""
    ready = {
        owner_of(pod).get("uid") for pod in pods if kube_daemonsets.pod_ready(pod) and not pod["metadata"].get("deletionTimestamp")
    }
    return ready.issuperset(awaited)


def offers(node: Object) -> dict[str, int]:
    """{resource: count} of the devices that the node offers."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    counts = {name: kube_quantity.whole(text) or 0 for name, text in allocatable.items() if npu_resources.is_npu(name)}
    return {name: count for name, count in sorted(counts.items()) if count}


def short_of(node: Object, before: Mapping[str, int]) -> list[str]:
    """What the node offers less than ``before``, as phrases."""
    now = offers(node)
    return [
        "%d instead of %d of %s" % (now.get(name, 0), count, name) for name, count in before.items() if now.get(name, 0) < count
    ]


def before(node: Object) -> dict[str, int] | None:
    """What a node offered before its move began; None if it is not under way. {} if what stands there says nothing."""
    text = kube_client.annotations(node).get(ANNOTATION_ADOPTION)
    if text is None:
        return None
    try:
        counts = schema.load(text, _LONGEST)
        _BEFORE(counts, "")
    except schema.Misfit:
        return {}
    return {name: count for name, count in counts.items() if npu_resources.is_npu(name)}


def before_text(counts: Mapping[str, int]) -> str:
    return json.dumps(counts, sort_keys=True)
