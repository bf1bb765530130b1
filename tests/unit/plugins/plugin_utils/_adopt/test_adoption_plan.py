# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recognized as another installation, what becomes of it, and what blocks that. Objects are as in upstream's manifests."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import findings as adopt_findings
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import flags, left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.adoption_plan import Plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign

from support.kube.stub import node

SOCKETS = "/var/lib/kubelet/device-plugins"
ARGS = "device-plugin -volcanoType=true -presetVirtualDevice=true -logFile=/var/log/mindx-dl/devicePlugin/devicePlugin.log"
CHIPS = "huawei.com/Ascend910"
FACTS = {
    "chip_count": 8,
    "family": {"name": "910B", "resource": CHIPS, "accelerator": "huawei-Ascend910"},
    "driver": {"tree": "/usr/local/Ascend/driver", "package": "/usr/local/Ascend", "version": "25.5.0"},
    "runtime": {"name": "containerd", "ascend_docker_runtime": ["/etc/containerd/config.toml"]},
}


def daemonset(
    name="ascend-device-plugin-daemonset-910", namespace="kube-system", image="ascend-k8sdeviceplugin:v7.3.0", args=ARGS, **more
):
    metadata = dict({"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}, **more)
    spec = {
        "nodeSelector": {"accelerator": "huawei-Ascend910"},
        "containers": [{"name": "main", "image": image, "command": ["/bin/bash", "-c", "--"], "args": [args]}],
        "volumes": [{"name": "device-plugin", "hostPath": {"path": SOCKETS}}, {"name": "tmp", "hostPath": {"path": "/tmp"}}],
    }
    return {"metadata": metadata, "spec": {"template": {"spec": spec}}, "status": {"desiredNumberScheduled": 1}}


def exporter(name="npu-exporter", namespace="npu-exporter", image="npu-exporter:v7.3.0"):
    item = daemonset(name, namespace, image, "umask 027;npu-exporter -port=8082")
    spec = item["spec"]["template"]["spec"]
    spec["volumes"] = []
    spec["containers"][0]["volumeMounts"] = [{"name": "ascend-driver", "mountPath": "/usr/local/Ascend/driver"}]
    return item


def deployment(name, namespace, image):
    return daemonset(name, namespace, image, "")


def names(items):
    return [item["metadata"]["name"] for item in items]


# --- recognized ---


@pytest.mark.parametrize(
    "name, image",
    [
        ("ascend-device-plugin-daemonset", "ascend-k8sdeviceplugin:v26.1.0"),
        ("ascend-device-plugin3-daemonset-310p-1usoc", "hub/x:1"),
        ("my-npus", "registry.example:5000/mirror/ascend-k8sdeviceplugin@sha256:" + "0" * 64),
        ("my-npus", "projecthami/ascend-device-plugin:v1.2"),
        ("my-npus", "registry.example:5000/npu_device_plugin"),
    ],
)
def test_a_device_plugin_is_recognized_by_name_or_image_wherever_it_is(name, image):
    assert names(mindcluster_foreign.device_plugins([daemonset(name, "anywhere", image)], "npu-operator")) == [name]


def test_a_device_plugin_is_recognized_by_what_it_tolerates():
    item = daemonset("chips", image="hub/own:1")
    assert mindcluster_foreign.device_plugins([item], "npu-operator") == []
    item["spec"]["template"]["spec"]["tolerations"] = [{"key": CHIPS, "operator": "Exists"}]
    assert mindcluster_foreign.device_plugins([item], "npu-operator") == [item]


def test_what_is_none():
    gpu = daemonset("nvidia-device-plugin", image="nvcr.io/nvidia/k8s-device-plugin:v1")
    no_sockets = daemonset()
    no_sockets["spec"]["template"]["spec"]["volumes"] = []
    ours = daemonset("ascend-device-plugin-daemonset", "npu-operator")
    bare = {"metadata": {"name": "x", "namespace": "y", "uid": "z"}, "spec": {"template": {"spec": {}}}}
    assert mindcluster_foreign.device_plugins([gpu, no_sockets, ours, exporter(), bare], "npu-operator") == []
    assert mindcluster_foreign.our_device_plugins([gpu, no_sockets, ours, bare], "npu-operator") == [ours]


def test_one_in_our_namespace_with_another_name_is_not_ours():
    assert len(mindcluster_foreign.device_plugins([daemonset(namespace="npu-operator")], "npu-operator")) == 1


def test_exporters():
    ours = exporter(namespace="npu-operator")
    other = exporter("metrics", "monitoring", "hub/npu-exporter:v26.1.0")
    assert mindcluster_foreign.exporters([exporter(), ours, other, daemonset()], "npu-operator") == [exporter(), other]


@pytest.mark.parametrize(
    "name, image",
    [("npu-exporter-billing", "hub/billing:1"), ("cost", "hub/npu-exporter-proxy:2"), ("npu-exporter", "npu-exporter:1")],
)
@pytest.mark.parametrize("uses", [{}, {"securityContext": None}, {"securityContext": {"privileged": False}, "volumeMounts": None}])
def test_what_is_only_called_an_exporter(name, image, uses):
    """A tenant's DaemonSet that reads no chips is not taken off its nodes, whatever it is called."""
    item = exporter(name, "tenant", image)
    container = item["spec"]["template"]["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "data", "mountPath": "/usr/local/Ascend-data"}]
    container.update(uses)
    assert mindcluster_foreign.exporters([item], "npu-operator") == []
    container["securityContext"] = {"privileged": True}
    assert mindcluster_foreign.exporters([item], "npu-operator") == [item]


def restricted(item, expression):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    item["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return item


def test_set_aside_is_what_runs_nowhere():
    item = restricted(
        daemonset(annotations={mindcluster_foreign.ANNOTATION_ADOPTION: "{}"}, generation=3), mindcluster_foreign.ASIDE
    )
    item["status"] = {"observedGeneration": 3, "desiredNumberScheduled": 0, "currentNumberScheduled": 0}
    assert mindcluster_foreign.is_set_aside(item)
    for status in ({"observedGeneration": 2}, {"desiredNumberScheduled": 1}, {"currentNumberScheduled": 1}):
        assert not mindcluster_foreign.is_set_aside(dict(item, status={**item["status"], **status}))
    assert not mindcluster_foreign.is_set_aside(dict(item, metadata=dict(item["metadata"], annotations={})))
    # All nodes have begun to move, and may come back.
    assert not mindcluster_foreign.is_set_aside(restricted(item, left_daemonset.MOVING))


# --- flags ---


@pytest.mark.parametrize(
    "text, found",
    [
        ("device-plugin -volcanoType=true", {"volcanoType": "true"}),
        ("device-plugin --volcanoType -logLevel=0", {"volcanoType": "true", "logLevel": "0"}),
        ("umask 027;x -shareDevCount=4;y", {"shareDevCount": "4"}),
        ("x --enable-healthz=true", {"enable-healthz": "true"}),
        ("x-volcanoType=true", {}),
        ("", {}),
        ("-a=" + "b" * 100000, {}),
    ],
)
def test_flags(text, found):
    assert flags.of(daemonset(args=text)) == found


def test_what_would_differ_is_told():
    told = flags.conflicts(daemonset(), {})
    assert told == [
        "it runs with what npu_device_plugin_volcano: true does, and npu_device_plugin_volcano is false. Set it alike, and change it after"
        " the adoption if you want to"
    ]
    assert flags.conflicts(daemonset(), {"volcano": True}) == []
    assert flags.conflicts(daemonset(args="x -shareDevCount=4"), {"share_count": "4"}) == []
    assert "npu_device_plugin_share_count is 1" in flags.conflicts(daemonset(args="x -shareDevCount=4"), {})[0]
    assert flags.conflicts(daemonset(args="x -shareDevCount=\u00b2"), {"volcano": "false"}) == []
    assert "npu_device_plugin_hot_reset: training-offline" in flags.conflicts(daemonset(args="x -hotReset=2"), {})[0]
    # Go takes the next word for the value, except of boolean flags.
    assert "npu_device_plugin_hot_reset: training-offline" in flags.conflicts(daemonset(args="x -hotReset 2 -logLevel=0"), {})[0]
    assert flags.conflicts(daemonset(args="x --shareDevCount 4 -volcanoType=false"), {"share_count": 4}) == []
    assert "does not support" in flags.conflicts(daemonset(args="x -presetVirtualDevice=false"), {})[0]
    assert "does not support" in flags.conflicts(daemonset(args="x -use310PMixedInsert=true"), {})[0]


# --- the cluster ---


def look(*daemonsets, deployments=(), back=False):
    return adopt_findings.Survey(list(daemonsets), list(deployments), "npu-operator", {"volcano": True}, back)


def test_what_becomes_of_each_object():
    clusterd = deployment("clusterd", "mindx-dl", "clusterd:v7.3.0")
    noded = exporter("noded", "mindx-dl", "hub/noded:v7.3.0")
    found = look(
        daemonset(), exporter(), noded, daemonset("web", "x", "nginx"), deployments=[clusterd, deployment("web", "x", "nginx")]
    )
    assert found.rows() == [
        (
            "DaemonSet kube-system/ascend-device-plugin-daemonset-910",
            "device plugin ascend-k8sdeviceplugin:v7.3.0, 1 node",
            "replaced",
        ),
        ("DaemonSet npu-exporter/npu-exporter", "exporter npu-exporter:v7.3.0, 1 node", "replaced"),
        ("DaemonSet mindx-dl/noded", "noded", "kept"),
        ("Deployment mindx-dl/clusterd", "clusterd", "kept"),
    ]
    assert found.conflicts == [] and found.notes == []


@pytest.mark.parametrize(
    "metadata, keeper",
    [
        ({"ownerReferences": [{"kind": "NPUClusterPolicy", "name": "cluster", "controller": True}]}, "NPUClusterPolicy cluster"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "npus:apps/DaemonSet:x"}}, "the Argo CD application npus"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "npus"}}, "the Flux Kustomization npus"),
        ({"labels": {"addonmanager.kubernetes.io/mode": "Reconcile"}}, "the addon manager of Kubernetes"),
        ({"annotations": {"objectset.rio.cattle.io/owner-name": "npus"}}, "the addon npus of k3s, RKE2 or Rancher"),
        ({"labels": {"olm.owner": "npu-operator.v1"}}, "the OLM operator npu-operator.v1"),
    ],
)
def test_who_would_put_it_back_is_a_conflict(metadata, keeper):
    operator = deployment("npu-operator-controller-manager", "npu-operator-system", "cr.openfuyao.cn/openfuyao/npu-operator:1.2")
    found = look(daemonset(**metadata), deployments=[operator])
    (told,) = found.conflicts
    assert f"it is managed by {keeper}, which would undo what adoption changes" in told
    assert "Deployment npu-operator-system/npu-operator-controller-manager is its operator" in told
    assert found.rows()[0][2] == "conflict"


