# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""clusterd and noded: the fault of a node reaches schedulers. They change and go back by themselves, and leave nothing.

The roles alone, which is what install runs: the fleet is installed, and nothing else is to change.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml

from support.kube.api import KubeApi
from support.lab.roles import Roles, changed
from support.paths import CHECKOUT
from support.patience import PATIENCE

KINDS = str(CHECKOUT / "lab" / "files" / "volcano-kinds.yml")
ENABLED = {"npu_clusterd_enabled": True, "npu_noded_enabled": True, "npu_rollout_max_unavailable": "100%"}
CLUSTERD = "/apis/apps/v1/namespaces/mindx-dl/deployments/clusterd"
NODED = "/apis/apps/v1/namespaces/npu-operator/daemonsets/noded"
CONFIGMAPS = "/api/v1/namespaces/mindx-dl/configmaps"
# What the lab's noded takes for the BMC; the fault of a CPU for which nothing may run on the node.
BMC, FAULT = "/dev/ipmi0", "2C000031"

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(name="both", scope="module")
def fixture_both(lab, tmp_path_factory):
    roles = Roles(lab, tmp_path_factory.mktemp("roles"), "npu_clusterd", "npu_noded")
    lab.kubectl("apply", "-f", KINDS)
    yield roles.run
    lab.ssh("npu-a", f"rm -f {BMC}")
    roles.run(removed=True)
    lab.kubectl("delete", "-f", KINDS, "--ignore-not-found")


def template(lab, path) -> dict:
    return lab.api.get(path)["spec"]["template"]["spec"]


def images(lab) -> dict[str, str]:
    return {path: template(lab, path)["containers"][0]["image"] for path in (CLUSTERD, NODED)}


def working(lab) -> set[str]:
    """Where noded's pods are Ready."""
    ready = {"type": "Ready", "status": "True"}
    return {
        pod["spec"]["nodeName"]
        for pod in lab.pods("npu-operator", labelSelector="app=noded")
        if any(ready.items() <= condition.items() for condition in pod["status"].get("conditions", []))
        and "deletionTimestamp" not in pod["metadata"]
    }


def node_status(lab) -> str | None:
    """What schedulers read of npu-a."""
    known = json.loads(lab.api.get(f"{CONFIGMAPS}/cluster-info-node-cm")["data"]["cluster-info-node-cm"])
    return known.get("mindx-dl-nodeinfo-npu-a", {}).get("NodeStatus")


def test_a_second_run_changes_nothing(lab, both):
    assert changed(both(**ENABLED)) == 2
    lab.wait_for(lambda: working(lab) == {"npu-a", "npu-b", "npu-c"}, PATIENCE, "noded on all nodes with chips")
    assert changed(both(**ENABLED)) == 0


def test_the_fault_of_a_node_reaches_schedulers_and_goes(lab, both):
    for codes, status in ((FAULT, "UnHealthy"), ("", None)):
        lab.ssh("npu-a", f"echo '{codes}' >{BMC}")
        lab.wait_for(lambda wanted=status: node_status(lab) == wanted, PATIENCE, f"the status {status}")


@pytest.fixture(name="noded")
def fixture_noded(lab, tmp_path):
    return as_noded(lab, tmp_path)


