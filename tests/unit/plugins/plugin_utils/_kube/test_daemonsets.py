# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import daemonsets as kube_daemonsets

from support.kube.stub import ApiServer, node

NODES = "/api/v1/nodes"
SETS = "/apis/apps/v1/namespaces/npu-operator/daemonsets"
PODS = "/api/v1/namespaces/npu-operator/pods"
EVENTS = "/api/v1/namespaces/npu-operator/events"
REVISIONS = "/apis/apps/v1/namespaces/npu-operator/controllerrevisions"
IMAGE = "registry.example/plugin:v7.3.0"
CHIPS = "huawei.com/Ascend910"
LABELS = {"accelerator": "huawei-Ascend910"}
WANTED = ({"namespace": "npu-operator", "name": "plugin", "nodes": ["a"]},)


@pytest.fixture
def api():
    with ApiServer() as server:
        server.put(NODES, node("a", labels=LABELS))
        server.objects[REVISIONS] = {}
        yield server


@pytest.fixture
def cluster(api):
    return kube_client.Cluster(get_api_client(host=api.address, api_key="token"))


class Clock:
    """Time that passes only by sleeping; ``then`` is called with the second that begins."""

    def __init__(self, then=lambda _second: None):
        self.now = 0
        self.then = then

    def sleep(self, seconds):
        self.now += seconds
        self.then(self.now)

    def __call__(self):
        return self.now


def wait(cluster, clock=None, nodes=(), timeout=5, wanted=WANTED):
    clock = clock or Clock()
    return kube_daemonsets.wait(cluster, wanted, list(nodes), timeout, sleep=clock.sleep, clock=clock)


def daemonset(desired=1, ready=1, generation=1, observed=1, updated=None, **pod_spec):
    spec = {"containers": [{"image": IMAGE}], "nodeSelector": LABELS}
    spec["volumes"] = [{"name": "device-plugin", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]
    return {
        "metadata": {
            "name": "plugin",
            "uid": "ds",
            "generation": generation,
            "annotations": {"deprecated.daemonset.template.generation": "2"},
        },
        "spec": {"template": {"spec": dict(spec, **pod_spec)}},
        "status": {
            "observedGeneration": observed,
            "desiredNumberScheduled": desired,
            "updatedNumberScheduled": desired if updated is None else updated,
            "numberReady": ready,
            "numberAvailable": ready,
        },
    }


def pod(name="p", on="a", ready=False, image=IMAGE, template=2, **status):
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {
            "name": name,
            "namespace": "npu-operator",
            "uid": "uid-" + name,
            "labels": {"pod-template-generation": str(template)},
            "ownerReferences": [{"uid": "ds"}],
        },
        "spec": {"nodeName": on, "containers": [{"image": image}]},
        "status": dict({"phase": "Pending"}, **status),
    }


def container(waiting=None, ended=None, last=None, restarts=0):
    state = {"waiting": waiting} if waiting else {"terminated": ended} if ended else {"running": {}}
    return {"image": IMAGE, "state": state, "lastState": {"terminated": last} if last else {}, "restartCount": restarts}


def event(of, reason, message, kind="Warning"):
    return {
        "metadata": {"name": "%s-%s" % (of, reason)},
        "involvedObject": {"uid": of},
        "type": kind,
        "reason": reason,
        "message": message,
    }


def failure(cluster, **kwargs):
    with pytest.raises(NpuError) as caught:
        wait(cluster, **kwargs)
    return caught.value.message


def test_a_component_that_waits_for_its_driver_says_so(api, cluster):
    """Not "is Pending" with whatever the kubelet said last."""
    api.put(SETS, daemonset(ready=0))
    waiting = dict(container(), name=kube_daemonsets.DRIVER_WAIT)
    api.put(PODS, pod(initContainerStatuses=[waiting], containerStatuses=[container(waiting={"reason": "PodInitializing"})]))
    message = failure(cluster)
    assert "waits for the driver of its host: journalctl -b -u npu-driver.service on that host" in message


def test_ready_at_once(api, cluster):
    api.put(SETS, daemonset())
    api.put(PODS, pod(ready=True))
    assert wait(cluster).summary() == [{"namespace": "npu-operator", "name": "plugin", "image": IMAGE, "desired": 1, "ready": 1}]