def test_helm_is_a_note():
    found = look(daemonset(annotations={"meta.helm.sh/release-name": "mindcluster"}))
    assert found.conflicts == [] and "with the release mindcluster" in found.notes[0]


def test_what_is_read_is_cut_and_on_one_line():
    found = look(daemonset(image="ascend-k8sdeviceplugin:v1\n" + "{{ x }}" * 100))
    (row,) = found.rows()
    assert "\n" not in row[1] and len(row[1]) < 200


def test_many_objects_are_counted():
    found = look(*(exporter("noded", f"ns-{number}", "noded:1") for number in range(150)))
    assert len(found.rows()) == 101 and found.rows()[-1][0] == "and 50 more"


# --- the nodes ---


def pod_of(item, on, ready=True):
    metadata = {"name": "p-" + on, "namespace": item["metadata"]["namespace"], "uid": "uid-p-" + on}
    metadata["ownerReferences"] = [
        {"kind": "DaemonSet", "name": item["metadata"]["name"], "uid": item["metadata"]["uid"], "controller": True}
    ]
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": metadata, "spec": {"nodeName": on, "containers": []}, "status": {"conditions": conditions}}


def plan(offered="8", labels=None, annotations=None, pods=None, facts=None, back=False, host=None, plugin=None):
    plugin = plugin or daemonset()
    found = look(plugin, back=back)
    labels = dict({"accelerator": "huawei-Ascend910"}, **(labels or {}))
    nodes = {"a": node("a", labels=labels, annotations=annotations, allocatable={CHIPS: offered, "cpu": "4"})}
    asked = dict({"name": "host-a", "facts": copy.deepcopy(facts or FACTS), "config": {"node_name": "a"}}, **(host or {}))
    return Plan(found, [asked], nodes, [pod_of(plugin, "a")] if pods is None else pods, back)


