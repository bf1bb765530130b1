# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DeviceTaintRules for chips that do not serve, with a real API server. The ResourceSlices are made by hand: there is no release of
Huawei's DRA driver."""

from __future__ import annotations

import json

import pytest
import yaml

from support.kube.api import KubeApi
from support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("installed")

RESOURCE = "/apis/resource.k8s.io/v1"
RULES = f"{RESOURCE}/devicetaintrules"
ACCESS = "docs/controller-access-device-taints.yml"
NODES = ("npu-a", "npu-b")
NAME = "npu-a.npu-3.npuops"
KEY = "npuops.ascend/unhealthy"


def published(node: str) -> dict:
    """The ResourceSlice that the driver would make of a node with 8 chips."""
    devices = [
        {"name": f"npu-{number}", "attributes": {"deviceType": {"string": "Ascend910B"}, "physicId": {"int": number}}}
        for number in range(8)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-by-hand"},
        "spec": {"driver": "npu.huawei.com", "nodeName": node, "pool": pool, "devices": devices},
    }


@pytest.fixture(scope="module", autouse=True)
def tainting(lab, installed):
    """Agents that taint chips."""
    lab.kubectl("apply", "-f", ACCESS)
    lab.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(map(published, NODES))}))
    try:
        lab.playbook("install", npu_node_agent_device_taints=True, npu_rollout_max_unavailable="100%")
        yield
    finally:
        lab.fault("npu-a", "clear")
        lab.playbook("install", npu_rollout_max_unavailable="100%")
        lab.kubectl("delete", "resourceslice", *(f"{node}-by-hand" for node in NODES), "--ignore-not-found")
        lab.kubectl("delete", "-f", ACCESS, "--ignore-not-found")


def served(lab) -> bool:
    """Whether this Kubernetes has the API, by default from 1.37 on."""
    return "devicetaintrules" in [one["name"] for one in lab.api.get(RESOURCE)["resources"]]


def rules(lab) -> dict[str, dict]:
    return {item["metadata"]["name"]: item for item in lab.api.get(RULES)["items"]}


@pytest.mark.core
def test_a_chip_that_does_not_serve_is_tainted_without_an_effect(lab):
    """An older Kubernetes lets the agent say why it cannot."""
    assert not served(lab) or rules(lab) == {}
    lab.fault("npu-a", "alarm", "3", "80E18402", "Alarm")
    try:
        if not served(lab):
            logs = ("logs", "-n", "npu-operator", "-l", "app.kubernetes.io/name=npu-node-agent", "--tail=-1")
            lab.wait_for(lambda: "device taints are not possible here" in lab.kubectl(*logs), PATIENCE, "the agent says so")
            return
        lab.wait_for(lambda: rules(lab), PATIENCE, "a rule")
        (rule,) = rules(lab).values()
        assert rule["metadata"]["name"] == NAME
        assert rule["spec"]["deviceSelector"] == {"driver": "npu.huawei.com", "pool": "npu-a", "device": "npu-3"}
        taint = rule["spec"]["taint"]
        assert (taint["key"], taint["value"], taint["effect"]) == (KEY, "80E18402", "None")
        (owner,) = rule["metadata"]["ownerReferences"]
        assert owner["uid"] == lab.node("npu-a")["metadata"]["uid"]

        def told() -> str:
            conditions = rules(lab)[NAME].get("status", {}).get("conditions", [])
            return next((one["message"] for one in conditions if one["type"] == "EvictionInProgress"), "")

        assert "1 published device selected" in lab.wait_for(told, PATIENCE, "Kubernetes says what an effect would do")
    finally:
        lab.fault("npu-a", "clear")
    lab.wait_for(lambda: not rules(lab), PATIENCE, "the rule is gone")


