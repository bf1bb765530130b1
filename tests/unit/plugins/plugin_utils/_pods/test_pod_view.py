# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.kube.eviction_stub import pod


def kinds(*items):
    return [pod_view.Pod(item).kind for item in items]


def test_kinds():
    assert kinds(
        pod("done", phase="Succeeded", npus=1),
        pod("static", owner=("Node", "a"), annotations={"kubernetes.io/config.mirror": "x"}),
        pod("plugin", owner=("DaemonSet", "ascend-device-plugin-daemonset"), namespace="npu-operator", npus=0),
        pod("proxy", owner=("DaemonSet", "proxy")),
        pod("train", npus=8),
        pod("vnpu", npus=1, resource="huawei.com/Ascend910-2c"),
        pod("cdi", annotations={"cdi.k8s.io/mine": "huawei.com/npu=0"}),
        pod("other-cdi", annotations={"cdi.k8s.io/mine": "vendor.com/gpu=0"}),
        pod("web"),
    ) == ["finished", "mirror", "component", "daemonset", "npu", "npu", "npu", "other", "other"]


@pytest.mark.parametrize(
    ("owner", "labels", "told"),
    [
        (("ReplicaSet", "web-5d4f"), {"pod-template-hash": "5d4f"}, "Deployment train/web"),
        (("ReplicaSet", "bare"), {}, "ReplicaSet train/bare"),
        (("Job", "fit"), {}, "Job train/fit"),
        (None, {}, None),
    ],
)
def test_owner(owner, labels, told):
    assert pod_view.Pod(pod("web-1", owner=owner, labels=labels)).owner_text == told


OURS = {"namespace": "npu-operator", "node_selector": {"npuops.ascend/components": "enabled"}}


@pytest.mark.parametrize("name", ["ascend-device-plugin310p-daemonset", "npu-exporter", "npu-node-agent"])
def test_ours_by_their_owner(name):
    assert kinds(pod("x", owner=("DaemonSet", name), **OURS)) == ["component"]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"owner": ("ReplicaSet", "serve-5d4f"), "npus": 4, "namespace": "train"}, "npu"),
        ({"owner": ("ReplicaSet", "serve-5d4f"), "npus": 4}, "npu"),
        ({"owner": ("ReplicaSet", "npu-exporter")}, "other"),
        ({"owner": None}, "other"),
        ({"owner": ("DaemonSet", "npu-exporter"), "namespace": "train"}, "daemonset"),
        ({"owner": ("DaemonSet", "theirs")}, "daemonset"),
    ],
)
def test_a_users_pod_with_our_node_selector_is_not_ours(changed, kind):
    """Nor one with our labels: it is evicted as any other, and budgets, owners and policies count."""
    item = pod("x", **dict(OURS, **changed))
    item["metadata"]["labels"]["app.kubernetes.io/name"] = "npu-node-agent"
    assert kinds(item) == [kind]


def test_requests_add_up():
    item = pod("a", npus=2)
    item["spec"]["containers"] *= 2
    assert pod_view.Pod(item).requests == {"huawei.com/Ascend910": 4}


ONE = {"limits": {"huawei.com/Ascend910": "1"}}
TWO = {"limits": {"huawei.com/Ascend910": "2"}}


@pytest.mark.parametrize(
    ("init", "count"),
    [
        ([{"resources": TWO}], 2),  # before the others, with chips of its own
        ([{"resources": ONE}, {"resources": TWO}], 2),  # one after the other
        ([{"resources": ONE, "restartPolicy": "Always"}], 1),  # beside the others
        ([{"resources": ONE, "restartPolicy": "Always"}, {"resources": TWO}], 3),
        ([{"resources": TWO}, {"resources": ONE, "restartPolicy": "Always"}], 2),
    ],
)
def test_chips_of_init_containers(init, count):
    """As the scheduler counts them."""
    item = pod("web")
    item["spec"]["initContainers"] = init
    found = pod_view.Pod(item)
    assert (found.kind, found.requests) == ("npu", {"huawei.com/Ascend910": count})
    item["spec"]["containers"][0]["resources"] = ONE
    beside = sum(1 for one in init if one.get("restartPolicy"))
    assert pod_view.Pod(item).requests == {"huawei.com/Ascend910": max(count, 1 + beside)}
