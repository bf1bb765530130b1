# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._withdrawal import vnpu_pause

from support.kube.stub import WEBHOOK_DOWN, node

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
OURS = "/api/v1/namespaces/npu-operator/pods"
COMPONENTS, CHANGE = "npuops.ascend/components", "npuops.ascend/vnpu-change"


class Clock:
    """``then``: what happens during each sleep."""

    def __init__(self, then=lambda: None):
        self.seconds, self._then = 1_800_000_000.0, then

    def now(self):
        return self.seconds

    monotonic = now

    def sleep(self, seconds):
        self.seconds += seconds
        self._then()


def pod(name="train", on="a", **limits):
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"nodeName": on, "containers": [{"resources": {"limits": limits or {"huawei.com/Ascend310P-4c": "1"}}}]},
        "status": {"phase": "Running"},
    }


def plugin(on="a"):
    owner = {"kind": "DaemonSet", "name": "ascend-device-plugin310p-daemonset", "controller": True, "uid": "1"}
    return {
        "metadata": {"name": "plugin-" + on, "namespace": "npu-operator", "ownerReferences": [owner]},
        "spec": {"nodeName": on},
    }


@pytest.fixture(name="fleet", autouse=True)
def fixture_fleet(api):
    api.put(NODES, node("a", labels={COMPONENTS: "enabled"}), node("b", labels={COMPONENTS: "enabled"}))


def pause(cluster, *names, clock=None, timeout=5, **options):
    return vnpu_pause.pause(cluster, names or ["a"], "npu-operator", (), timeout, clock=clock or Clock(), **options)


def of(api, name="a"):
    """(the label, whether the annotation exists)"""
    metadata = api.objects[NODES][name]["metadata"]
    return metadata["labels"].get(COMPONENTS), CHANGE in metadata.get("annotations", {})


def test_out_and_back(api, cluster):
    assert pause(cluster, "a", "b") == ["take a out of the NPU service", "take b out of the NPU service"]
    assert of(api) == of(api, "b") == ("paused", True)
    assert api.objects[NODES]["a"]["metadata"]["annotations"][CHANGE] == "2027-01-15T08:00:00Z"
    assert pause(cluster, "a", "b") == []
    assert vnpu_pause.resume(cluster, ["a"]) == ["put a back into the NPU service"]
    assert (of(api), of(api, "b")) == (("enabled", False), ("paused", True))
    assert vnpu_pause.resume(cluster, ["a"]) == []


def test_check_mode(api, cluster):
    api.put(OURS, plugin())
    assert pause(cluster, check_mode=True) == ["take a out of the NPU service"]
    assert of(api) == ("enabled", False)
    pause_for_real = node("a", labels={COMPONENTS: "paused"}, annotations={CHANGE: "now"})
    api.put(NODES, pause_for_real)
    assert vnpu_pause.resume(cluster, ["a"], check_mode=True) == ["put a back into the NPU service"]
    assert of(api) == ("paused", True)


def test_pods_keep_all_nodes_in_service(api, cluster):
    api.put(PODS, pod(on="b"), pod("web", cpu="1"))
    with pytest.raises(NpuError) as caught:
        pause(cluster, "a", "b")
    assert caught.value.message.startswith(
        "No virtual NPU was changed:\n  b: its virtual NPUs are to change, and pods use its NPUs: team/train. Let them end, or kubectl"
    )
    assert of(api) == of(api, "b") == ("enabled", False)


def test_it_waits_for_the_device_plugin_to_leave(api, cluster):
    api.put(OURS, plugin())
    pause(cluster, clock=Clock(api.objects[OURS].clear))
    assert of(api) == ("paused", True)


def test_a_device_plugin_that_stays(api, cluster):
    api.put(OURS, plugin())
    with pytest.raises(NpuError, match="did not end within 5 s: plugin-a on a"):
        pause(cluster, "a", "b")
    assert of(api) == of(api, "b") == ("enabled", False)


def test_a_pod_that_gets_an_npu_at_the_last_moment(api, cluster):
    def then():
        api.objects[OURS].clear()
        api.put(PODS, pod())

    api.put(OURS, plugin())
    with pytest.raises(NpuError, match="pods use its NPUs: team/train"):
        pause(cluster, "a", "b", clock=Clock(then))
    assert of(api) == of(api, "b") == ("enabled", False)


def test_what_an_earlier_run_paused_stays_so(api, cluster):
    """Its host may be in the middle of the change."""
    api.put(NODES, node("a", labels={COMPONENTS: "paused"}, annotations={CHANGE: "earlier"}))
    api.put(OURS, plugin("b"))
    with pytest.raises(NpuError, match="plugin-b on b"):
        pause(cluster, "a", "b")
    assert (of(api), of(api, "b")) == (("paused", True), ("enabled", False))
    assert api.objects[NODES]["a"]["metadata"]["annotations"][CHANGE] == "earlier"


def test_a_node_that_cannot_be_given_back_does_not_hide_why_it_has_to_be(api, cluster):
    def then():
        api.objects[OURS].clear()
        api.put(PODS, pod())
        api.faults[("PATCH", NODES + "/a")] = WEBHOOK_DOWN

    api.put(OURS, plugin())
    with pytest.raises(NpuError, match="pods use its NPUs: team/train") as caught:
        pause(cluster, "a", "b", clock=Clock(then))
    assert "may stay out of the NPU service until a run succeeds: a, b. " in caught.value.message
    assert "guard.example.com" in caught.value.message
    assert (of(api), of(api, "b")) == (("paused", True), ("enabled", False))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"labels": {COMPONENTS: "paused"}}, "The components of b were paused in the meantime"),
        ({"annotations": {"npuops.ascend/maintenance": "{}"}}, "A maintenance of b has begun in the meantime"),
    ],
)
def test_a_node_that_is_somebody_elses_by_now(api, cluster, made, told):
    api.put(NODES, node("b", **made))
    with pytest.raises(NpuError, match=told):
        pause(cluster, "a", "b")
    assert of(api) == ("enabled", False)
    assert api.objects[NODES]["b"]["metadata"]["labels"] == made.get("labels", {})


def test_a_maintenance_keeps_the_components_paused(api, cluster):
    api.put(NODES, node("a", labels={COMPONENTS: "paused"}, annotations={CHANGE: "x", "npuops.ascend/maintenance": "{}"}))
    vnpu_pause.resume(cluster, ["a"])
    assert of(api) == ("paused", False)


def test_a_node_that_cannot_be_written(api, cluster):
    api.faults[("PATCH", NODES + "/b")] = WEBHOOK_DOWN
    with pytest.raises(NpuError, match="guard.example.com"):
        pause(cluster, "a", "b")
    assert of(api) == ("enabled", False)
    with pytest.raises(NpuError, match="The cluster has no node c"):
        pause(cluster, "a", "c")
    assert of(api) == ("enabled", False)


def test_somebody_writes_the_node_in_between(api, cluster, monkeypatch):
    before = cluster.nodes()
    api.put(NODES, node("a", labels={COMPONENTS: "enabled", "new": "1"}))
    monkeypatch.setattr(kube_client.Cluster, "nodes", lambda _self: before)
    pause(cluster)
    assert of(api) == ("paused", True)
    assert api.objects[NODES]["a"]["metadata"]["labels"]["new"] == "1"