def test_a_node_that_is_not_waited_for_is_seen(api, cluster):
    """Of a run for one node whose components are paused, the table tells what the cluster says of it."""
    api.put(SETS, daemonset(desired=0, ready=0))
    wanted = ({"namespace": "npu-operator", "name": "plugin", "nodes": []},)
    assert list(wait(cluster, wanted=wanted).nodes) == ["a"]


def test_waits_for_pod_and_chips(api, cluster):
    api.put(SETS, daemonset(ready=0))

    def then(second):
        if second == 2:
            api.put(SETS, daemonset())
            api.put(PODS, pod(ready=True))
        if second == 4:
            api.put(NODES, node("a", allocatable={CHIPS: "8"}))

    clock = Clock(then)
    wait(cluster, clock, nodes=[{"name": "a", "resource": CHIPS, "count": 8}])
    assert clock.now == 4


def test_progress_starts_the_time_anew(api, cluster):
    names = ["n%d" % number for number in range(4)]
    api.put(NODES, *[node(name, labels=LABELS) for name in names])
    api.put(SETS, daemonset(desired=4, ready=0))

    def then(second):
        done = int(second // 4)
        api.put(SETS, daemonset(desired=4, ready=done))
        api.put(PODS, *[pod("p" + name, on=name, ready=True) for name in names[:done]])

    clock = Clock(then)
    wait(cluster, clock, wanted=[dict(WANTED[0], nodes=names)], timeout=5)
    assert clock.now == 16


def test_a_pod_of_the_old_template_does_not_count(api, cluster):
    """Right after an update the status still speaks of the old generation."""
    api.put(SETS, daemonset(generation=2, observed=1))
    api.put(PODS, pod(ready=True, image="old"))
    assert "has not seen the change yet" in failure(cluster)


def test_no_daemonset(cluster):
    assert "DaemonSet npu-operator/plugin: there is no such DaemonSet" in failure(cluster)


@pytest.mark.parametrize(
    ("text", "tries"),
    [
        ('failed to resolve reference "x": x: not found', 1),
        ("unauthorized: authentication required", 2),
        ("pull access denied, repository does not exist or may require authorization: no basic auth credentials", 2),
    ],
)
def test_an_image_that_will_not_come_fails_soon(api, cluster, text, tries):
    """At once when there is none; after the kubelet has tried again when it was refused."""
    api.put(SETS, daemonset(ready=0))
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image: " + text}
    api.put(PODS, pod(containerStatuses=[container(waiting)]))
    clock = Clock()
    message = failure(cluster, clock=clock, timeout=300)
    assert "The rollout cannot finish" in message
    assert clock.now == 0 if tries == 1 else 10 < clock.now < 60
    assert "a: DaemonSet npu-operator/plugin: its pod cannot get its image %s: Back-off" % IMAGE in message
    assert text in message


def test_a_kubelet_that_has_not_seen_the_pull_secret_yet(api, cluster):
    """In a new namespace it may pull without it first. Its second try has it, and in between it only says that it pauses."""
    api.put(SETS, daemonset(ready=0))
    refused = {"reason": "ErrImagePull", "message": "pull access denied: no basic auth credentials"}
    api.put(PODS, pod(containerStatuses=[container(refused)]))

    def then(second):
        if second >= 4:
            api.put(PODS, pod(containerStatuses=[container({"reason": "ImagePullBackOff", "message": "Back-off"})]))
        if second >= 14:
            api.put(SETS, daemonset())
            api.put(PODS, pod(ready=True))

    wait(cluster, Clock(then), timeout=300)


def test_a_kubelet_that_is_refused_again_and_again(api, cluster):
    """Whatever it says at the moment we look."""
    api.put(SETS, daemonset(ready=0))
    refused = {"reason": "ErrImagePull", "message": "pull access denied: no basic auth credentials"}
    api.put(PODS, pod(containerStatuses=[container(refused)]))

    def then(second):
        pauses = {"reason": "ImagePullBackOff", "message": "Back-off"}
        api.put(PODS, pod(containerStatuses=[container(pauses if second % 10 else refused)]))

    assert "The rollout cannot finish" in failure(cluster, clock=Clock(then), timeout=300)


def test_an_old_pod_with_a_bad_image_is_not_the_end(api, cluster):
    """The user has corrected the image; the controller has not replaced the pod yet."""
    api.put(SETS, daemonset(ready=0, updated=0))
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    api.put(PODS, pod(image="bad", template=1, containerStatuses=[container(waiting)]))

    def then(_second):
        api.put(SETS, daemonset())
        api.put(PODS, pod(ready=True))

    wait(cluster, Clock(then))


def test_a_webhook_that_changes_the_images_of_pods_does_not_make_them_old(api, cluster):
    """As those that rewrite registries, or add a container, do."""
    api.put(SETS, daemonset(desired=2, updated=1))
    api.put(PODS, pod(ready=True, image="mirror.example/plugin:v7.3.0"))
    wait(cluster)
    api.put(SETS, daemonset())
    wait(cluster)


def test_a_pod_of_another_template_with_the_same_image_is_old(api, cluster):
    api.put(SETS, daemonset(updated=0))
    api.put(PODS, pod(ready=True, template=1))
    assert "a: DaemonSet npu-operator/plugin: its pod is" in failure(cluster)


def test_a_registry_that_is_down_is_waited_for(api, cluster):
    api.put(SETS, daemonset(ready=0))
    api.put(PODS, pod(containerStatuses=[container({"reason": "ErrImagePull", "message": "dial tcp: i/o timeout"})]))
    api.put(EVENTS, event("uid-p", "Failed", 'Failed to pull image "x": dial tcp: i/o timeout'))
    clock = Clock()
    assert "its pod cannot get its image %s: dial tcp: i/o timeout" % IMAGE in failure(cluster, clock=clock)
    assert clock.now == 5


# --- nodes that are down ---


def dead(name="dead"):
    return node(name, labels=LABELS, ready=False)


BAD_IMAGE = container({"reason": "ImagePullBackOff", "message": "x: not found"})


def test_a_dead_node_that_is_not_asked_for_is_not_waited_for(api, cluster):
    """It keeps its pod, and its place in the status of the DaemonSet."""
    api.put(NODES, dead())
    api.put(SETS, daemonset(desired=2, ready=1, updated=1))
    api.put(PODS, pod(ready=True), pod("q", on="dead", template=1, containerStatuses=[container()]))
    clock = Clock()
    wait(cluster, clock)
    assert clock.now == 0
    # Each look asks for the DaemonSet, lists pods and nodes, and, where not all pods are new, the revisions.
    assert len([path for _method, path in api.requests if path.startswith(("/api/v1/", "/apis/apps/"))]) == 4
    assert "DaemonSet npu-operator/plugin: its pod is" in failure(cluster, wanted=[dict(WANTED[0], nodes=None)])


def test_an_image_that_others_cannot_get_is_not_the_end(api, cluster):
    api.put(NODES, node("b", labels=LABELS), dead())
    api.put(SETS, daemonset(desired=3, ready=0))
    bad = {"phase": "Pending", "containerStatuses": [BAD_IMAGE]}
    api.put(PODS, pod(), pod("q", on="b", **bad), pod("r", on="dead", **bad))

    def then(second):
        if second == 3:
            api.put(PODS, pod(ready=True))

    clock = Clock(then)
    wait(cluster, clock)
    assert clock.now == 3
    # What a kubelet said before it was gone is no reason to give up, either.
    clock = Clock()
    assert "did not finish" in failure(cluster, clock=clock, wanted=[dict(WANTED[0], nodes=["dead"])]) and clock.now == 5
    assert "cannot finish" in failure(cluster, wanted=[dict(WANTED[0], nodes=["b"])])


@pytest.mark.parametrize("nodes", [["a", "dead"], None])
def test_that_a_node_is_down_is_said_first(api, cluster, nodes):
    api.put(NODES, dead())
    api.put(SETS, daemonset(desired=2, ready=1))
    api.put(PODS, pod(ready=True), pod("q", on="dead", phase="Running", containerStatuses=[container()]))
    api.requests.clear()
    told = failure(cluster, wanted=[dict(WANTED[0], nodes=nodes)])
    why = "the node is not Ready: Kubelet stopped posting node status; DaemonSet npu-operator/plugin: its pod is Running"
    assert "\n  dead: %s" % why in told
    assert not any(path.endswith("/log") for _method, path in api.requests), "its kubelet would have the log"
    told = failure(cluster, wanted=[], nodes=[{"name": "dead", "resource": CHIPS, "count": 8}])
    assert "dead: the node is not Ready: Kubelet stopped posting node status; it offers 0 of %s, the host has 8" % CHIPS in told


def revision(number, label):
    metadata = {"name": label, "labels": {"controller-revision-hash": label}, "ownerReferences": [{"uid": "ds"}]}
    return {"metadata": metadata, "revision": number}


def test_pods_that_kept_a_restored_template_are_up_to_date(api, cluster):
    """A rollout has changed the template and changed it back, which no pod got but that of a node that went down."""
    api.put(NODES, dead())
    api.put(SETS, daemonset(desired=2, ready=1, updated=1))
    kept, lost = pod(ready=True, template=0), pod("q", on="dead", template=1)
    kept["metadata"]["labels"]["controller-revision-hash"] = "old"
    lost["metadata"]["labels"]["controller-revision-hash"] = "bad"
    api.put(PODS, kept, lost)
    api.put(REVISIONS, revision(3, "old"), revision(2, "bad"))
    wait(cluster)
    # For a user who may not list revisions, only the number tells.
    api.faults["GET", REVISIONS] = (403, 'cannot list resource "controllerrevisions" in API group "apps"')
    assert "a: DaemonSet npu-operator/plugin: its pod is" in failure(cluster)


def test_failed_mount(api, cluster):
    api.put(SETS, daemonset(ready=0))
    api.put(PODS, pod(containerStatuses=[container({"reason": "ContainerCreating"})]))
    text = "hostPath type check failed: /var/lib/Ascend/driver is not a directory"
    api.put(EVENTS, event("uid-p", "FailedMount", text), event("other", "FailedMount", "not this one"))
    message = failure(cluster)
    assert "its pod cannot start: FailedMount: " + text in message
    assert "not this one" not in message


@pytest.mark.parametrize("waiting", [{"reason": "CrashLoopBackOff"}, None], ids=["backs-off", "runs-again"])
def test_crash_loop_has_exit_code_and_last_log_line(api, cluster, waiting):
    """Also at a moment at which the container runs again."""
    api.put(SETS, daemonset(ready=0))
    last = {"exitCode": 0, "reason": "Completed"}
    api.put(PODS, pod(phase="Running", containerStatuses=[container(waiting, last=last, restarts=4)]))
    api.put(EVENTS, event("uid-p", "BackOff", "Back-off restarting failed container"))
    api.logs["p"] = "starting\n[ERROR] init dcmi failed, error code: -8005\n\n"
    assert "its pod keeps ending: exit code 0, 4 restarts, last log line: [ERROR] init dcmi failed, error code: -8005" in failure(
        cluster
    )


def test_what_ran_before_it_and_succeeded_is_no_reason(api, cluster):
    """And the kubelet's word for a log that it no longer has is not the container's."""
    api.put(SETS, daemonset(ready=0))
    waited = container(ended={"exitCode": 0, "reason": "Completed"})
    ends = container({"reason": "CrashLoopBackOff"}, last={"exitCode": 127, "reason": "Error"}, restarts=2)
    api.put(PODS, pod(phase="Running", initContainerStatuses=[waited], containerStatuses=[ends]))
    api.logs["p"] = "unable to retrieve container logs for containerd://634a6d02f17f"
    told = failure(cluster)
    assert "its pod keeps ending: exit code 127, 2 restarts" in told and "last log line" not in told


def test_a_line_without_end_is_not_waited_for(api, cluster, endless):
    api.put(SETS, daemonset(ready=0))
    last = {"exitCode": 1, "reason": "Error"}
    api.put(PODS, pod(phase="Running", containerStatuses=[container({"reason": "CrashLoopBackOff"}, last=last, restarts=4)]))
    api.logs["p"] = endless
    assert "last log line: xxx" in failure(cluster) and endless.sent < endless.all


def test_not_scheduled(api, cluster):
    api.put(SETS, daemonset(ready=0))
    condition = {"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available: 1 Insufficient cpu."}
    waiting = pod(conditions=[condition])
    del waiting["spec"]["nodeName"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    waiting["spec"]["affinity"] = {"nodeAffinity": required}
    api.put(PODS, waiting)
    assert "a: DaemonSet npu-operator/plugin: its pod is not scheduled: 0/4 nodes" in failure(cluster)


def test_no_pod_because_of_a_label(api, cluster):
    api.put(SETS, daemonset(desired=0, ready=0, nodeSelector=dict(LABELS, **{"npuops.ascend/components": "enabled"})))
    assert "no pod: the node lacks the label npuops.ascend/components=enabled" in failure(cluster)


def test_no_pod_because_of_a_taint(api, cluster):
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    api.put(NODES, node("a", labels=LABELS, taints=taints))
    api.put(SETS, daemonset(desired=0, ready=0))
    message = failure(cluster)
    assert "the taint dedicated=ml:NoSchedule is not tolerated; see npu_tolerations" in message
    assert "unschedulable" not in message


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "w"}, False),
        ({"key": "l", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration, tolerated):
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    text = kube_daemonsets.why_no_pod(daemonset(tolerations=[toleration]), node("a", labels=LABELS, taints=taints), [])
    assert ("taint" not in text) is tolerated


def test_admission(api, cluster):
    api.put(SETS, daemonset(desired=1, ready=0))
    api.put(EVENTS, event("ds", "FailedCreate", 'Error creating: pods "plugin-" is forbidden: violates PodSecurity'))
    assert 'a: DaemonSet npu-operator/plugin: no pod: Error creating: pods "plugin-" is forbidden' in failure(cluster)


def test_too_few_chips(api, cluster):
    api.put(NODES, node("a", labels=LABELS, allocatable={CHIPS: "6"}))
    api.put(SETS, daemonset())
    api.put(PODS, pod(ready=True))
    api.logs["p"] = "device 3 unhealthy"
    message = failure(cluster, nodes=[{"name": "a", "resource": CHIPS, "count": 8}])
    assert "a: offers 6 of huawei.com/Ascend910, the host has 8; its device plugin runs, last log line: device 3" in message


def test_chips_that_are_not_ok_may_be_missing(api, cluster):
    api.put(NODES, node("a", labels=LABELS, allocatable={CHIPS: "6"}))
    api.put(SETS, daemonset())
    api.put(PODS, pod(ready=True))
    asked = {"name": "a", "resource": CHIPS, "count": 8}
    assert wait(cluster, nodes=[dict(asked, least=6)]).finished
    assert "offers 6 of" in failure(cluster, nodes=[dict(asked, least=7)])


def test_chips_that_are_offered_several_times(api, cluster):
    """By the flag of the plugin's pod."""
    api.put(NODES, node("a", labels=LABELS, allocatable={CHIPS: "8"}))
    volumes = [{"hostPath": {"path": "/var/lib/npuops/device-plugins"}}]
    api.put(SETS, daemonset(volumes=volumes))
    shares = pod(ready=True)
    shares["spec"]["containers"][0]["args"] = ["exec device-plugin -shareDevCount=4"]
    api.put(PODS, shares)
    asked = [{"name": "a", "resource": CHIPS, "count": 8}]
    told = "a: offers 8 of huawei.com/Ascend910, the host has 8 chips that are offered 4 times each"
    assert told in failure(cluster, nodes=asked)
    api.put(NODES, node("a", labels=LABELS, allocatable={CHIPS: "32"}))
    assert wait(cluster, nodes=asked).finished


def test_a_reason_that_many_nodes_share_is_told_once(api, cluster):
    api.put(NODES, node("b", labels=LABELS))
    api.put(SETS, daemonset(desired=2, ready=0))
    message = failure(cluster, wanted=[dict(WANTED[0], nodes=["a", "b"])])
    assert message.splitlines()[1:] == ["  a, b: DaemonSet npu-operator/plugin: no pod yet"]
