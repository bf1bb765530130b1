# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gives way to the cordon only: budgets that an operator adapts when it sees it, evictions by which a webhook hears of a drain.

Before the cordon they look as budgets and refusals that never give way.
"""

from __future__ import annotations

import pytest

from support.fleet.drained_bench import bench_with_drain
from support.fleet.maintenance_bench import COMPONENTS, STATE
from support.kube.eviction_stub import BUDGETS, PODS, budget, pod


def put_primary(api, owner=("Cluster", "pg")):
    api.put(PODS, pod("pg-1", node="npu-a", labels={"role": "primary"}, owner=owner))
    api.put(BUDGETS, budget("pg-primary", healthy=1, desired=1, selector={"matchLabels": {"role": "primary"}}))


def on_cordon(bench, action, after=5):
    """``action()`` so many seconds ``after`` the cordon."""

    def look(_path, body):
        if body.get("spec", {}).get("unschedulable"):
            bench.world.on_write = lambda *_args: None
            bench.world.clock.at(after, action)

    bench.world.on_write = look


@pytest.mark.parametrize("owner", [("Cluster", "pg"), ("StatefulSet", "pg")])
def test_an_operator_moves_its_primary_when_it_sees_the_cordon(api, bench, owner):
    """As of CloudNativePG and Zalando: the budget of the primary allows no disruption, and after the switchover covers another
    pod."""
    put_primary(api, owner)
    on_cordon(bench, lambda: api.objects[PODS]["pg-1"]["metadata"]["labels"].update(role="replica"))
    assert bench.run()["outcome"] == "done"
    assert api.evicted == ["pg-1"]
    bench.assert_upgraded()
    assert any("may give way to the cordon" in sentence and "train/pg-primary" in sentence for _step, sentence in bench.said)


def test_a_storage_pod_whose_users_have_to_leave_first(api, bench):
    """As Longhorn: the budget of the instance manager goes when the node has no volumes attached any more."""
    api.put(
        PODS,
        pod("a-store", node="npu-a", labels={"app": "store"}, owner=("InstanceManager", "im")),
        pod("train", node="npu-a", npus=1),
    )
    api.put(BUDGETS, budget("im", healthy=1, desired=1, selector={"matchLabels": {"app": "store"}}))

    def gone(item):
        api.remove(item)
        if item["metadata"]["name"] == "train":
            api.objects[BUDGETS].clear()

    api.on_evict = gone
    assert bench.run()["outcome"] == "done"
    assert api.evicted == ["train", "a-store"]


@pytest.mark.parametrize(
    "refusal",
    [
        (429, 'admission webhook "evictions.kubevirt.io" denied the request: Eviction triggered evacuation of VMI train/vm'),
        (403, 'admission webhook "drain-cleaner.strimzi.io" denied the request: The pod will be rolled by the Cluster Operator'),
        (400, 'admission webhook "guard.example.com" does not support dry run'),
    ],
)
def test_a_webhook_that_refuses_and_sees_to_it(api, bench, refusal):
    """The real request is what makes its operator move the pod. Of a dry run it must not take notice."""
    api.put(PODS, pod("vm", node="npu-a", owner=("VirtualMachineInstance", "vm")))
    api.refuse["vm"] = (refusal[0], {"kind": "Status", "message": refusal[1]})
    usual = api.answer

    def hears(method, path, query, body):
        if path.endswith("/vm/eviction") and not query.get("dryRun"):
            bench.world.clock.at(7, lambda: api.objects[PODS].pop("vm", None))
        return usual(method, path, query, body)

    api.answer = hears
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()


def test_what_does_not_give_way_within_the_limit(api, bench):
    put_primary(api)
    started = bench.world.clock.now()
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and "the PodDisruptionBudget train/pg-primary" in outcome["reason"]
    assert 120 <= bench.world.clock.now() - started < 150
    bench.assert_nothing_left()
    assert bench.labels[COMPONENTS] == "enabled" and bench.labels[STATE] == "upgrade-required" and bench.host.boots == 0


@pytest.mark.parametrize(
    ("owner", "npus"), [(("ReplicaSet", "web-5d4f"), 0), (("Job", "web"), 1), (("StatefulSet", "web"), 1), (None, 0)]
)
def test_what_pays_no_heed_to_a_cordon(api, bench, owner, npus):
    """Nothing is evicted in vain."""
    bench = bench_with_drain(bench.cluster.remote, force=True)
    api.put(PODS, pod("web-1", node="npu-a", owner=owner, npus=npus))
    api.put(PODS, pod("train", node="npu-a", npus=1, labels={"app": "train"}))
    api.put(BUDGETS, budget("web"))
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and outcome["reason"].startswith("Not cordoned: ")
    assert not api.evicted
