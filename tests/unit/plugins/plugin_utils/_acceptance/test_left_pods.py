# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import left_pods
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod

from support.fleet.fake_fleet import Clock
from support.kube.stub import node

PODS = "/api/v1/namespaces/%s/pods"
SMOKE, REDUCE = (
    smoke_pod.read("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {containers: [{name: main}]}}" % names)
    for names in (("smoke", "default"), ("reduce", "ml"))
)


@pytest.fixture
def left(api):
    """Pods of both manifests on two nodes, one of the second chip, and pods of others."""
    api.put("/api/v1/nodes", node("a"), node("b", annotations={"npuops.ascend/maintenance": "{}"}))
    for name in "ab":
        api.put(PODS % "default", smoke_pod.for_node(SMOKE, name), smoke_pod.for_node(SMOKE, name, 1))
        api.put(PODS % "ml", smoke_pod.for_node(REDUCE, name))
    others = smoke_pod.for_node(SMOKE, "a")
    others["metadata"]["name"] = "train"
    unmarked = smoke_pod.for_node(SMOKE, "a", 7)
    del unmarked["metadata"]["labels"]
    api.put(PODS % "default", others, unmarked)
    return lambda: sorted(name for namespace in ("default", "ml") for name in api.objects[PODS % namespace])


def test_those_of_the_node_go(api, cluster, left):
    before = left()
    left_pods.remove(cluster, "a", [SMOKE, REDUCE], print, Clock())
    gone = [smoke_pod.for_node(*pod)["metadata"]["name"] for pod in ((SMOKE, "a"), (SMOKE, "a", 1), (REDUCE, "a"))]
    assert left() == sorted(set(before) - set(gone))


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_node_in_maintenance_keeps_its_own(cluster, left, name):
    before = left()
    left_pods.remove(cluster, name, [SMOKE, REDUCE], print, Clock())
    assert left() == before


def test_one_that_cannot_be_removed_is_told(api, cluster, left):
    api.faults["DELETE", "%s/%s" % (PODS % "ml", smoke_pod.for_node(REDUCE, "a")["metadata"]["name"])] = (403, "no")
    said = []
    left_pods.remove(cluster, "a", [REDUCE, SMOKE], said.append, Clock())
    assert len(said) == 1 and said[0].startswith("the pod reduce-") and "of an earlier run cannot be removed" in said[0]
    assert len(left()) == 6, "the others are gone"
