# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an attacker can do with a token from one NPU node: the tokens that the pods of the device plugin and the node agent have."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from support.kube.api import KubeApi

pytestmark = [pytest.mark.usefixtures("installed"), pytest.mark.core]

NAMESPACE = "npu-operator"
HERE, ELSEWHERE = "npu-a", "npu-b"
NODE = "/api/v1/nodes/%s"
MERGE = "application/merge-patch+json"
PLUGIN, AGENT = "ascend-device-plugin", "npu-node-agent"


def component(lab, name, node):
    """The running pod of a component."""

    def running():
        pods = lab.pods(NAMESPACE, fieldSelector=f"spec.nodeName={node},status.phase=Running")
        return [pod for pod in pods if pod["metadata"]["name"].startswith(name) and "deletionTimestamp" not in pod["metadata"]]

    return lab.wait_for(running, 60, f"{node}: a pod of {name}")[0]


@pytest.fixture
def token(lab):
    """token(component): the very token that the kubelet of HERE gave its pod."""

    def read(name):
        uid = component(lab, name, HERE)["metadata"]["uid"]
        return lab.ssh(HERE, f"cat /var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~projected/*/token").stdout.strip()

    return read


@pytest.fixture
def api(lab, token, tmp_path):
    """api(component): the API as that component's pod on HERE has it."""

    def connect(name):
        config = yaml.safe_load(lab.kubeconfig.read_text(encoding="utf-8"))
        config["users"][0]["user"] = {"token": token(name)}
        path = tmp_path / name
        path.write_text(json.dumps(config), encoding="utf-8")
        return KubeApi(path)

    return connect


def refused(answer, *words):
    """The API server says no, and in these words."""
    with pytest.raises(AssertionError, match=": 40[13]|: 422") as error:
        answer()
    for word in words:
        assert word in str(error.value)


def meta(**fields):
    return {"metadata": fields}


@pytest.fixture(params=["", "/status"])
def subresource(request):
    """Labels and annotations of a node can also be written through its status."""
    return request.param


def test_plugin_changes_no_other_node(api, subresource):
    plugin = api(PLUGIN)
    for body in (meta(annotations={"npu.openfuyao.com/approve-reboot": "true"}), meta(labels={"servertype": "x"})):
        refused(lambda body=body: plugin.patch(NODE % ELSEWHERE + subresource, body), "may only change its own node")


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": {"npu.openfuyao.com/approve-reboot": "true"}},
        {"annotations": {"npuops.ascend/maintenance": "{}"}},
        {"annotations": {"npuops.ascend/wedged": "{}"}},
        {"labels": {"npu.openfuyao.com/reboot-required": "true"}},
        {"labels": {"npu.openfuyao.com/driver-upgrade-state": "done"}},
        {"labels": {"npuops.ascend/components": "paused"}},
        {"labels": {"node-role.kubernetes.io/control-plane": ""}},
        {"labels": {"accelerator": None}},
        {"finalizers": ["example.com/never"]},
    ],
)
def test_plugin_changes_nothing_of_ours_on_its_node(api, subresource, change):
    refused(lambda: api(PLUGIN).patch(NODE % HERE + subresource, meta(**change)), "a device plugin may only change")


def test_plugin_changes_neither_spec_nor_status_of_its_node(api):
    plugin = api(PLUGIN)
    refused(lambda: plugin.patch(NODE % HERE, {"spec": {"unschedulable": True}}), "labels and annotations")
    address = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}
    refused(lambda: plugin.patch(NODE % HERE + "/status", address), "labels and annotations")


@pytest.fixture
def pods(lab):
    """A pod with a chip on each of the two nodes, running."""
    made = {}
    for node in (HERE, ELSEWHERE):
        name = "tokens-" + node
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "tokens"}},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "terminationGracePeriodSeconds": 0,
                "imagePullSecrets": [{"name": "lab-registry"}],
                "containers": [
                    {
                        "name": "main",
                        "image": lab.variable("npu_driver_repository").split("/")[0] + "/lab/test:lab",
                        "command": ["sleep", "3600"],
                        "resources": {"limits": {"huawei.com/Ascend910": 1}},
                    }
                ],
            },
        }
        lab.kubectl("delete", "pod", name, "--ignore-not-found", "--wait=true")
        lab.kubectl("create", "-f", "-", stdin=json.dumps(pod))
        made[node] = f"/api/v1/namespaces/default/pods/{name}"
    for node in made:
        lab.wait_for(lambda node=node: lab.pod("tokens-" + node)["status"]["phase"] == "Running", 120, f"a pod runs on {node}")
    yield made
    for node in made:
        lab.kubectl("delete", "pod", "tokens-" + node, "--ignore-not-found", "--wait=true")