@pytest.fixture
def agent(lab, tmp_path) -> KubeApi:
    """The API as the agent on npu-a has it."""

    def running():
        pods = lab.pods("npu-operator", fieldSelector="spec.nodeName=npu-a,status.phase=Running")
        return [
            pod
            for pod in pods
            if pod["metadata"]["name"].startswith("npu-node-agent") and "deletionTimestamp" not in pod["metadata"]
        ]

    (pod,) = lab.wait_for(running, PATIENCE, "the agent runs on npu-a")
    where = f"/var/lib/kubelet/pods/{pod['metadata']['uid']}/volumes/kubernetes.io~projected/*/token"
    config = yaml.safe_load(lab.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": lab.ssh("npu-a", f"cat {where}").stdout.strip()}
    path = tmp_path / "agent"
    path.write_text(json.dumps(config), encoding="utf-8")
    return KubeApi(path)


def made(node: str = "npu-a", device: str = "npu-3", effect: str = "None", key: str = KEY, **meta) -> dict:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"{node}.{device}.npuops", **meta},
        "spec": {
            "deviceSelector": {"driver": "npu.huawei.com", "pool": node, "device": device},
            "taint": {"key": key, "value": "by-hand", "effect": effect},
        },
    }


OWN, ONLY = (
    "may only change rules about single chips of its own node",
    f"may only change the taint {KEY}, and only without an effect",
)
# Everything of the node, of the driver, and of the cluster.
WIDER = [
    {**made(), "spec": {**made()["spec"], "deviceSelector": selector}}
    for selector in ({"driver": "npu.huawei.com", "pool": "npu-a"}, {"driver": "npu.huawei.com"}, {})
]


@pytest.mark.core
def test_an_agents_token_taints_no_other_node_and_with_no_effect(lab, agent):
    if not served(lab):
        return

    def refused(words: str, method: str, path: str, *body) -> None:
        with pytest.raises(AssertionError, match=": 40[13]|: 422") as error:
            agent.request(method, path, *body)
        assert words in str(error.value), error.value

    for rule in (made("npu-b"), made(name="npu-b.npu-3.npuops"), *WIDER):
        refused(OWN, "POST", RULES, rule)
    for rule in (made(effect="NoExecute"), made(effect="NoSchedule"), made(key="example.com/other")):
        refused(ONLY, "POST", RULES, rule)
    refused("no finalizer", "POST", RULES, made(finalizers=["example.com/never"]))
    refused("cannot delete", "DELETE", RULES)
    refused("cannot update", "PUT", f"{RULES}/{NAME}/status", made())
    agent.request("POST", RULES, made())
    try:
        merge = "application/merge-patch+json"
        refused(ONLY, "PATCH", f"{RULES}/{NAME}", {"spec": {"taint": {"effect": "NoExecute"}}}, merge)
        agent.request("PATCH", f"{RULES}/{NAME}", {"spec": {"taint": {"value": "other"}}}, merge)
        # What a person has made of it, and what others have.
        lab.api.patch(f"{RULES}/{NAME}", {"spec": {"taint": {"effect": "NoSchedule"}}})
        refused(ONLY, "PATCH", f"{RULES}/{NAME}", {"spec": {"taint": {"effect": "None"}}}, merge)
        refused(ONLY, "DELETE", f"{RULES}/{NAME}")
        lab.api.request("POST", RULES, made("npu-b"))
        refused(OWN, "DELETE", f"{RULES}/npu-b.npu-3.npuops")
    finally:
        lab.kubectl("delete", "devicetaintrule", NAME, "npu-b.npu-3.npuops", "--ignore-not-found")


def test_the_rules_go_with_the_setting(lab):
    """One that a person has given an effect stays."""
    if not served(lab):
        return
    lab.fault("npu-a", "alarm", "3,4", "80E18402", "Alarm")
    kept = "npu-a.npu-4.npuops"
    try:
        lab.wait_for(lambda: len(rules(lab)) == 2, PATIENCE, "two rules")
        lab.api.patch(f"{RULES}/{kept}", {"spec": {"taint": {"effect": "NoSchedule"}}})
        result = lab.playbook("install", npu_rollout_max_unavailable="100%")
        assert list(rules(lab)) == [kept], result.stdout
    finally:
        lab.fault("npu-a", "clear")
        lab.kubectl("delete", "devicetaintrule", kept, "--ignore-not-found")