def test_a_node_that_moves():
    made = plan()
    assert made.conflicts == [] and made.due == ["a"]
    assert made.nodes[0].row() == (
        "a", "8 x 910B", "25.5.0 (.run)", "containerd, ascend-docker-runtime", "running", "8 " + CHIPS, "0", "moves",
    )  # fmt: skip
    assert "ascend-docker-runtime" in "\n".join(made.lines([]))


@pytest.mark.parametrize(
    "options, action",
    [
        ({"pods": []}, "conflict"),  # something unknown offers chips
        ({"pods": [], "offered": "0"}, "joins"),
        ({"pods": [], "labels": {"npuops.ascend/components": "enabled", "npuops.ascend/adopted": "true"}}, "has moved"),
        ({"pods": [], "labels": {"npuops.ascend/components": "enabled", "accelerator": "other"}}, "stays"),
        ({"pods": [], "offered": "0", "annotations": {mindcluster_foreign.ANNOTATION_ADOPTION: "{}"}}, "continues to move"),
        ({"labels": {"npuops.ascend/components": "paused"}}, "is paused"),
        ({"facts": {"chip_count": 0}}, "no chip"),
        ({"facts": {"chip_count": 0}, "host": {"config": {"node_name": "a", "chips": 8}}}, "conflict"),
        ({"back": True, "labels": {"npuops.ascend/components": "enabled"}}, "returns"),
        ({"back": True, "annotations": {mindcluster_foreign.ANNOTATION_ADOPTION: "{}"}}, "returns"),
        ({"back": True}, "stays"),
        ({"back": True, "labels": {"npuops.ascend/components": "enabled", "accelerator": "other"}}, "stays"),
    ],
)
def test_what_becomes_of_a_node(options, action):
    assert plan(**options).nodes[0].action == action


