# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import claims as pod_claims
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.kube.eviction_stub import CLAIMS, DAEMONSETS, PODS, SLICES, claim, holding, plugin_daemonset, pod, resource_slice

NPUS = ("npu.huawei.com",)
FORBIDDEN = 'is forbidden: User "x" cannot list resource "%s" in API group "resource.k8s.io" at the cluster scope'


def read(cluster, *items, npu_drivers=NPUS):
    pods = [pod_view.Pod(item) for item in items]
    return pod_claims.HeldClaims.read(cluster, pods, npu_drivers), pods


def deny(api, resource):
    api.faults["GET", "/apis/resource.k8s.io/v1/" + resource] = (403, resource + ".resource.k8s.io " + FORBIDDEN % resource)


def test_without_claims_nothing_is_asked(api, cluster):
    api.requests.clear()
    held, _pods = read(cluster, pod("web"), pod("train", npus=8), holding(pod("done", phase="Succeeded"), "c"))
    assert api.requests == [] and held.problem is None


def test_a_pod_with_a_claim_of_npus_uses_npus(api, cluster):
    api.put(CLAIMS, claim("mine"), claim("net", driver="net.example.com"))
    api.objects[CLAIMS]["of another namespace"] = claim("mine", namespace="other", driver="x.example.com")
    api.put(SLICES, resource_slice(), resource_slice("net.example.com"))
    held, (first, second) = read(cluster, holding(pod("job"), "mine", "net"), holding(pod("web"), "net"))
    assert (first.kind, second.kind) == ("npu", "other")
    assert held.labels(first) == "mine of npu.huawei.com, net of net.example.com"
    assert held.objection(first) is None and held.objection(second) is None


def test_the_drivers_of_npus_are_a_setting(api, cluster):
    api.put(CLAIMS, claim("mine"), claim("net", driver="net.example.com"))
    _held, (first, second) = read(
        cluster, holding(pod("job"), "mine"), holding(pod("web"), "net"), npu_drivers=("net.example.com",)
    )
    assert (first.kind, second.kind) == ("other", "npu")


def test_who_only_observes_uses_no_npus(api, cluster):
    api.put(CLAIMS, claim("mine", adminAccess=True))
    _held, (found,) = read(cluster, holding(pod("monitor", owner=("DaemonSet", "d")), "mine"))
    assert found.npu_claims == ()


def test_extended_resources_by_dra(api, cluster):
    """KEP-5004: Kubernetes makes a claim for what a container asks for as a resource."""
    item = pod("job")
    item["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "made", "requestMappings": []}
    api.put(CLAIMS, claim("made"))
    _held, (found,) = read(cluster, item)
    assert found.kind == "npu"


def test_a_plugin_that_does_not_run(api, cluster):
    """Half a minute after it has left, no ResourceSlice has its pool."""
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice(pool="b"))
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    blocker = held.objection(found)
    assert blocker.kind == "no-dra-plugin"
    assert blocker.text == (
        "the pod train/job (ReplicaSet train/web-5d4f) cannot be evicted: the plugin of the DRA driver npu.huawei.com does not run on a,"
        " so its ResourceClaim mine stays prepared and the pod Terminating; start that plugin there again"
    )
    api.put(DAEMONSETS, plugin_daemonset("csi", driver="csi.example.com"), plugin_daemonset())
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.objection(found).why.endswith("; start that plugin there again (DaemonSet dra/npu-dra)")


def test_devices_that_are_on_no_node(api, cluster):
    """Of the plugin of such a driver nothing is known."""
    api.put(CLAIMS, claim("net", driver="net.example.com", pool="fabric"))
    item = resource_slice("net.example.com", "fabric")
    del item["spec"]["nodeName"]
    api.put(SLICES, item)
    held, (found,) = read(cluster, holding(pod("job"), "net"))
    assert held.objection(found) is None


@pytest.mark.parametrize(
    ("resource", "doubt"),
    [
        ("resourceclaims", "whether they use NPUs, and whether the plugins of their DRA drivers run"),
        ("resourceslices", "whether the plugins of their DRA drivers run"),
    ],
)
def test_what_may_not_be_read_is_told(api, cluster, resource, doubt):
    api.put(CLAIMS, claim("mine"))
    deny(api, resource)
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.problem == (
        'pods hold ResourceClaims, but the Kubernetes user may not "list" on "%s.resource.k8s.io": %s was not checked'
        % (resource, doubt)
    )
    assert held.objection(found) is None and held.know([found])
    assert found.kind == ("other" if resource == "resourceclaims" else "npu")


def test_a_cluster_without_the_api(api, cluster):
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert "the cluster does not serve resource.k8s.io/v1" in held.problem
    assert held.objection(found) is None and found.kind == "other"


def test_daemonsets_need_not_be_readable(api, cluster):
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES)
    api.objects[SLICES] = {}
    api.faults["GET", DAEMONSETS] = (403, 'User "x" cannot list resource "daemonsets" in API group "apps" at the cluster scope')
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.objection(found).why.endswith("; start that plugin there again")


def test_an_outage_is_no_answer(api, cluster):
    api.put(PODS, pod("x"))
    api.faults["GET", CLAIMS] = (503, "etcd is away")
    with pytest.raises(NpuError, match="etcd is away"):
        read(cluster, holding(pod("job"), "mine"))


