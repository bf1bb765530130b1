# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import smoke_pods
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod

from support.fleet.fake_fleet import Clock
from support.kube.stub import node

CHIPS = "huawei.com/Ascend910"
PODS = "/api/v1/namespaces/default/pods"
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: smoke}
spec:
  containers: [{name: main, image: registry/smoke:1%s}]
"""


class Kubelet(Clock):
    """It runs all pods for two seconds; of those that are named, containers end with status 3. ``most``: how many ran at once."""

    def __init__(self, api, fails=()):
        super().__init__()
        self._api, self._fails, self.most = api, fails, 0

    def sleep(self, seconds):
        super().sleep(seconds)
        pods = self._api.objects.get(PODS, {})
        self.most = max(self.most, len(pods))
        for name, pod in pods.items():
            phase = pod.get("status", {}).get("phase")
            if phase is None:
                pod["status"] = {"phase": "Running"}
            elif phase == "Running" and name.endswith(tuple(self._fails)):
                ended = {"state": {"terminated": {"exitCode": 3}}, "name": "main"}
                pod["status"] = {"phase": "Failed", "containerStatuses": [ended]}
            elif phase == "Running":
                pod["status"] = {"phase": "Succeeded"}


def check(api, cluster, asked=1, allocatable="8", chips=8, resource=CHIPS, **kwargs):
    """(the finding, the kubelet)."""
    kubelet = Kubelet(api, **kwargs)
    manifest = smoke_pod.read(MANIFEST % (", resources: {limits: {%s: %d}}" % (resource, asked) if asked else ""))
    found = smoke_pods.check(cluster, node("a", allocatable={resource: allocatable}), chips, manifest, 60, print, kubelet)
    assert api.objects.get(PODS, {}) == {}
    return found, kubelet


@pytest.mark.parametrize(
    "asked, allocatable, pods",
    [(1, "8", 8), (2, "8", 4), (3, "8", 2), (1, "7", 7), (1, "32", 8), (0, "8", 1)],
)
def test_all_chips_at_once(api, cluster, asked, allocatable, pods):
    """With 32 of 8 chips, pods share them; one that asks for none runs once."""
    found, kubelet = check(api, cluster, asked, allocatable)
    assert (found["verdict"], found["seen"], kubelet.most) == ("PASS", "%d of %d succeeded" % (pods, pods), pods)


def test_all_virtual_npus_at_once(api, cluster):
    """Two chips are divided into seven each: every one of them is tried."""
    found, kubelet = check(api, cluster, 1, "14", chips=2, resource="huawei.com/Ascend310P-1c")
    assert (found["seen"], kubelet.most) == ("14 of 14 succeeded", 14)


def test_a_chip_that_does_not_work(api, cluster):
    found, kubelet = check(api, cluster, fails=["-2", "-5"])
    assert found["verdict"] == "FAIL" and kubelet.most == 8
    assert found["seen"].startswith("2 of 8 failed: the smoke pod default/smoke-") and "main ended with 3" in found["seen"]


def test_a_node_that_does_not_offer_enough(api, cluster):
    found, _kubelet = check(api, cluster, asked=4, allocatable="2")
    assert found["verdict"] == "UNKNOWN" and found["seen"].endswith("one asks for: huawei.com/Ascend910 (2 of 4)")
    assert not [request for request in api.requests if request[0] == "POST"]


def test_a_pod_that_cannot_be_created_leaves_the_others(api, cluster):
    api.faults["POST", PODS] = (422, "spec.containers[0].image: Required value")
    found, _kubelet = check(api, cluster)
    assert found["verdict"] == "FAIL" and found["seen"].startswith("8 of 8 failed") and "and 4 more" in found["seen"]


def test_none_is_left_if_the_api_server_goes(api, cluster, monkeypatch):
    original = smoke_pod.SmokePod.end

    def end(pod):
        original(pod)
        raise NpuError("the API server is down")

    monkeypatch.setattr(smoke_pod.SmokePod, "end", end)
    with pytest.raises(NpuError, match="is down"):
        check(api, cluster)
    assert api.objects[PODS] == {}
