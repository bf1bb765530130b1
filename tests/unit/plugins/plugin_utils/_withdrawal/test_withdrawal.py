# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.acceptance_gate import TAINT
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import npu_use
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import withdrawal

from support.fleet.fake_fleet import Clock
from support.kube.device_taints import RULES, rule
from support.kube.field_owners import cordon_of
from support.kube.stub import WEBHOOK_DOWN, node

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/npu-operator/pods"
KEEP = "npuops.ascend/keep-cordoned"
INSTALLED = {
    "openfuyao.com/npu.present": "",
    "npuops.ascend/chip": "910B",
    "npuops.ascend/components": "enabled",
    "npuops.ascend/skip": "true",
    "accelerator": "huawei-Ascend910",
    "workerselector": "dls-worker-node",
    "zone": "a",
}


def npu_node(name, boot_id="b-1", **kwargs):
    made = node(name, boot_id, labels=dict(INSTALLED), **kwargs)
    made["metadata"]["managedFields"] = [
        {"manager": "npuops.ascend", "fieldsV1": {"f:metadata": {"f:labels": {"f:accelerator": {}, "f:npuops.ascend/chip": {}}}}},
        {"manager": "kubectl-label", "fieldsV1": {"f:metadata": {"f:labels": {"f:workerselector": {}, "f:zone": {}}}}},
    ]
    return made


def host(name, boot_id="b-1", **kwargs):
    return dict({"name": name, "facts": {"boot_id": boot_id}, "config": {}}, **kwargs)


def pod(name, node_name="a", limits=None, phase="Running", annotations=None):
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {"nodeName": node_name, "containers": [{"name": "m", "resources": {"limits": limits or {}}}]},
        "status": {"phase": phase},
    }


def refused(hosts, nodes, pods=(), force=False):
    return withdrawal.refusal(withdrawal.leaving(hosts, {one["metadata"]["name"]: one for one in nodes}, pods), force)


def test_labels_that_are_ours_go_and_others_stay(api, cluster):
    api.put(NODES, npu_node("a", annotations={"npuops.ascend/wedged": "{}", "note": "x"}), npu_node("b"))
    departures = withdrawal.leaving([host("a")], cluster.nodes(), [])
    done = withdrawal.withdraw(cluster, departures[0])
    assert "from node a" in done
    left = api.objects[NODES]["a"]["metadata"]
    assert left["labels"] == {"npuops.ascend/skip": "true", "workerselector": "dls-worker-node", "zone": "a"}
    assert left["annotations"] == {"note": "x"}
    assert api.objects[NODES]["b"]["metadata"]["labels"] == INSTALLED
    assert withdrawal.withdraw(cluster, withdrawal.leaving([host("a")], cluster.nodes(), [])[0]) is None