def test_plugin_changes_pods_of_its_node_only_and_little_of_them(lab, api, pods):
    plugin = api(PLUGIN)
    chips = meta(annotations={"huawei.com/AscendReal": "Ascend910-7"})
    refused(lambda: plugin.patch(pods[ELSEWHERE], chips), "may only change pods of its own node")
    for change in (
        {"labels": {"app": "other"}},
        {"finalizers": ["example.com/never"]},
        {"annotations": {"npuops.ascend/skip": "true"}},
    ):
        refused(lambda change=change: plugin.patch(pods[HERE], meta(**change)), "a device plugin may only change")
    image = {"op": "replace", "path": "/spec/containers/0/image", "value": "example.com/other"}
    refused(
        lambda: plugin.request("PATCH", pods[HERE], [image], "application/json-patch+json"), "may only change annotations of pods"
    )
    # Its actual work succeeds, on both nodes.
    for node in pods:
        lab.wait_for(
            lambda node=node: "huawei.com/AscendReal" in (lab.pod("tokens-" + node)["metadata"].get("annotations") or {}),
            60,
            f"the plugin of {node} says which chip its pod has",
        )


def test_plugin_writes_no_config_map_but_its_own(lab, api):
    plugin = api(PLUGIN)
    refused(
        lambda: plugin.patch("/api/v1/namespaces/kube-system/configmaps/mindx-dl-deviceinfo-" + ELSEWHERE, {"data": {"x": "y"}})
    )
    path = "/api/v1/namespaces/%s/configmaps"
    other = lab.api.get(path % "kube-system" + "/mindx-dl-deviceinfo-" + ELSEWHERE)
    refused(
        lambda: plugin.request("PUT", path % "kube-system" + "/mindx-dl-deviceinfo-" + ELSEWHERE, other),
        "may only write the ConfigMap mindx-dl-deviceinfo of its own node",
    )
    for namespace, name in (("kube-system", "kube-root"), ("default", "mindx-dl-deviceinfo-" + HERE)):
        new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}
        refused(
            lambda new=new, namespace=namespace: plugin.request("POST", path % namespace, new),
            "may only write the ConfigMap mindx-dl-deviceinfo of its own node",
        )


def test_plugin_asks_for_no_reboot(api):
    plugin = api(PLUGIN)

    def event(name, reason, namespace="kube-system", kind="Node"):
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "x-", "namespace": namespace},
            "reason": reason,
            "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
            "source": {"host": HERE},
        }
        return plugin.request("POST", f"/api/v1/namespaces/{namespace}/events", body)

    assert event(HERE, "FaultOccur")
    # This is how upstream's plugin spells the kind.
    assert event("ascend-device-plugin-daemonset-abcde", "Occur", kind="pod")
    refused(lambda: event("coredns-abcde", "Occur", kind="pod"), "may only create events")
    refused(lambda: event("ascend-device-plugin-daemonset-abcde", "RebootRequired", kind="pod"), "may not request a reboot")
    refused(lambda: event(HERE, "RebootRequired"), "may not request a reboot")
    refused(lambda: event(HERE, "RebootRequired", "default"), "its own node")
    refused(lambda: event(ELSEWHERE, "FaultOccur"), "may only create events")


def test_plugin_asks_kubelets_for_pods_and_nothing_else(lab, token):
    """nodes/proxy would let it run commands in any pod of any node."""
    address = next(entry["address"] for entry in lab.node(HERE)["status"]["addresses"] if entry["type"] == "InternalIP")
    bearer = token(PLUGIN)

    def status(path):
        return lab.ssh(
            HERE,
            f"curl -sk --max-time 10 -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {bearer}'"
            f" 'https://{address}:10250{path}'",
        ).stdout

    others = "/configz", "/exec/npu-operator/x/y?command=id", "/containerLogs/a/b/c", "/metrics"
    # A kubelet remembers for five minutes what it was told of a right that was taken back.
    lab.wait_for(lambda: [status(path) for path in others] == ["403"] * 4, 400, "the kubelet refuses everything else", 10)
    assert status("/pods") == "200"


