# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes may be loaded with a diagnosis, by what an API server says of them."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import node_use
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.eviction_stub import PODS, EvictionApi, pod
from support.kube.stub import node


@pytest.fixture
def api():
    with EvictionApi() as api:
        yield api


def reason(api):
    return node_use.reason(kube_client.connect({"host": api.address, "api_key": "token"}), "npu-a", ["npu.huawei.com"])


def test_a_node_that_takes_pods(api):
    api.put("/api/v1/nodes", node("npu-a"))
    assert "kubectl drain npu-a --ignore-daemonsets" in reason(api)


def test_a_drained_node(api):
    api.put("/api/v1/nodes", node("npu-a", unschedulable=True))
    api.put(PODS, pod("web", "npu-a"))
    api.put(PODS, pod("train", "npu-b", npus=8))
    api.put(PODS, pod("done", "npu-a", npus=8, phase="Succeeded"))
    assert reason(api) is None


def test_a_node_in_maintenance(api):
    api.put("/api/v1/nodes", node("npu-a", unschedulable=True, annotations={"npuops.ascend/maintenance": "{}"}))
    assert reason(api) == "not run, because the node is in maintenance. Run accept again when that has ended"


def test_a_pod_that_uses_npus(api):
    api.put("/api/v1/nodes", node("npu-a", unschedulable=True))
    api.put(PODS, pod("train", "npu-a", npus=1))
    assert "pods on the node use NPUs: train/train. Run kubectl drain npu-a" in reason(api)


def test_a_host_that_has_not_joined(api):
    assert reason(api) is None


def test_a_cluster_that_does_not_tell():
    with pytest.raises(NpuError):
        node_use.reason(kube_client.connect({"host": "http://127.0.0.1:9", "api_key": "token"}), "npu-a", [])