def test_the_gate_of_a_node_that_was_never_accepted_goes(api, cluster):
    waiting = npu_node("a")
    waiting["spec"]["taints"] = [{"key": "mine", "effect": "NoExecute"}, {"key": TAINT, "value": "2", "effect": "NoSchedule"}]
    api.put(NODES, waiting)
    done = take_back(cluster, "a")
    assert "remove the taint npuops.ascend/not-accepted from node a" in done
    assert api.objects[NODES]["a"]["spec"]["taints"] == [{"key": "mine", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    "manager, labels, stays",
    [("npuops.ascend-maintenance", {}, False), ("npuops.ascend-maintenance", {KEEP: "true"}, True), ("kubectl-cordon", {}, True)],
)
def test_the_cordon_of_a_maintenance_goes_and_others_stay(api, cluster, manager, labels, stays):
    """A maintenance leaves a node cordoned whose driver does not work; no other run would ever uncordon it."""
    left = npu_node("a", unschedulable=True)
    left["metadata"]["managedFields"] = [cordon_of(manager)]
    left["metadata"]["labels"].update(labels)
    api.put(NODES, left)
    done = take_back(cluster, "a")
    assert bool(api.objects[NODES]["a"]["spec"].get("unschedulable")) is stays
    assert ("uncordon node a" in done) is not stays


def test_check_mode_writes_nothing(api, cluster):
    api.put(NODES, npu_node("a"))
    assert withdrawal.withdraw(cluster, withdrawal.leaving([host("a")], cluster.nodes(), [])[0], check_mode=True)
    assert api.objects[NODES]["a"]["metadata"]["labels"] == INSTALLED


def test_somebody_elses_change_in_between_is_kept(api, cluster):
    api.put(NODES, npu_node("a"))
    departures = withdrawal.leaving([host("a")], cluster.nodes(), [])
    changed = npu_node("a")
    changed["metadata"]["labels"]["new"] = "1"
    api.put(NODES, changed)
    assert withdrawal.withdraw(cluster, departures[0])
    assert api.objects[NODES]["a"]["metadata"]["labels"]["new"] == "1"
    assert "npuops.ascend/chip" not in api.objects[NODES]["a"]["metadata"]["labels"]


@pytest.mark.parametrize(
    ("one", "uses"),
    [
        (pod("x", limits={"huawei.com/Ascend910": "1"}), True),
        (pod("x", limits={"huawei.com/Ascend310P-2c": "1"}), True),
        (pod("x", limits={"cpu": "1"}), False),
        (pod("x", limits={"huawei.com/Ascend910": "1"}, phase="Succeeded"), False),
        (pod("x", annotations={"cdi.k8s.io/npu": "huawei.com/npu=0"}), True),
        (pod("x", annotations={"cdi.k8s.io/gpu": "nvidia.com/gpu=0"}), False),
    ],
)
def test_pods_that_use_npus(one, uses):
    assert npu_use.uses_npus(one) == uses
    problem = refused([host("a")], [npu_node("a")], [one])
    assert (problem is not None) == uses
    if uses:
        assert "a: pods use its NPUs: default/x. Delete them" in problem and "npu_uninstall_force" in problem
        assert refused([host("a")], [npu_node("a")], [one], force=True) is None
        assert refused([host("b")], [npu_node("b")], [one]) is None


def test_a_host_that_is_not_its_node_is_refused_even_with_force():
    assert "is not the node a" in refused([host("a", "b-2")], [npu_node("a")], force=True)


@pytest.mark.parametrize("own", [[], [npu_node("a", "b-1", ready=False)]], ids=["no node", "not Ready"])
@pytest.mark.parametrize("force", [False, True])
def test_a_host_that_is_another_node_is_refused_even_with_force(own, force):
    """With a wrong npu_node_name, the pods of that node would lose their driver."""
    wanted = "a: this machine is the node b, not a. Correct ansible_host, or set npu_node_name: b"
    assert wanted in refused([host("a", boot_id="b-2")], [*own, npu_node("b", "b-2")], force=force)


def test_a_stale_node_of_the_same_boot_does_not_count():
    """Of a kubelet that got another name: it reports the same boot ID until it is deleted."""
    assert refused([host("a")], [npu_node("old", ready=False), npu_node("a"), npu_node("zz", ready=False)]) is None


def test_a_maintenance_is_not_disturbed():
    under = npu_node("a", annotations={"npuops.ascend/maintenance": "{}"})
    assert "the node a is in maintenance; wait until that ends" in refused([host("a")], [under])


def test_what_cannot_be_looked_at_stops_all():
    problem = refused([host("a"), host("b", error="no route", unreachable=True, facts=None)], [npu_node("a"), npu_node("b")])
    assert "b: not reachable: no route" in problem and "--limit" in problem


def test_hosts_that_are_no_nodes_any_more_may_go():
    assert refused([host("a")], []) is None
    assert refused([host("a", facts={"boot_id": "b-1", "runtime": {"name": "none", "kubelet": False}})], []) is None


def test_a_host_of_another_cluster_is_refused():
    """With the kubeconfig of the wrong cluster no host has a Node, and pods of the right one use the NPUs."""
    serving = host("a", facts={"boot_id": "b-1", "runtime": {"name": "containerd", "kubelet": True}})
    problem = refused([serving], [])
    assert "a: a kubelet runs on it, but this cluster has no node a" in problem and "npu_kubernetes_auth" in problem
    assert refused([serving], [], force=True) is None
    assert refused([serving], [npu_node("a")]) is None


def test_who_stays():
    nodes = {"a": npu_node("a"), "b": npu_node("b"), "c": node("c")}
    assert withdrawal.others(withdrawal.leaving([host("a")], nodes, []), nodes) == ["b"]
    assert withdrawal.others(withdrawal.leaving([host("a"), host("b")], nodes, []), nodes) == []


def component(name, owner, node_name):
    made = pod(name, node_name)
    made["metadata"].update(namespace="npu-operator", ownerReferences=[{"kind": "DaemonSet", "name": owner, "controller": True}])
    return made


def test_waits_for_the_components_pods_only_and_names_them(api, cluster):
    api.put(NODES, npu_node("a"))
    api.put(PODS, component("theirs", "other", "a"), component("elsewhere", "npu-exporter", "b"))
    withdrawal.wait_until_gone(cluster, "npu-operator", ["a"], 1, 0.01)
    api.put(PODS, component("slow", "npu-exporter", "a"))
    with pytest.raises(NpuError, match="did not end within 0 s: slow on a"):
        withdrawal.wait_until_gone(cluster, "npu-operator", ["a"], 0, 0.01)


def closed(name):
    """A node behind the gate that a maintenance has left cordoned."""
    made = npu_node(name, unschedulable=True, taints=[{"key": TAINT, "value": "2", "effect": "NoSchedule"}])
    made["metadata"]["managedFields"].append(cordon_of("npuops.ascend-maintenance"))
    return made


def is_closed(api, name):
    spec = api.objects[NODES][name]["spec"]
    return bool(spec.get("unschedulable")), bool(spec.get("taints"))


def test_a_node_stays_closed_until_it_offers_no_chip(api, cluster, monkeypatch):
    """A pod that waits would get a chip, and lose its driver."""
    api.put(NODES, closed("a"))
    seen = []
    monkeypatch.setattr(withdrawal, "wait_until_gone", lambda *_args: seen.append(is_closed(api, "a")))
    take_back(cluster, "a")
    assert seen == [(True, True)] and is_closed(api, "a") == (False, False)


@pytest.mark.parametrize("force", [False, True])
def test_a_pod_that_gets_a_chip_meanwhile_keeps_it(api, cluster, monkeypatch, force):
    api.put(NODES, closed("a"), npu_node("b"))
    late = pod("late", limits={"huawei.com/Ascend910": "1"})
    monkeypatch.setattr(withdrawal, "wait_until_gone", lambda *_args: api.put("/api/v1/pods", late))
    if force:
        take_back(cluster, "a", "b", force=True)
    else:
        with pytest.raises(NpuError, match="the node a: pods have started to use its NPUs: default/late. Delete them or drain"):
            take_back(cluster, "a", "b")
    assert is_closed(api, "a") == (not force, not force)
    assert "npuops.ascend/components" not in api.objects[NODES]["b"]["metadata"]["labels"]


def test_a_kubelet_that_does_not_run_keeps_no_other_node(api, cluster):
    api.put(NODES, closed("a"), closed("b"))
    api.put(PODS, component("stuck", "npu-exporter", "b"))
    with pytest.raises(NpuError, match="stuck on b.* delete pod --force"):
        take_back(cluster, "a", "b", clock=Clock())
    assert (is_closed(api, "a"), is_closed(api, "b")) == ((False, False), (True, True))
    del api.objects[PODS]["stuck"]
    take_back(cluster, "a", "b")
    assert is_closed(api, "b") == (False, False)


@pytest.mark.parametrize("force", [False, True])
def test_a_maintenance_that_begins_meanwhile_keeps_its_record(api, cluster, force):
    """A fleet takes a while; an upgrade may begin with the last node before its turn comes."""
    api.put(NODES, npu_node("a"), npu_node("b"))
    departures = withdrawal.leaving([host("a"), host("b")], cluster.nodes(), [])
    api.put(NODES, npu_node("b", annotations={"npuops.ascend/maintenance": "{}"}))
    if force:
        withdrawal.take_back(cluster, "npu-operator", departures, timeout=60, force=True)
    else:
        with pytest.raises(NpuError, match="the node b: A maintenance of the node began in the meantime. .* run this again"):
            withdrawal.take_back(cluster, "npu-operator", departures, timeout=60)
    assert "npuops.ascend/components" not in api.objects[NODES]["a"]["metadata"]["labels"]
    left = api.objects[NODES]["b"]["metadata"]
    assert ("npuops.ascend/maintenance" in left["annotations"], "npuops.ascend/components" in left["labels"]) == (not force,) * 2


def test_a_node_that_cannot_be_written_keeps_no_other_one(api, cluster):
    """Nor does a ConfigMap; and the run does not wait for the pods of the node that keeps its labels."""
    api.put(NODES, npu_node("a"), npu_node("b"))
    api.put("/api/v1/namespaces/kube-system/configmaps", *[{"metadata": {"name": "mindx-dl-deviceinfo-" + name}} for name in "ab"])
    api.faults["PATCH", NODES + "/a"] = WEBHOOK_DOWN
    nodes = dict(api.objects[NODES])
    departures = withdrawal.leaving([host("a"), host("b")], nodes, [])
    with pytest.raises(NpuError, match="a: .*guard.example.com") as caught:
        withdrawal.take_back(cluster, "npu-operator", departures, timeout=60)
    assert "npuops.ascend/components" not in api.objects[NODES]["b"]["metadata"]["labels"]
    assert list(api.objects["/api/v1/namespaces/kube-system/configmaps"]) == ["mindx-dl-deviceinfo-a"]
    assert caught.value.details["changed"]


# --- what the device plugin wrote ---

PLUGINS = {
    "labels": ["huawei.com/Ascend910-NetworkRecover", "huawei.com/Ascend910-Recover", "infer-card-type", "mind-cluster/npu-chip-memory",
               "node.kubernetes.io/npu.chip.name", "servertype"],
    "annotations": ["baseDeviceInfos", "serverIndex", "serverType", "superPodID"],
}  # fmt: skip
PEOPLES = {"labels": {"zone": "a", "huawei.com/topotree": "t"}, "annotations": {"note": "x", "ResetInfo": "{}"}}


def wrote(manager, subresource="status", **parts):
    """An entry of managedFields: the names in ``labels`` and ``annotations``."""
    fields = {"f:" + part: {"f:" + key: {} for key in keys} for part, keys in parts.items()}
    entry = {"manager": manager, "operation": "Update", "fieldsV1": {"f:metadata": fields}}
    return dict(entry, subresource=subresource) if subresource else entry


def left_by_the_plugin(name):
    """A Node on which the device plugin ran, and people have labels of their own."""
    made = node(name, "b-1", **{part: dict(PEOPLES[part], **dict.fromkeys(PLUGINS[part], "1")) for part in PLUGINS})
    made["metadata"]["managedFields"] = [
        wrote("device-plugin", **PLUGINS),
        wrote("kubectl-annotate", "", annotations=["ResetInfo"]),
    ]
    return made


def take_back(cluster, *names, **options):
    departures = withdrawal.leaving([host(name) for name in names], cluster.nodes(), [])
    return withdrawal.take_back(cluster, "npu-operator", departures, 1, **options)


def test_what_the_plugin_wrote_stays_and_is_told(api, cluster):
    api.put(NODES, left_by_the_plugin("a"), node("b"))
    assert take_back(cluster, "a", "b") == []
    left = withdrawal.left(withdrawal.leaving([host("a"), host("b")], cluster.nodes(), []))
    assert list(left) == ["a"]
    [sentence] = left["a"]
    assert (
        ", ".join(PLUGINS["labels"] + PLUGINS["annotations"]) in sentence and "npu_uninstall_device_plugin_labels: true" in sentence
    )
    assert set(PLUGINS["labels"]) < set(api.objects[NODES]["a"]["metadata"]["labels"])


def test_what_the_plugin_wrote_goes_where_that_is_asked_for(api, cluster):
    api.put(NODES, left_by_the_plugin("a"), left_by_the_plugin("b"))
    done = take_back(cluster, "a", device_plugin_labels=True)
    assert done == ["remove %s from node a" % ", ".join(PLUGINS["labels"] + PLUGINS["annotations"])]
    metadata = api.objects[NODES]["a"]["metadata"]
    assert {part: metadata[part] for part in PEOPLES} == PEOPLES
    assert set(PLUGINS["labels"]) < set(api.objects[NODES]["b"]["metadata"]["labels"]), "a node that is not of the run"
    assert take_back(cluster, "a", device_plugin_labels=True) == []


def test_check_mode_tells_what_of_the_plugins_would_go(api, cluster):
    api.put(NODES, left_by_the_plugin("a"))
    done = take_back(cluster, "a", device_plugin_labels=True, check_mode=True)
    assert "servertype, baseDeviceInfos" in done[0]
    assert set(PLUGINS["labels"]) < set(api.objects[NODES]["a"]["metadata"]["labels"])


@pytest.mark.parametrize("fields", [
    [], None, [wrote("ancient-changes", labels=["servertype"])], [wrote("kubectl-label", "", labels=["servertype", "accelerator-type"])],
    [wrote("device-plugin", labels=["zone", "accelerator"])],
])  # fmt: skip
def test_names_that_people_use_as_well_stay_where_the_plugin_is_not_known_to_have_written_them(api, cluster, fields):
    peoples = {"servertype": "soc", "accelerator-type": "module-910b-8", "accelerator": "huawei-Ascend910", "zone": "a"}
    made = node("a", "b-1", labels=dict(peoples, **{"node.kubernetes.io/npu.chip.name": "910B3"}), annotations={"serverType": "x"})
    made["metadata"]["managedFields"] = fields
    api.put(NODES, made)
    done = take_back(cluster, "a", device_plugin_labels=True)
    assert done == ["remove node.kubernetes.io/npu.chip.name from node a"]
    assert api.objects[NODES]["a"]["metadata"]["labels"] == peoples
    assert api.objects[NODES]["a"]["metadata"]["annotations"] == {"serverType": "x"}


def test_what_the_plugin_wrote_goes_after_its_pod(api, cluster, monkeypatch):
    """It writes its labels when it starts, so a pod that is not gone yet may do so; and the Node is another one by then."""
    made = left_by_the_plugin("a")
    made["metadata"]["labels"]["npuops.ascend/components"] = "enabled"
    del made["metadata"]["labels"]["mind-cluster/npu-chip-memory"]
    api.put(NODES, made)

    def pods_end(*_args):
        assert "servertype" in api.objects[NODES]["a"]["metadata"]["labels"]
        api.objects[NODES]["a"]["metadata"]["labels"]["mind-cluster/npu-chip-memory"] = "64G"
        api.put(NODES, api.objects[NODES]["a"])

    monkeypatch.setattr(withdrawal, "wait_until_gone", pods_end)
    take_back(cluster, "a", device_plugin_labels=True)
    assert api.objects[NODES]["a"]["metadata"]["labels"] == PEOPLES["labels"]


def test_a_node_that_went_meanwhile_has_nothing_of_the_plugins(api, cluster, monkeypatch):
    api.put(NODES, left_by_the_plugin("a"), left_by_the_plugin("b"))
    monkeypatch.setattr(withdrawal, "wait_until_gone", lambda *_args: api.objects[NODES].pop("a") and None)
    done = take_back(cluster, "a", "b", device_plugin_labels=True)
    assert [one.rpartition(" ")[2] for one in done] == ["b"]


READY = {"type": "Ready", "status": "True"}
DRIVER = {"type": "npuops.ascend/DriverReady", "status": "True", "reason": "DriverResponds"}


def conditions(api, name):
    return [one["type"] for one in api.objects[NODES][name]["status"]["conditions"]]


def with_condition(name):
    made = npu_node(name)
    made["status"]["conditions"] = [READY, DRIVER, {"type": "MaintenanceInProgress", "status": "True", "reason": "Firmware"}]
    return made


def test_the_agents_condition_goes_after_its_pod_and_others_stay(api, cluster, monkeypatch):
    """An agent that is still there would write it again."""
    api.put(NODES, with_condition("a"), with_condition("b"))
    seen = []
    monkeypatch.setattr(withdrawal, "wait_until_gone", lambda *_args: seen.append(conditions(api, "a")))
    assert take_back(cluster, "a")[-1] == "remove the condition npuops.ascend/DriverReady from node a"
    assert (DRIVER["type"] in seen[0], conditions(api, "a")) == (True, ["Ready", "MaintenanceInProgress"])
    assert DRIVER["type"] in conditions(api, "b"), "a node that is not of the run"
    assert take_back(cluster, "a") == []


def test_the_agents_condition_stays_while_its_pod_does(api, cluster):
    api.put(NODES, with_condition("a"))
    api.put(PODS, component("slow", "npu-node-agent", "a"))
    with pytest.raises(NpuError, match="did not end"):
        take_back(cluster, "a")
    assert DRIVER["type"] in conditions(api, "a")


def test_check_mode_tells_of_the_condition(api, cluster):
    api.put(NODES, with_condition("a"))
    assert "remove the condition npuops.ascend/DriverReady from node a" in take_back(cluster, "a", check_mode=True)
    assert DRIVER["type"] in conditions(api, "a")


def test_a_condition_that_may_not_be_removed_is_a_failure(api, cluster):
    """It would stay for ever, although no agent updates it any more."""
    api.put(NODES, with_condition("a"))
    api.faults["PATCH", NODES + "/a/status"] = 403, 'nodes "a" is forbidden: cannot patch resource "nodes/status" in API group ""'
    with pytest.raises(NpuError, match="the conditions of a"):
        take_back(cluster, "a")
    assert "npuops.ascend/chip" not in api.objects[NODES]["a"]["metadata"]["labels"], "everything else is done"


def test_the_taints_of_the_chips_of_a_node_go_after_its_agent(api, cluster, monkeypatch):
    api.put(NODES, npu_node("a"), npu_node("b"))
    api.put(RULES, rule("a", "npu-0"), rule("b", "npu-0"))
    seen = []
    monkeypatch.setattr(withdrawal, "wait_until_gone", lambda *_args: seen.append(sorted(api.objects[RULES])))
    assert "delete the DeviceTaintRule a.npu-0.npuops" in take_back(cluster, "a", check_mode=True)
    assert take_back(cluster, "a")[-1] == "delete the DeviceTaintRule a.npu-0.npuops"
    assert seen == [["a.npu-0.npuops", "b.npu-0.npuops"]] and list(api.objects[RULES]) == ["b.npu-0.npuops"]


def test_the_taints_of_chips_stay_while_the_agent_does(api, cluster):
    """It would make them again."""
    api.put(NODES, npu_node("a"))
    api.put(RULES, rule("a", "npu-0"))
    api.put(PODS, component("slow", "npu-node-agent", "a"))
    with pytest.raises(NpuError, match="did not end"):
        take_back(cluster, "a")
    assert api.objects[RULES]
