# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets, drain_policy, eviction_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.fleet.fake_fleet import Clock
from support.kube.eviction_stub import BUDGETS, PODS, budget, pod
from support.kube.stub import WEBHOOK_DOWN, node

NODES = "/api/v1/nodes"


def simulate(cluster, own_pod=None, **variables):
    pods = pod_view.pods_of_node(cluster, "a")
    return eviction_dry_run.simulate(cluster, pods, drain_policy.DrainPolicy.of(**variables), own_pod=own_pod)


def test_simulation_names_budget_pod_and_owner_and_changes_nothing(api, cluster):
    api.put(PODS, pod("web-1", labels={"app": "web", "pod-template-hash": "5d4f"}), pod("elsewhere", node="b"))
    api.put(BUDGETS, budget("web", allowed=0, healthy=2, desired=2))
    (blocker,) = simulate(cluster)
    assert blocker.text == (
        "the pod train/web-1 (Deployment train/web) cannot be evicted: the PodDisruptionBudget train/web allows no disruption"
        " now: 2 healthy, 2 needed"
    )
    assert blocker.result()["budget"] == {
        "namespace": "train",
        "name": "web",
        "disruptions_allowed": 0,
        "current_healthy": 2,
        "desired_healthy": 2,
    }
    assert not api.evicted


def test_pods_that_must_go_one_at_a_time_block_nothing(api, cluster):
    api.put(PODS, *[pod("web-%d" % number) for number in range(3)])
    api.put(BUDGETS, budget(allowed=1, healthy=3))
    assert simulate(cluster) == []
    assert sorted(api.dry_runs) == ["web-0", "web-1", "web-2"]
    assert not api.evicted


def test_simulation_hears_what_the_status_does_not_tell(api, cluster):
    """An admission webhook denies it; or the budget is so new that its controller has not counted yet."""
    api.put(PODS, pod("web-1"), pod("guarded", labels={"app": "other"}))
    api.put(BUDGETS, budget(allowed=1))
    api.refuse["web-1"] = (
        429,
        {"message": "m", "details": {"causes": [{"message": "The budget is being processed."}]}},
    )
    api.refuse["guarded"] = (403, {"message": 'admission webhook "guard" denied the request: not today'})
    assert [blocker.text for blocker in simulate(cluster)] == [
        "the pod train/web-1 (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget train/web: The budget is being"
        " processed",
        "the pod train/guarded (ReplicaSet train/web-5d4f) cannot be evicted: The Kubernetes API at %s refuses: admission webhook"
        ' "guard" denied the request: not today' % api.address,
    ]


def test_missing_rights_are_no_blocker_but_an_error(api, cluster):
    api.put(PODS, pod("web-1"))
    api.refuse["web-1"] = (
        403,
        {"message": 'User "x" cannot create resource "pods/eviction" in API group "" in the namespace "train"'},
    )
    with pytest.raises(NpuError, match='Allow "create" on "pods/eviction" in the namespace train'):
        simulate(cluster)


@pytest.mark.parametrize(
    ("item", "variables", "kind"),
    [
        (pod("x", owner=None), {}, "no-controller"),
        (pod("x", owner=None), {"drain": {"force": True}}, None),
        (pod("x", owner=None, npus=1), {"drain": {"force": True}}, "no-controller"),
        (pod("x", owner=None, npus=1), {"pod_deletion": {"force": True}}, None),
        (pod("x", volumes=[{"name": "d", "emptyDir": {}}]), {}, "empty-dir"),
        (pod("x", volumes=[{"name": "d", "emptyDir": {}}]), {"drain": {"delete_empty_dir": True}}, None),
        (pod("x", owner=None), {"drain": {"skip_selector": "app=web"}}, None),
        (pod("x", owner=None, npus=1), {"drain": {"skip_selector": "app=web"}}, "no-controller"),
        (pod("x", owner=None), {"drain": {"enable": False}}, None),
        (pod("x", owner=("DaemonSet", "d")), {}, None),
        (pod("x", owner=("DaemonSet", "d"), npus=1), {}, "npu-daemonset"),
        (pod("x", owner=None, phase="Succeeded"), {}, None),
    ],
)
def test_what_policy_and_owner_keep(api, cluster, item, variables, kind):
    api.put(PODS, item)
    assert [blocker.kind for blocker in simulate(cluster, **variables)] == ([kind] if kind else [])


@pytest.mark.parametrize("npus", [0, 2])
def test_a_static_pod_is_in_the_way_if_it_uses_npus(api, cluster, npus):
    """No eviction ends it, and its processes would keep the host from its reboot after everything else has left."""
    api.put(PODS, pod("train-a", owner=("Node", "a"), annotations={"kubernetes.io/config.mirror": "x"}, npus=npus))
    assert [blocker.text for blocker in simulate(cluster)] == [
        "the pod train/train-a cannot be evicted: it is a static pod that uses 2 huawei.com/Ascend910, which only the kubelet"
        " of its node ends; move its file out of staticPodPath there"
    ] * bool(npus)
    assert api.dry_runs == []


def test_several_budgets_on_one_pod(api, cluster):
    api.put(PODS, pod("web-1"))
    api.put(BUDGETS, budget("one", allowed=1), budget("two", allowed=1))
    (blocker,) = simulate(cluster)
    assert blocker.kind == "several-budgets"
    assert "train/one, train/two" in blocker.text


def test_few_pods_are_tried_each(api, cluster):
    api.put(PODS, *[pod("web-%d" % number) for number in range(5)])
    eviction_dry_run.confirm(cluster, pod_view.pods_of_node(cluster, "a"), disruption_budgets.Budgets([budget(allowed=1)]))
    assert sorted(api.dry_runs) == ["web-%d" % number for number in range(5)]


def test_of_many_pods_one_stands_for_its_budget(api, cluster, monkeypatch):
    monkeypatch.setattr(eviction_dry_run, "_EACH", 3)
    api.put(PODS, *[pod("web-%d" % number) for number in range(5)], pod("free", labels={"app": "x"}))
    entry = budget(allowed=0)
    api.put(BUDGETS, entry)
    stale = disruption_budgets.Budgets([budget(allowed=1)])
    found = eviction_dry_run.confirm(cluster, pod_view.pods_of_node(cluster, "a"), stale)
    assert sorted(api.dry_runs) == ["free", "web-0"]
    assert [blocker.pod.name for blocker in found] == ["web-%d" % number for number in range(5)]


def test_a_webhook_that_is_down_blocks_its_pods_and_nothing_else(api, cluster):
    api.put(NODES, node("a"))
    api.put(PODS, pod("web"), pod("guarded"))
    api.refuse["guarded"] = (WEBHOOK_DOWN[0], {"kind": "Status", "message": WEBHOOK_DOWN[1]})
    patient = kube_retry.RetryingCluster(cluster, print, Clock())
    (blocker,) = eviction_dry_run.confirm(patient, pod_view.pods_of_node(patient, "a"), disruption_budgets.Budgets([]))
    assert blocker.pod.name == "guarded" and 'failed calling webhook "guard.example.com"' in blocker.why