def test_requests_grow_with_pages_of_lists(api, cluster):
    names = ["c%d" % number for number in range(300)]
    api.put(CLAIMS, *[claim(name) for name in names])
    api.put(SLICES, resource_slice())
    api.requests.clear()
    held, pods = read(cluster, *[holding(pod("job-" + name), name) for name in names])
    assert len(api.requests) == 2
    assert pod_claims.holders(pods, held) == (
        "pods that hold ResourceClaims: train/job-c0 (c0 of npu.huawei.com); train/job-c1 (c1 of npu.huawei.com);"
        " train/job-c2 (c2 of npu.huawei.com) and 297 more"
    )


@pytest.mark.parametrize(
    "strange", [None, [], "x", [None], ["x"], [{}], [{"driver": None}], [{"driver": "a,b=c", "pool": 5}], [{"driver": 5}]]
)
def test_a_status_that_nobody_expects(api, cluster, strange):
    item = claim("mine")
    item["status"]["allocation"]["devices"]["results"] = strange
    api.put(CLAIMS, item)
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.of(found) == [] and held.objection(found) is None and found.kind == "other"


# --- what is untrue, or belongs to others ---


def test_a_pool_that_has_another_name_by_now(api, cluster):
    """A driver may publish its devices again in another pool. Its plugin runs there nonetheless."""
    api.put(CLAIMS, claim("mine", pool="a-generation-1"))
    item = resource_slice(pool="a-generation-2")
    item["spec"]["nodeName"] = "a"
    api.put(SLICES, item)
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.objection(found) is None


def test_a_slice_of_another_node_does_not_stand_for_the_plugin(api, cluster):
    """A node may publish what it likes of itself, also a pool with the name of another node."""
    api.put(CLAIMS, claim("mine"))
    item = resource_slice()
    item["spec"]["nodeName"] = "b"
    api.put(SLICES, item)
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.objection(found).kind == "no-dra-plugin"


def starting(item, *conditions, containers=()):
    item["status"].update(phase="Pending", conditions=list(conditions), containerStatuses=list(containers))
    return item


def test_a_pod_that_never_started_leaves_without_the_plugin(api, cluster):
    """The kubelet prepares nothing for it while the plugin is away, and has nothing to unprepare."""
    api.put(CLAIMS, claim("mine"))
    api.objects[SLICES] = {}
    waiting = {"type": "PodReadyToStartContainers", "status": "False"}
    item = starting(holding(pod("job"), "mine"), waiting, containers=[{"state": {"waiting": {"reason": "ContainerCreating"}}}])
    held, (found,) = read(cluster, item)
    assert held.objection(found) is None
    # Told to end, and still there: something was prepared.
    item["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    held, (found,) = read(cluster, item)
    assert held.objection(found).kind == "no-dra-plugin"


@pytest.mark.parametrize(
    ("conditions", "containers"),
    [
        ([{"type": "PodReadyToStartContainers", "status": "True"}], []),
        ([], [{"containerID": "containerd://ab", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
    ],
)
def test_a_pod_that_is_about_to_start_needs_the_plugin(api, cluster, conditions, containers):
    api.put(CLAIMS, claim("mine"))
    api.objects[SLICES] = {}
    held, (found,) = read(cluster, starting(holding(pod("job"), "mine"), *conditions, containers=containers))
    assert held.objection(found).kind == "no-dra-plugin"


def test_a_daemonset_that_only_looks_like_the_plugin(api, cluster):
    """A user may create one whose pods never run. Those that run come first, and none hides another."""
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice(pool="b"))
    fake, real = plugin_daemonset("fake", namespace="aaa"), plugin_daemonset()
    real["status"] = {"numberReady": 3}
    api.put(DAEMONSETS, fake, real)
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.objection(found).why.endswith("; start that plugin there again (DaemonSet dra/npu-dra or aaa/fake)")
    api.put(DAEMONSETS, *[plugin_daemonset("fake%d" % number, namespace="aaa") for number in range(50)])
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.objection(found).why.endswith(" (DaemonSet dra/npu-dra or aaa/fake or aaa/fake0 and 49 more)")


def test_a_few_claims_are_read_by_their_names(api, cluster):
    """A user who fills a namespace with claims does not make each drain read them all."""
    api.put(CLAIMS, claim("mine"), *[claim("c%d" % number) for number in range(2000)])
    api.put(SLICES, *[resource_slice(pool="n%d" % number) for number in range(2000)], resource_slice())
    api.requests.clear()
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert found.kind == "npu" and held.objection(found) is None
    assert [path for _method, path in api.requests] == ["/apis/resource.k8s.io/v1/namespaces/train/resourceclaims", SLICES]


def test_a_claim_of_many_drivers_is_told_shortly(api, cluster):
    item = claim("mine")
    results = item["status"]["allocation"]["devices"]["results"]
    results += [dict(results[0], driver="d%02d.%s.example.com" % (number, "x" * 200)) for number in range(32)]
    api.put(CLAIMS, item)
    api.put(SLICES, resource_slice())
    held, (found,) = read(cluster, holding(pod("job"), "mine"))
    assert held.labels(found).endswith(" and 30 more") and len(held.labels(found)) < 800