def test_plugin_does_its_work(lab):
    """A restarted plugin writes its labels, annotations and ConfigMap again; nothing it writes is refused."""
    before = lab.node(HERE)["metadata"]
    wanted = {key for key in before["labels"] if key == "servertype" or "npu.chip.name" in key or key.startswith("mind-cluster/")}
    assert len(wanted) == 3 and "baseDeviceInfos" in before["annotations"]
    lab.kubectl("label", "node", HERE, *(key + "-" for key in sorted(wanted)))
    lab.kubectl("annotate", "node", HERE, "baseDeviceInfos-")
    lab.kubectl("delete", "configmap", "-n", "kube-system", "mindx-dl-deviceinfo-" + HERE)
    lab.kubectl("delete", "pod", "-n", NAMESPACE, component(lab, PLUGIN, HERE)["metadata"]["name"])
    lab.wait_for(lambda: wanted <= set(lab.node(HERE)["metadata"]["labels"]), 60, "the labels of the plugin are back")
    assert lab.node(HERE)["metadata"]["annotations"]["baseDeviceInfos"] == before["annotations"]["baseDeviceInfos"]

    def names():
        return [item["metadata"]["name"] for item in lab.get("configmap", "-n", "kube-system")["items"]]

    lab.wait_for(lambda: "mindx-dl-deviceinfo-" + HERE in names(), 60, "the plugin's ConfigMap is back")
    log = lab.kubectl("logs", "-n", NAMESPACE, component(lab, PLUGIN, HERE)["metadata"]["name"])
    assert not re.search("forbidden|denied", log), log
    lab.wait_for(lambda: lab.node(HERE)["status"]["allocatable"].get("huawei.com/Ascend910") == "8", 60, "the chips are back")


@pytest.mark.parametrize(
    "node, change, words",
    [
        (ELSEWHERE, {"annotations": {"npuops.ascend/wedged": "{}"}}, "may only change its own node"),
        (
            HERE,
            {"annotations": {"npu.openfuyao.com/approve-reboot": "true"}},
            "may only change the annotation npuops.ascend/wedged",
        ),
        (HERE, {"labels": {"npuops.ascend/components": "paused"}}, "may only change the label npu.openfuyao.com/reboot-required"),
        (HERE, {"finalizers": ["example.com/never"]}, "labels and annotations"),
        (
            HERE,
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "0"}]},
            "labels and annotations",
        ),
    ],
)
def test_agent_changes_little_of_its_node_and_nothing_of_others(api, subresource, node, change, words):
    refused(lambda: api(AGENT).patch(NODE % node + subresource, meta(**change)), words)


CONDITION, CHIPS, NETWORK = KINDS = tuple("npuops.ascend/" + name for name in ("DriverReady", "ChipsHealthy", "NetworkReady"))
ONLY = f"may only change the conditions {CONDITION}, {CHIPS} and {NETWORK} in the status"
STRATEGIC = "application/strategic-merge-patch+json"


def verdict(kind=CONDITION, **fields):
    return dict({"type": kind, "status": "False", "reason": "Broken", "message": "by hand"}, **fields)


@pytest.fixture
def agents(api):
    """agents(change, content_type=..., node=...): a patch of a Node's status with the agent's token. A dry run goes through the
    same admission, and leaves the Node alone."""
    agent = api(AGENT)

    def patch(change, content_type=STRATEGIC, node=HERE):
        return agent.request("PATCH", NODE % node + "/status?dryRun=All", change, content_type)

    return patch


def told(node):
    return {one["type"]: one["reason"] for one in node["status"]["conditions"]}


def test_agent_writes_and_removes_its_conditions(lab, agents):
    lab.wait_for(lambda: CONDITION in told(lab.node(HERE)), 60, "the agent tells whether the driver works")
    before = told(lab.node(HERE))
    written = agents({"status": {"conditions": [verdict(kind) for kind in KINDS]}})
    assert told(written) == {**before, **dict.fromkeys(KINDS, "Broken")}
    removed = agents({"status": {"conditions": [{"type": kind, "$patch": "delete"} for kind in KINDS]}})
    assert told(removed) == {kind: reason for kind, reason in before.items() if kind not in KINDS}