@pytest.mark.parametrize(
    "options, told",
    [
        ({"pods": []}, "none of the device plugins that were found runs there"),
        ({"pods": [pod_of(daemonset(), "a", ready=False)]}, "there would be no way back"),
        (
            {"offered": "16"},
            "its node offers 16 huawei.com/Ascend910, and would offer 8 huawei.com/Ascend910 afterwards. If these are virtual NPUs,"
            " let their pods end and destroy them with npu-smi set -t destroy-vnpu;",
        ),
        ({"labels": {"npuops.ascend/components": "enabled"}}, "and another device plugin"),
        ({"annotations": {"npuops.ascend/maintenance": "{}"}}, "its node is in maintenance"),
        ({"host": {"error": "timed out", "unreachable": True, "facts": None}}, "timed out"),
        (
            {"facts": dict(FACTS, chip_count=0, family=None, chips_before={"count": 8, "gone": [], "boot": None})},
            "0 of 8 chips are on the PCI bus",
        ),
        ({"facts": dict(FACTS, problems=["The driver was installed by a .run package: set preinstalled"])}, "set preinstalled"),
    ],
)
def test_what_is_in_the_way_of_a_node(options, told):
    (conflict,) = plan(**options).conflicts
    assert conflict.startswith("host-a: ") and told in conflict


def test_shared_chips_that_stay_shared_are_not_in_the_way():
    plugin = daemonset(args="x -volcanoType=true -shareDevCount=2")
    shared = pod_of(plugin, "a")
    shared["spec"] = dict(plugin["spec"]["template"]["spec"], nodeName="a")
    assert not [told for told in plan("16", pods=[shared], plugin=plugin).conflicts if "would offer" in told]


def test_the_same_conflict_is_told_once():
    found = look(daemonset())
    nodes = {name: node(name, allocatable={CHIPS: "8"}) for name in ("a", "b")}
    asked = [{"name": name, "facts": FACTS, "config": {}} for name in nodes]
    (told,) = Plan(found, asked, nodes, [], False).conflicts
    assert told.startswith("a, b: ")


def test_nothing_to_adopt_is_told():
    found = adopt_findings.Survey([], [], "npu-operator", {}, False)
    assert Plan(found, [], {}, [], False).lines([]) == [
        "The cluster has no other device plugin or exporter: there is nothing to adopt."
    ]
