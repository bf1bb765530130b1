# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import registry_nodes, rollout_permissions, rollout_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.fleet.hosts import NEW_DIGEST, host
from support.fleet.planning import asked
from support.kube.big_cluster import SERVICES, BigCluster
from support.kube.eviction_stub import BUDGETS, CLAIMS, PODS, SLICES, EvictionApi, budget, claim, holding, pod, resource_slice
from support.kube.field_owners import cordon_of
from support.kube.stub import node

NODES = "/api/v1/nodes"
APPROVE = "npu.openfuyao.com/approve-reboot"


@pytest.fixture
def api():
    with EvictionApi() as server:
        server.objects[SERVICES] = {}
        yield server


def connect(api):
    return kube_client.connect({"host": api.address, "api_key": "token"})


def test_what_is_kept(api):
    fields = {"f:metadata": {"f:annotations": {"f:npu.openfuyao.com/approve-reboot": {}}}}
    item = node("a")
    item["metadata"]["managedFields"] = [
        {"manager": "kubelet", "fieldsV1": {}},
        {"manager": "kubectl", "fieldsV1": fields},
        cordon_of("npuops.ascend-maintenance"),
    ]
    item["spec"]["unschedulable"] = True
    item["status"]["images"] = [{"names": ["x"]}]
    api.put(NODES, item)
    api.put(PODS, pod("web-1"), pod("done", phase="Succeeded"), pod("pending", node=None))
    api.put(BUDGETS, budget())
    snapshot = fleet_snapshot.FleetSnapshot.read(connect(api))
    kept = snapshot.nodes["a"]
    assert "images" not in kept["status"]
    assert [entry["manager"] for entry in kept["metadata"]["managedFields"]] == ["kubectl", "npuops.ascend-maintenance"]
    assert (
        maintenance_record.cordoned_by(kept) == "npuops.ascend-maintenance"
        and maintenance_record.annotated_at(kept, APPROVE)[0] == "kubectl"
    )
    assert {name: [item.name for item in pods] for name, pods in snapshot.pods.items()} == {"a": ["web-1"]}
    assert snapshot.budgets.of(snapshot.pods["a"][0])[0].label == "train/web"


def test_claims_of_pods(api):
    api.put(NODES, node("a"))
    api.put(PODS, holding(pod("job"), "mine"), pod("web"))
    api.put(CLAIMS, claim("mine"), claim("other"))
    api.put(SLICES, resource_slice())
    snapshot = fleet_snapshot.FleetSnapshot.read(connect(api), npu_drivers=asked().policy.dra_drivers)
    assert {item.name: item.kind for item in snapshot.pods["a"]} == {"job": "npu", "web": "other"}
    assert snapshot.claims.problem is None


def plan_calls(nodes, pods, monkeypatch):
    """How many requests a plan takes, by what they ask for."""
    monkeypatch.setattr(kube_client, "PAGE", 50)
    with BigCluster(nodes, pods) as api:
        cluster = connect(api)
        api.requests.clear()
        rollout_permissions.check_readable(cluster, "npu-operator")
        snapshot = fleet_snapshot.FleetSnapshot.read(cluster, ["registry.invalid:5000"])
        lookups = rollout_settings.Lookups(
            resolve=lambda reference, config, machine: NEW_DIGEST,
            size=lambda *_args: 1,
            support=lambda *_args: ([], []),
            confirm=lambda found: eviction_dry_run.confirm(cluster, found, snapshot.budgets),
            now=0.0,
        )
        hosts = [host("n%04d" % number) for number in range(nodes)]
        slots = {"max": 1, "halted": None, "holders": {}}
        plan = rollout_planner.make(hosts, snapshot, slots, asked(), lookups)
        assert len(plan.of("ready")) == nodes
        paths = [path for _method, path in api.requests]
        evictions = sum(path.endswith("/eviction") for path in paths)
        assert not api.evicted
        return {
            "pods": paths.count(PODS),
            "nodes": paths.count(NODES),
            "budgets": paths.count(BUDGETS),
            "evictions": evictions,
            "others": len(paths) - paths.count(PODS) - paths.count(NODES) - paths.count(BUDGETS) - evictions,
        }


def test_requests_grow_with_pages_not_with_nodes(monkeypatch):
    assert plan_calls(10, 400, monkeypatch) == {"pods": 8, "nodes": 1, "budgets": 4, "evictions": 200, "others": 3}
    assert plan_calls(40, 800, monkeypatch) == {"pods": 16, "nodes": 1, "budgets": 8, "evictions": 200, "others": 3}


def test_what_may_not_be_read_is_told_at_once(api):
    api.denied = {("list", "pods"), ("get", "leases")}
    with pytest.raises(NpuError) as caught:
        rollout_permissions.check_readable(connect(api), "npu-operator")
    assert '"list" on "pods"' in caught.value.message
    assert '"get" on "leases.coordination.k8s.io npu-maintenance" in the namespace npu-operator' in caught.value.message


# --- where the registry is ---


def service(**spec):
    return {
        "metadata": {"name": "registry", "namespace": "infra"},
        "spec": dict({"selector": {"app": "registry"}}, **spec),
    }


@pytest.mark.parametrize(
    ("registry", "spec"),
    [
        ("registry.infra.svc:5000", {"clusterIP": "10.96.0.7"}),
        ("registry.infra.svc.cluster.local", {"clusterIP": "10.96.0.7"}),
        ("10.96.0.7:5000", {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"]}),
        ("192.0.2.9", {"externalIPs": ["192.0.2.9"]}),
        ("192.0.2.1:30500", {"type": "NodePort", "ports": [{"port": 5000, "nodePort": 30500}]}),
    ],
)
def test_a_registry_behind_a_service(api, registry, spec):
    nodes = [node("a"), node("b")]
    nodes[1]["status"]["addresses"] = [{"type": "InternalIP", "address": "192.0.2.1"}]
    api.put(NODES, *nodes)
    api.put(PODS, pod("r-1", namespace="infra", labels={"app": "registry"}), pod("web", node="b", labels={"app": "web"}))
    api.put(SERVICES, service(**spec))
    assert fleet_snapshot.FleetSnapshot.read(connect(api), [registry]).registry_nodes == {"a": "the registry's pod infra/r-1"}


def test_a_registry_on_a_node_itself(api):
    item = node("a")
    item["status"]["addresses"] = [{"type": "InternalIP", "address": "192.0.2.1"}]
    api.put(NODES, item, node("b"))
    assert fleet_snapshot.FleetSnapshot.read(connect(api), ["192.0.2.1:5000"]).registry_nodes == {"a": "the registry at 192.0.2.1"}


def test_a_registry_elsewhere(api):
    api.put(NODES, node("a"))
    api.put(PODS, pod("web-1"))
    api.put(SERVICES, service(clusterIP="10.96.0.7", ports=[{"nodePort": 30500}]))
    assert fleet_snapshot.FleetSnapshot.read(connect(api), ["192.0.2.77:30500"]).registry_nodes == {}


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("registry.example.com", ("registry.example.com", 443)),
        ("10.0.0.1:5000", ("10.0.0.1", 5000)),
        ("[2001:db8::1]:5000", ("2001:db8::1", 5000)),
        ("[2001:db8::1]", ("2001:db8::1", 443)),
        ("registry:99999", ("registry", 443)),
        ("[::1", ("[::1", 443)),
    ],
)
def test_the_address_of_a_registry_is_as_a_node_has_it(registry, expected):
    assert registry_nodes._name_and_port(registry) == expected
