# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's part of a bundle, with an API server that has secrets, refuses, or does not answer."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect.gathered import Gathered
from ansible_collections.npuops.ascend.plugins.plugin_utils._collect import cluster_part

from support.kube.stub import NO_ANSWER, node

NAMESPACE = "npu-operator"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
DAEMONSETS = "/apis/apps/v1/namespaces/npu-operator/daemonsets"
PODS = "/api/v1/namespaces/npu-operator/pods"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
SECRET = "pl4nt3d"


def agent(name="npu-node-agent-x", where="npu-a", owner="npu-node-agent", restarted=False):
    state = {"terminated": {"exitCode": 1}} if restarted else {}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "ownerReferences": [{"kind": "DaemonSet", "name": owner, "controller": True}],
            "managedFields": [{"manager": "x"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"x": SECRET})},
        },
        "spec": {"nodeName": where, "containers": [{"name": "agent", "env": [{"name": "HUB_TOKEN", "value": SECRET}]}]},
        "status": {"containerStatuses": [{"name": "agent", "lastState": state}]},
    }


@pytest.fixture
def full(api):
    api.put(NODES, node("npu-a", annotations={"note": "password=" + SECRET}), node("npu-b"))
    for name, about in (("one", "npu-a"), ("two", "npu-b")):
        api.put(
            EVENTS, {"metadata": {"name": name}, "involvedObject": {"kind": "Node", "name": about}, "message": "event of " + about}
        )
    api.put(LEASES, {"metadata": {"name": "npu-maintenance"}})
    api.put(DAEMONSETS, {"metadata": {"name": "npu-node-agent"}}, {"metadata": {"name": "of-others"}})
    api.put(PODS, agent(restarted=True), agent("on-another", "npu-b"), agent("of-others", owner="of-others"))
    api.put(MAPS, {"metadata": {"name": "mindx-dl-deviceinfo-npu-a"}, "data": {"DeviceInfoCfg": "chips"}})
    api.put("/api/v1/namespaces/npu-operator/secrets", {"metadata": {"name": "x"}, "data": {"x": SECRET}})
    api.logs["npu-node-agent-x"] = "one line\nAuthorization: Bearer %s\n" % SECRET
    return api


def gather(cluster, limit=2**20):
    part = Gathered(limit, 60)
    cluster_part.gather(part, cluster, "npu-a", NAMESPACE)
    return part, {file["name"]: file["text"] for file in part.files}


def test_everything_about_the_node_and_nothing_about_others(full, cluster):
    part, texts = gather(cluster)
    assert set(texts) == {
        "cluster/node.json", "cluster/events.json", "cluster/lease.json", "cluster/daemonsets.json", "cluster/pods.json",
        "cluster/deviceinfo.json", "cluster/logs/npu-node-agent-x/agent.log", "cluster/logs/npu-node-agent-x/agent-previous.log",
    }, part.left_out  # fmt: skip
    assert part.left_out == []
    assert "event of npu-a" in texts["cluster/events.json"] and "npu-b" not in "".join(texts.values())
    assert "of-others" not in "".join(texts.values()) and "DeviceInfoCfg" in texts["cluster/deviceinfo.json"]
    assert "one line" in texts["cluster/logs/npu-node-agent-x/agent.log"]


def test_nothing_is_changed_and_no_secret_is_read_or_shown(full, cluster):
    _part, texts = gather(cluster)
    assert SECRET not in "".join(texts.values()) and "HUB_TOKEN" in texts["cluster/pods.json"]
    assert {method for method, _path in full.requests} == {"GET"}
    assert not [path for _method, path in full.requests if "secrets" in path]


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (PODS + "/npu-node-agent-x/log", "log of npu-operator/npu-node-agent-x"),
        (EVENTS, "Events about"),
        (MAPS + "/mindx-dl-deviceinfo-npu-a", "ConfigMap kube-system/"),
        (LEASES + "/npu-maintenance", "Lease npu-operator/"),
        (PODS, "Pods of the components"),
    ],
)
def test_what_the_account_may_not_read_is_left_out_with_the_reason(full, cluster, path, what):
    full.faults["GET", path] = (403, 'x is forbidden: User "u" cannot get resource "pods/log" in API group "" in the namespace "n"')
    part, texts = gather(cluster)
    assert part.left_out and all(entry["what"].startswith(what) and "forbidden" in entry["why"] for entry in part.left_out)
    assert not any(entry["absent"] for entry in part.left_out) and "cluster/node.json" in texts


def test_what_the_cluster_does_not_have(api, cluster):
    part, texts = gather(cluster)
    absent = {entry["what"] for entry in part.left_out if entry["absent"]}
    assert absent == {"Node npu-a", "Lease npu-operator/npu-maintenance", "ConfigMap kube-system/mindx-dl-deviceinfo-npu-a"}
    assert json.loads(texts["cluster/pods.json"]) == []


def test_an_api_server_that_is_gone_is_asked_once(full, cluster):
    full.faults["GET", NODES + "/npu-a"] = NO_ANSWER
    part, texts = gather(cluster)
    assert texts == {} and {path for _method, path in full.requests if "npu-a" in path or "pods" in path} == {NODES + "/npu-a"}
    assert "cannot be reached" in part.left_out[0]["why"] and len(part.left_out) == 2


def test_names_that_lead_to_another_path(full, cluster):
    full.put(PODS, agent("../../secrets/x"), agent("..", restarted=True))
    full.objects[PODS]["npu-node-agent-x"]["status"]["containerStatuses"][0]["name"] = "../../../x"
    _part, texts = gather(cluster)
    assert not [name for name in texts if "/logs/" in name]
    assert not [path for _method, path in full.requests if ".." in path or "secrets" in path]


def test_names_that_are_cut_to_the_same_or_made_up(full, cluster):
    for first in "ab":
        full.put(PODS, agent(first + "x" * 150))
        full.logs[first + "x" * 150] = "log of %s\n" % first
    full.objects[PODS]["npu-node-agent-x"]["status"]["containerStatuses"].append({"name": "agent-previous"})
    part, texts = gather(cluster)
    assert len(texts) == len(part.files) and {"log of a\n", "log of b\n"} <= set(texts.values())
    assert len([file for file in part.files if file["source"].startswith("log of npu-operator/npu-node-agent-x")]) == 3


def test_a_log_that_is_huge(full, cluster):
    """Its newest lines are kept, and no part of a line, which may be the end of a secret."""
    full.logs["npu-node-agent-x"] = "".join("%d %s token=%s\n" % (number, "x" * 1000, SECRET) for number in range(1000))
    part, _texts = gather(cluster)
    (log,) = [file for file in part.files if file["name"].endswith("/agent.log")]
    assert log["cut"] and 250 * 1024 < len(log["text"]) <= 256 * 1024
    lines = log["text"].splitlines()
    assert lines[-1].startswith("999 ") and lines[0].endswith("token=***") and lines[0][:4].strip().isdigit()


def test_a_log_with_a_line_without_end(full, cluster, endless):
    full.logs["npu-node-agent-x"] = endless
    part, texts = gather(cluster)
    assert endless.sent < endless.all and not [name for name in texts if "/logs/" in name]
    assert "too long" in part.left_out[0]["why"] and "cluster/deviceinfo.json" in texts