def test_agent_writes_no_condition_of_another_node(agents):
    refused(lambda: agents({"status": {"conditions": [verdict()]}}, node=ELSEWHERE), "may only change its own node")


@pytest.mark.parametrize(
    "conditions",
    [
        [verdict("Ready", status="True")],
        [verdict(), verdict("MemoryPressure", status="True")],
        [verdict("MaintenanceInProgress", status="True", reason="NpuDriverUpgrade")],
        [verdict("npuops.ascend/Other")],
        [{"type": "Ready", "$patch": "delete"}],
        [{"$patch": "replace"}, verdict()],
    ],
)
def test_agent_changes_no_condition_of_others(agents, conditions):
    refused(lambda: agents({"status": {"conditions": conditions}}), ONLY)


def test_agents_condition_has_a_size(lab, agents):
    limit = "at most 128 characters of reason and 1024 of message"
    assert agents({"status": {"conditions": [verdict(reason="R" * 128, message="m" * 1024)]}})
    refused(lambda: agents({"status": {"conditions": [verdict(message="m" * 1025)]}}), limit)
    refused(lambda: agents({"status": {"conditions": [verdict(reason="R" * 129)]}}), limit)
    refused(lambda: agents({"status": {"conditions": [verdict(), verdict(CHIPS, message="m" * 1025)]}}), limit)
    for kind in KINDS:
        others = [one for one in lab.node(HERE)["status"]["conditions"] if one["type"] != kind]
        refused(
            lambda kind=kind, others=others: agents({"status": {"conditions": [*others, verdict(kind), verdict(kind)]}}, MERGE),
            "may exist once",
        )


def test_agent_changes_no_field_of_the_status_that_is_there(lab, agents):
    """Whatever this Kubernetes has: each goes, and each is another."""
    fields = sorted(set(lab.node(HERE)["status"]) - {"conditions"})
    assert {"addresses", "allocatable", "capacity", "daemonEndpoints", "images", "nodeInfo"} <= set(fields)
    for field in fields:
        refused(lambda field=field: agents([{"op": "remove", "path": "/status/" + field}], "application/json-patch+json"), ONLY)
    own = {"conditions": [verdict()]}
    for change in (
        {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
        {"allocatable": {"huawei.com/Ascend910": "80"}},
        {"capacity": {"example.com/new": "1"}},
        {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}},
        {"images": [{"names": ["example.com/image:1"], "sizeBytes": 1}]},
        {"nodeInfo": {"bootID": "00000000-0000-0000-0000-000000000000"}},
    ):
        for status in (change, {**own, **change}):
            refused(lambda status=status: agents({"status": status}), ONLY)


def test_agent_adds_no_field_to_the_status(lab, agents):
    """Fields that the Node has not, or that this Kubernetes does not know: refused, or nothing comes of them."""
    before = lab.node(HERE)
    for change in (
        {"phase": "Terminated"},
        {"volumesInUse": ["kubernetes.io/csi/example"]},
        {"volumesAttached": [{"name": "kubernetes.io/csi/example", "devicePath": "/dev/x"}]},
        {"config": {"error": "x"}},
        {"runtimeHandlers": [{"name": "example"}]},
        {
            "features": {
                "supplementalGroupsPolicy": before["status"].get("features", {}).get("supplementalGroupsPolicy") is not True
            }
        },
        {"declaredFeatures": ["Example"]},
    ):
        (field,) = change
        try:
            after = agents({"status": change})
        except AssertionError as error:
            assert ONLY in str(error) or ": 422" in str(error), (field, error)
        else:
            assert after["status"].get(field) == before["status"].get(field), field


def test_the_expressions_of_policies_have_no_warnings(lab):
    """The controller manager compiles each with the types of the API."""
    for name in ("npuops-node-agent-nodes", "npuops-node-agent-taints", "npuops-device-plugin-nodes"):

        def checked(name=name):
            status = lab.get("validatingadmissionpolicy", name).get("status") or {}
            return status if "observedGeneration" in status else None

        warnings = (lab.wait_for(checked, 60, f"{name} is checked").get("typeChecking") or {}).get("expressionWarnings")
        assert not warnings, (name, warnings)
