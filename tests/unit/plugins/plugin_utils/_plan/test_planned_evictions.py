# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.fleet.hosts import host
from support.fleet.planning import (
    make,
    only,
)
from support.kube.eviction_stub import (
    CLAIMS,
    PODS,
    SLICES,
    EvictionApi,
    budget,
    claim,
    holding,
    pod,
    resource_slice,
)


def test_a_budget_blocks_and_can_be_deferred():
    plan = make([host("a"), host("b")], pods=[pod("web-1"), pod("train", npus=8)], budgets=[budget()])
    a, b = plan.entries
    assert (a.verdict, a.deferrable, b.verdict) == ("blocked", True, "ready")
    assert a.blockers[0]["budget"]["name"] == "web"
    assert a.evictions == {"npu": 1, "other": 1, "jobs": 0}
    assert plan.due_nodes == ["a", "b"]
    assert plan.problem.splitlines() == [
        "Nothing was changed: the plan is not green. 1 of 2 nodes is due, 1 blocked; duration unknown before the"
        " first one is done.",
        "  a: the pods train/web-1, train/train (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget train/web allows no"
        " disruption now: 2 healthy, 2 needed",
        "To start with the others and try the blocked ones last: -e npu_upgrade_on_blocked=defer.",
    ]


def test_what_the_server_cannot_answer_in_a_dry_run_blocks():
    def confirm(pods):
        return [pod_blocker.Blocker("failing", item, "a webhook is down") for item in pods if item.name == "web-1"]

    plan = make([host("a"), host("b")], pods=[pod("web-1"), pod("web-2", node="b")], lookups={"confirm": confirm})
    assert [entry.verdict for entry in plan.entries] == ["blocked", "ready"]


def test_what_may_give_way_to_the_cordon_is_a_note():
    """An operator moves its primary when it sees the cordon, a webhook hears of a drain by the real eviction only."""

    def confirm(pods):
        return [pod_blocker.Blocker("refused", item, "a webhook says no") for item in pods if item.name == "vm"]

    primary = pod("pg-1", labels={"role": "primary"}, owner=("Cluster", "pg"))
    selected = budget("pg-primary", healthy=1, desired=1, selector={"matchLabels": {"role": "primary"}})
    machine = pod("vm", node="b", owner=("VirtualMachineInstance", "vm"))
    plan = make([host("a"), host("b")], pods=[primary, machine], budgets=[selected], lookups={"confirm": confirm})
    assert [(entry.verdict, entry.blockers) for entry in plan.entries] == [("ready", []), ("ready", [])]
    assert [entry.notes for entry in plan.entries] == [
        [
            "the pod train/pg-1 (Cluster train/pg) cannot be evicted: the PodDisruptionBudget train/pg-primary allows no disruption"
            " now: 1 healthy, 1 needed; the drain tries it, because an operator may act on the cordon"
        ],
        [
            "the pod train/vm (VirtualMachineInstance train/vm) cannot be evicted: a webhook says no; the drain tries it, because an"
            " operator may act on the cordon"
        ],
    ]


def test_a_static_pod_with_npus_blocks():
    annotations = {"kubernetes.io/config.mirror": "x"}
    plan = make([host("a"), host("b")], pods=[pod("train-a", owner=("Node", "a"), annotations=annotations, npus=8)])
    assert [entry.verdict for entry in plan.entries] == ["blocked", "ready"]
    assert "static pod that uses 8 huawei.com/Ascend910" in plan.problem


def test_a_job_that_is_waited_for_may_have_a_budget():
    entry = only(host(), pods=[pod("web-1")], budgets=[budget()], wait_for_jobs={"selector": "app=web"})
    assert (entry.verdict, entry.evictions["jobs"]) == ("ready", 1)


def test_pods_in_the_way_come_before_a_missing_approval():
    entry = only(host(), pods=[pod("web-1")], budgets=[budget()], auto=False)
    assert (entry.verdict, entry.deferrable) == ("blocked", True)


def test_who_holds_claims_is_named():
    """As a pod with NPUs; and where its plugin is gone, the node is blocked before its cordon."""
    plan = plan_with_claims([holding(pod("job"), "mine"), holding(pod("web", node="b"), "net")], resource_slice())
    a, b = plan.entries
    assert (a.verdict, a.evictions) == ("ready", {"npu": 1, "other": 0, "jobs": 0})
    assert a.notes == [
        "pods that hold ResourceClaims: train/job (mine of npu.huawei.com); whether those that use NPUs fit on another node was not"
        " checked"
    ]
    assert (b.verdict, b.deferrable, b.evictions["other"]) == ("blocked", True, 1)
    assert "the plugin of the DRA driver net.example.com does not run on b, so its ResourceClaim net" in b.blocker_text


def test_a_pod_that_hangs_without_its_plugin_blocks():
    item = holding(pod("job"), "mine")
    item["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert [entry.verdict for entry in plan_with_claims([item]).entries] == ["blocked", "ready"]


def test_claims_that_may_not_be_read_are_a_note():
    plan = make([host("a")], pods=[], claims=pod_claims.HeldClaims(problem="nobody knows"))
    assert "nobody knows" in plan.cluster_notes and plan.green


def test_room_is_not_judged_by_resources_that_are_claims():
    """KEP-5004: the pod asks for a resource, which no kubelet offers, and Kubernetes has made a claim of it."""
    item = pod("job", npus=8)
    item["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "mine", "requestMappings": []}
    (a, _b) = plan_with_claims([item], resource_slice()).entries
    assert a.evictions["npu"] == 1 and not any("fit on no other node" in note for note in a.notes)
    assert "whether those that use NPUs fit on another node was not checked" in a.notes[0]


def plan_with_claims(items, *slices, **settings):
    with EvictionApi() as api:
        api.objects.update({PODS: {}, CLAIMS: {}, SLICES: {}})
        api.put(CLAIMS, claim("mine"), claim("net", driver="net.example.com", pool="b"))
        api.put(SLICES, *slices)
        cluster = kube_client.connect({"host": api.address, "api_key": "token"})
        pods = [pod_view.Pod(item) for item in items]
        claims = pod_claims.HeldClaims.read(cluster, pods, ("npu.huawei.com",))
    return make([host("a"), host("b")], pods=items, claims=claims, **settings)