def as_noded(lab, tmp_path):
    """The API as noded on npu-a has it: with the very token that the kubelet gave its pod, and that ends with the pod."""
    pods = lab.pods("npu-operator", labelSelector="app=noded", fieldSelector="spec.nodeName=npu-a,status.phase=Running")
    (uid,) = [pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    token = lab.ssh("npu-a", f"cat /var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~projected/*/token").stdout.strip()
    config = yaml.safe_load(lab.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return KubeApi(path)


@pytest.mark.parametrize(
    ("path", "annotation", "why"),
    [
        ("/api/v1/nodes/npu-b", "product-serial-number", "noded may only change its own node"),
        ("/api/v1/nodes/npu-a", "npu.openfuyao.com/approve-reboot", "noded may only change the annotation product-serial-number"),
        (f"{CONFIGMAPS}/cluster-info-node-cm", "x", ": 403"),
        ("/api/v1/nodes/npu-a", "product-serial-number", None),
    ],
)
def test_noded_changes_nothing_but_what_it_reports(noded, both, path, annotation, why):
    """Of nodes and ConfigMaps; RBAC alone would let it approve the reboot of any node."""
    body = {"metadata": {"annotations": {annotation: "1"}}}
    if why is None:
        noded.patch(path, body)
        noded.patch(path, {"metadata": {"annotations": {annotation: None}}})
        return
    with pytest.raises(AssertionError, match=why):
        noded.patch(path, body)


def test_noded_deletes_no_report_of_another_node(noded, both):
    with pytest.raises(AssertionError, match="noded may only write about its own node"):
        noded.request("DELETE", f"{CONFIGMAPS}/cluster-info-node-cm")


def test_noded_writes_reports_of_slow_nodes_and_nothing_else(lab, both, tmp_path):
    """Where it may write in the namespaces of jobs, an application's ConfigMap is not what root on one NPU node can write."""
    changed(both(**ENABLED, npu_noded_profiling_dir="/user/cluster-info/profiling"))
    noded = as_noded(lab, tmp_path)
    there = "/api/v1/namespaces/default/configmaps"
    name, key = "slow-node-algo-result-job-0", "NodeSlowNodeAlgoResult"

    def report(name=name, key=key, label="fd-ol-slow-node"):
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {label: "true"}}, "data": {key: "1"}}

    for body in (report(name="settings"), report(key="settings.yml"), report(label="app")):
        with pytest.raises(AssertionError, match="noded may only write about its own node, and reports of slow nodes"):
            noded.request("POST", there, body)
    with pytest.raises(AssertionError, match="noded may only write about its own node"):
        noded.request("POST", "/api/v1/namespaces/kube-system/configmaps", report())
    lab.api.request("POST", there, report(label="app"))
    try:
        with pytest.raises(AssertionError, match="noded may only write about its own node"):
            noded.request("PUT", f"{there}/{name}", report())
        with pytest.raises(AssertionError, match="noded may only write about its own node"):
            noded.request("DELETE", f"{there}/{name}")
    finally:
        lab.api.request("DELETE", f"{there}/{name}")
    noded.request("POST", there, report())
    noded.request("PUT", f"{there}/{name}", report())
    noded.request("DELETE", f"{there}/{name}")
    changed(both(**ENABLED))


@pytest.mark.parametrize(("part", "path"), [("clusterd", CLUSTERD), ("noded", NODED)])
def test_an_image_that_does_not_exist_returns(lab, both, part, path):
    before = images(lab)
    bad = re.sub(r":[^:/]+$", ":v26.1.9", before[path])
    result = both(check=False, **ENABLED, **{f"npu_{part}_image": bad})
    text = " ".join(result.stdout.split())
    assert result.returncode != 0
    assert bad in text and "cannot get its image" in text
    assert images(lab) == before
    lab.wait_for(lambda: working(lab) == {"npu-a", "npu-b", "npu-c"}, PATIENCE, "the previous noded on all nodes")


def test_without_them_nothing_is_left(lab, both):
    lab.ssh("npu-a", f"echo {FAULT} >{BMC}")
    lab.wait_for(lambda: node_status(lab) == "UnHealthy", PATIENCE, "a report to remove")
    lab.playbook("install")
    kinds = "deployments,daemonsets,services,configmaps,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings"
    names = lab.kubectl("get", kinds + ",validatingadmissionpolicies", "--all-namespaces", "-o", "name").split()
    left = re.compile(r"/(?!npu-controller-).*(clusterd|noded|nodeinfo|cluster-info|statistic-fault)")
    assert [name for name in names if left.search(name)] == []
    lab.wait_for(lambda: not working(lab), PATIENCE, "the end of noded's pods")
