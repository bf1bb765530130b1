# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import left_pods
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.fake_fleet import Clock
from support.kube.stub import node

PODS = "/api/v1/namespaces/%s/pods"
CREATED = "2026-11-21T09:00:00Z"
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
    left_pods.remove(cluster, "a", [SMOKE, REDUCE], 300, print, Clock())
    gone = [smoke_pod.for_node(*pod)["metadata"]["name"] for pod in ((SMOKE, "a"), (SMOKE, "a", 1), (REDUCE, "a"))]
    assert left() == sorted(set(before) - set(gone))


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_node_in_maintenance_keeps_its_own(cluster, left, name):
    before = left()
    left_pods.remove(cluster, name, [SMOKE, REDUCE], 300, print, Clock())
    assert left() == before


def test_one_that_cannot_be_removed_is_told(api, cluster, left):
    api.faults["DELETE", "%s/%s" % (PODS % "ml", smoke_pod.for_node(REDUCE, "a")["metadata"]["name"])] = (403, "no")
    said = []
    left_pods.remove(cluster, "a", [REDUCE, SMOKE], 300, said.append, Clock())
    assert len(said) == 1 and said[0].startswith("the pod reduce-") and "of an earlier run cannot be removed" in said[0]
    assert len(left()) == 6, "the others are gone"


class Aged(Clock):
    """The time at which pods of the API stub are of a given age, in seconds."""

    def __init__(self, api, age):
        super().__init__(maintenance_record.seconds_of(CREATED) + age)
        pods = api.objects[PODS % "default"]
        for pod in pods.values():
            pod["metadata"]["creationTimestamp"], pod["status"] = CREATED, {"phase": "Running"}
        self.start, self.pods = self.time, pods


def test_one_that_may_be_of_a_living_run_is_waited_for(api, cluster, left):
    """That run removes it when it has ended."""
    clock, said = Aged(api, 10), []
    name = smoke_pod.for_node(SMOKE, "a")["metadata"]["name"]
    clock.at(40, lambda: clock.pods[name].update(status={"phase": "Succeeded"}))
    clock.at(50, lambda: clock.pods.pop(name + "-1"))
    left_pods.remove(cluster, "a", [SMOKE], 300, said.append, clock)
    assert 50 <= clock.time - clock.start < 60 and not {name, name + "-1"} & set(left())
    assert said == ["waits up to 300 s for the pod %s of another run of accept" % text for text in (name, name + "-1")]


@pytest.mark.parametrize(("age", "timeout", "most"), [(290, 300, 15), (500, 300, 5), (590, 0, 15)])
def test_one_whose_time_is_over_was_left(api, cluster, left, age, timeout, most):
    clock = Aged(api, age)
    left_pods.remove(cluster, "a", [SMOKE], timeout, print, clock)
    name = smoke_pod.for_node(SMOKE, "a")["metadata"]["name"]
    assert clock.time - clock.start <= most and not {name, name + "-1"} & set(left())
