# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socket

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, eviction_dry_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.kube.eviction_stub import (
    BUDGETS,
    CLAIMS,
    PODS,
    SLICES,
    budget,
    claim,
    holding,
    plugin_volumes,
    pod,
    resource_slice,
    violation,
)

MIRROR = {"kubernetes.io/config.mirror": "x"}
OURS = {"namespace": "npu-operator", "node_selector": {"npuops.ascend/components": "enabled"}}


def simulate(cluster, own_pod=None, **variables):
    pods = pod_view.pods_of_node(cluster, "a")
    return eviction_dry_run.simulate(cluster, pods, drain_policy.DrainPolicy.of(**variables), own_pod=own_pod)


def test_a_users_pod_with_our_node_selector_is_evicted(api, cluster, time):
    api.put(PODS, pod("serve-1", npus=4, node_selector=OURS["node_selector"]))
    assert time.drain(cluster).evict_npu_pods() == 1 and api.evicted == ["serve-1"]


def test_another_namespace_of_ours(api, cluster, time):
    api.put(PODS, pod("x", owner=("DaemonSet", "npu-exporter"), namespace="ascend"))
    with pytest.raises(pod_blocker.Blocked, match="ascend/x"):
        time.drain(cluster, namespace="ascend").wait_components_gone(5)
    time.drain(cluster).wait_components_gone(5)


def test_this_very_run_is_not_evicted(api, cluster, monkeypatch, time):
    api.put(PODS, pod(socket.gethostname()))
    assert pod_view.own_pod_name() is None
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    with pytest.raises(pod_blocker.Blocked, match="Ansible itself runs in it"):
        time.drain(cluster).evict_others()
    assert not api.evicted


def test_a_job_that_is_waited_for_is_judged_when_its_turn_comes(api, cluster, time):
    api.put(PODS, pod("fit", owner=None, npus=1))
    variables = {"wait_for_jobs": {"selector": "app=web", "timeout": 5}}
    assert simulate(cluster, **variables) == []
    assert api.dry_runs == []
    drain = time.drain(cluster, **variables)
    assert [item.name for item in drain.wait_for_jobs()] == ["fit"]
    with pytest.raises(pod_blocker.Blocked, match="it has no controller"):
        drain.evict_npu_pods()


def test_npu_pods_go_first_and_others_stay(api, cluster, time):
    api.put(PODS, pod("train-1", npus=1), pod("web-1"), pod("proxy", owner=("DaemonSet", "p")), pod("b", node="b", npus=1))
    drain = time.drain(cluster)
    assert drain.evict_npu_pods() == 1
    assert api.evicted == ["train-1"]
    assert drain.evict_others() == 1
    assert api.evicted == ["train-1", "web-1"]
    assert drain.evict_others() == 0
    assert sorted(api.objects[PODS]) == ["b", "proxy"]


def test_waits_until_the_pods_are_gone_and_beats(api, cluster, time):
    api.put(PODS, pod("web-1"))

    def terminate(item):
        item["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        time.events[20] = lambda: api.remove(item)

    api.on_evict = terminate
    assert time.drain(cluster).evict_others() == 1
    assert 20 <= time.now < 22
    assert api.evicted == ["web-1"]
    assert max(later - earlier for earlier, later in zip(time.beats, time.beats[1:])) <= 2
    assert time.said == ["waits for the pods train/web-1 to leave"]


def test_one_after_the_other_under_a_budget(api, cluster, time):
    api.put(PODS, pod("web-1"), pod("web-2"))
    entry = budget(allowed=1, healthy=3)
    api.put(BUDGETS, entry)

    def replace(item):
        api.remove(item)
        time.events[time.now + 5] = lambda: entry["status"].update(disruptionsAllowed=1)

    api.on_evict = replace
    assert time.drain(cluster).evict_others() == 2
    assert api.evicted == ["web-1", "web-2"]
    assert time.now >= 5


def test_the_servers_retry_after_is_kept(api, cluster, time):
    entry = budget(allowed=0)
    api.put(PODS, pod("web-1"))
    api.refuse["web-1"] = (429, violation(entry, retry_after=10))
    time.events[1] = api.refuse.clear
    time.drain(cluster).evict_others()
    evictions = [path for method, path in api.requests if path.endswith("/eviction")]
    assert len(evictions) == 2
    assert 10 <= time.now < 12


def test_at_the_limit_it_names_the_blocker(api, cluster, time):
    api.put(PODS, pod("web-1"), pod("free", labels={"app": "other"}))
    api.put(BUDGETS, budget("web", allowed=0))
    with pytest.raises(pod_blocker.Blocked) as caught:
        time.drain(cluster, drain={"timeout": "30"}).evict_others()
    assert caught.value.message == (
        "a is not drained after 30 s: the pod train/web-1 (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget"
        " train/web allows no disruption now: 2 healthy, 2 needed"
    )
    assert [blocker["budget"]["name"] for blocker in caught.value.blockers] == ["web"]
    assert caught.value.details["blockers"] == caught.value.blockers
    assert api.evicted == ["free"]
    assert 30 <= time.now < 32


def test_at_the_limit_a_pod_that_does_not_end_is_named(api, cluster, time):
    api.put(PODS, pod("web-1"))
    api.on_evict = lambda item: item["metadata"].update(deletionTimestamp="2026-11-21T13:00:00Z")
    with pytest.raises(pod_blocker.Blocked, match="to terminate by 2026-11-21T13:00:00Z and still runs"):
        time.drain(cluster, drain={"timeout": 3}).evict_others()


def test_what_cannot_end_goes_down_with_the_host(api, cluster, time):
    """A recovery: its processes may hang in the driver."""
    api.put(PODS, pod("web-1"))
    api.on_evict = lambda item: item["metadata"].update(deletionTimestamp="2026-11-21T13:00:00Z")
    drain = time.drain(cluster, drain={"timeout": 3}, leave_stuck=True)
    assert drain.evict_others() == 0 and time.now >= 3
    assert time.said[-1] == "no longer waits for train/web-1: terminating, but stuck"


def test_what_may_not_end_keeps_a_recovery_too(api, cluster, time):
    api.put(PODS, pod("web-1"))
    api.put(BUDGETS, budget("web", allowed=0))
    with pytest.raises(pod_blocker.Blocked, match="PodDisruptionBudget"):
        time.drain(cluster, drain={"timeout": 3}, leave_stuck=True).evict_others()


def test_policy_stops_before_the_first_eviction(api, cluster, time):
    api.put(PODS, pod("web-1"), pod("bare", owner=None))
    with pytest.raises(pod_blocker.Blocked, match=r"train/bare cannot be evicted: it has no controller .*npu_upgrade_drain\.force"):
        time.drain(cluster).evict_others()
    assert not api.evicted
    assert time.now == 0


def test_a_pod_of_the_same_name_with_another_uid_is_left_to_the_next_look(api, cluster, time):
    """A StatefulSet's pod went and came back between listing and eviction."""
    api.put(PODS, pod("db-0"))
    refusals = [(409, {"message": "the UID in the precondition does not match"})]
    original = api.answer

    def answer(method, path, query, body):
        if path.endswith("/eviction") and refusals:
            return refusals.pop()
        return original(method, path, query, body)

    api.answer = answer
    assert time.drain(cluster).evict_others() == 1
    assert api.evicted == ["db-0"]
    assert time.now < 2.5  # no refusal, which would be left alone for a while


TOLERATION = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("tolerations", "how"),
    [
        (TOLERATION, "it tolerates the cordon"),
        ([{"operator": "Exists"}], "it tolerates the cordon"),
        ([{"operator": "Exists", "effect": "NoExecute"}], "its spec.nodeName names this node"),
        ([], "its spec.nodeName names this node"),
    ],
)
def test_pods_that_come_back_are_told_once_by_owner(api, cluster, time, tolerations, how):
    """Each has another name."""
    numbers = iter(range(1, 1000))

    def come_back(item):
        api.remove(item)
        made = pod("web-%d" % next(numbers), labels={"app": "web", "pod-template-hash": "5d4f"})
        made["spec"]["tolerations"] = tolerations
        api.put(PODS, made)

    come_back(pod("web-0"))
    api.on_evict = come_back
    with pytest.raises(pod_blocker.Blocked, match=r"started on the cordoned node .*: %s; configure its controller" % how):
        time.drain(cluster, drain={"timeout": 60}).evict_others()
    assert len(api.evicted) > 10
    assert time.said == [
        "waits for the pods train/web-1 to leave",
        "a pod of Deployment train/web comes back each time: %s; gives up after 60 s" % how,
    ]


def test_a_namespace_that_is_being_deleted_takes_its_pods_with_it(api, cluster, time):
    """The API server refuses evictions there (kubernetes/kubernetes#93947)."""
    api.put(PODS, pod("web-1"))
    cause = {"reason": "NamespaceTerminating", "message": "namespace train is being terminated", "field": "metadata.namespace"}
    text = 'pods "web-1" is forbidden: unable to create new content in namespace train because it is being terminated'
    api.refuse["web-1"] = (403, {"kind": "Status", "code": 403, "message": text, "details": {"causes": [cause]}})
    assert time.drain(cluster).simulate() == []
    time.events[20] = api.objects[PODS].clear
    assert time.drain(cluster).evict_others() == 1
    assert 20 <= time.now < 22 and api.evicted == []


def test_timeout_zero_has_no_limit(api, cluster, time):
    api.put(PODS, pod("web-1"))
    entry = budget(allowed=0)
    api.put(BUDGETS, entry)
    time.events[10000] = lambda: entry["status"].update(disruptionsAllowed=1)
    assert time.drain(cluster, drain={"timeout": "0"}).evict_others() == 1


def test_jobs_may_finish(api, cluster, time):
    job = pod("fit-1", labels={"job": "1"}, npus=1)
    api.put(PODS, job, pod("web-1"))
    time.events[40] = lambda: job["status"].update(phase="Succeeded")
    assert time.drain(cluster, wait_for_jobs={"selector": "job"}).wait_for_jobs() == []
    assert 40 <= time.now < 42
    assert not api.evicted
    assert time.said == ["waits for the jobs train/fit-1"]


def test_who_waits_long_for_pods_lists_them_seldom(api, cluster, time):
    """Many nodes may be drained at once, and jobs may take hours."""
    api.put(PODS, pod("fit-1", labels={"job": "fit"}, npus=8))
    time.events[3600] = api.objects[PODS].clear
    lists, pods_of_node = [], pod_view.pods_of_node

    def listed(*arguments):
        lists.append(time.now)
        return pods_of_node(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pod_view, "pods_of_node", listed)
        assert time.drain(cluster, wait_for_jobs={"selector": "job"}).wait_for_jobs() == []
    assert sum(600 <= when < 660 for when in lists) <= 6
    assert max(later - earlier for earlier, later in zip(time.beats, time.beats[1:])) <= 20, "its record must not look dead"


def test_jobs_at_their_limit(api, cluster, time):
    api.put(PODS, pod("fit-1", labels={"job": "1"}, npus=1))
    remaining = time.drain(cluster, wait_for_jobs={"selector": "job", "timeout": "15"}).wait_for_jobs()
    assert [item.label for item in remaining] == ["train/fit-1"]
    assert 15 <= time.now < 17


def test_no_job_selector_waits_for_nothing(api, cluster, time):
    api.put(PODS, pod("fit-1"))
    assert time.drain(cluster).wait_for_jobs() == []
    assert not [path for _method, path in api.requests if path == PODS]


def test_components_leave(api, cluster, time):
    component = pod("plugin", owner=("DaemonSet", "npu-node-agent"), **OURS)
    api.put(PODS, component)
    time.events[4] = lambda: api.remove(component)
    time.drain(cluster).wait_components_gone(60)
    api.put(PODS, component)
    with pytest.raises(pod_blocker.Blocked, match="npu-operator/plugin .*cannot be evicted: it still runs"):
        time.drain(cluster).wait_components_gone(5)


# --- ResourceClaims ---

CLAIMS_OF_VERSION_LINE = "/apis/resource.k8s.io/v1/namespaces/train/resourceclaims"
GONE = "the plugin of the DRA driver npu.huawei.com does not run on a, so its ResourceClaim mine stays prepared"


def terminate(item):
    item["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"


def test_a_pod_with_a_claim_of_npus_goes_first(api, cluster, time):
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice())
    api.put(PODS, pod("web"), holding(pod("job"), "mine"))
    drain = time.drain(cluster)
    assert drain.simulate() == []
    assert (drain.evict_npu_pods(), api.evicted) == (1, ["job"])
    assert (drain.evict_others(), api.evicted) == (1, ["job", "web"])


def test_a_daemonset_with_a_claim_of_npus(api, cluster, time):
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice())
    api.put(PODS, holding(pod("job", owner=("DaemonSet", "d")), "mine"))
    (blocker,) = time.drain(cluster).simulate()
    assert blocker.kind == "npu-daemonset" and "it uses the ResourceClaim mine of npu.huawei.com;" in blocker.why


def test_the_plugin_of_a_dra_driver_leaves_last(api, cluster, time):
    """Run by a Deployment, it is also evicted: but not before the pods whose claims it has to unprepare are gone."""
    api.put(CLAIMS, claim("net", driver="net.example.com"))
    api.put(SLICES, resource_slice("net.example.com"))
    plugin = pod("a-plugin", volumes=plugin_volumes("net.example.com"))
    api.put(PODS, plugin, pod("web"), holding(pod("job"), "net"))

    def end_later(item):
        if item["metadata"]["name"] == "job":
            terminate(item)
            time.events[20] = lambda: api.remove(item)
        else:
            api.remove(item)

    api.on_evict = end_later
    assert time.drain(cluster).evict_others() == 3
    assert api.evicted == ["web", "job", "a-plugin"] and time.now >= 20


def test_a_plugin_that_waits_for_a_pod_that_cannot_leave(api, cluster, time):
    api.put(CLAIMS, claim("net", driver="net.example.com"))
    api.put(SLICES, resource_slice("net.example.com"))
    plugin = pod("plugin", labels={"app": "plugin"}, volumes=plugin_volumes("net.example.com"))
    api.put(PODS, plugin, holding(pod("job"), "net"))
    api.put(BUDGETS, budget(allowed=0))
    with pytest.raises(pod_blocker.Blocked) as caught:
        time.drain(cluster, drain={"timeout": 30}).evict_others()
    assert "train/plugin (ReplicaSet train/web-5d4f) cannot be evicted: it leaves after the pods that hold ResourceClaims" in str(
        caught.value
    )
    assert api.evicted == []


def test_a_plugin_that_waited_did_not_come_back(api, cluster, time):
    """Its eviction begins late; the drain must not take it for a pod that tolerates the cordon."""
    api.put(CLAIMS, claim("net", driver="net.example.com"))
    api.put(SLICES, resource_slice("net.example.com"))
    api.put(PODS, pod("plugin", volumes=plugin_volumes("net.example.com")), holding(pod("job"), "net"))
    api.on_evict = lambda item: terminate(item) if item["metadata"]["name"] == "plugin" else api.remove(item)
    with pytest.raises(pod_blocker.Blocked, match="train/plugin .*it was to terminate by .* and still runs"):
        time.drain(cluster, drain={"timeout": 30}).evict_others()


def test_nobody_is_evicted_whose_claim_nobody_would_unprepare(api, cluster, time):
    api.put(CLAIMS, claim("mine"))
    api.objects[SLICES] = {}
    api.put(PODS, holding(pod("job"), "mine"))
    (blocker,) = time.drain(cluster).simulate()
    assert blocker.kind == "no-dra-plugin" and GONE in blocker.why
    with pytest.raises(pod_blocker.Blocked, match=GONE):
        time.drain(cluster).evict_npu_pods()
    assert api.evicted == [] and time.now == 0


def test_a_pod_that_hangs_since_its_plugin_has_left(api, cluster, time):
    """The plugin leaves while the pod ends: told when the time is up. The next drain tells it at once."""
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice())
    api.put(PODS, holding(pod("job"), "mine"))
    api.on_evict = terminate
    time.events[5] = api.objects[SLICES].clear
    with pytest.raises(pod_blocker.Blocked, match="not drained after 60 s: the pod train/job .*" + GONE):
        time.drain(cluster, pod_deletion={"timeout": 60}).evict_npu_pods()
    now = time.now
    with pytest.raises(pod_blocker.Blocked, match=GONE):
        time.drain(cluster).evict_npu_pods()
    assert time.now == now


def test_a_pod_that_only_takes_its_time_is_named_with_its_claim(api, cluster, time):
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice())
    api.put(PODS, holding(pod("job"), "mine"))
    api.on_evict = terminate
    with pytest.raises(pod_blocker.Blocked, match="and still runs; it holds the ResourceClaim mine of npu.huawei.com"):
        time.drain(cluster, pod_deletion={"timeout": 60}).evict_npu_pods()


def test_a_recovery_does_not_wait_for_a_plugin_that_may_come_back_with_the_reboot(api, cluster, time):
    api.put(CLAIMS, claim("mine"))
    api.objects[SLICES] = {}
    api.put(PODS, holding(pod("job"), "mine"))
    api.on_evict = terminate
    drain = time.drain(cluster, leave_stuck=True, pod_deletion={"timeout": 60})
    assert drain.simulate() == []
    assert drain.evict_npu_pods() == 0 and api.evicted == ["job"]
    assert time.said[-1] == "no longer waits for train/job: terminating, but stuck"


def test_claims_are_read_once_while_a_drain_waits(api, cluster, time):
    api.put(CLAIMS, claim("mine"))
    api.put(SLICES, resource_slice())
    api.put(PODS, holding(pod("job"), "mine"))

    def end_later(item):
        terminate(item)
        time.events[200] = lambda: api.remove(item)

    api.on_evict = end_later
    assert time.drain(cluster).evict_npu_pods() == 1
    paths = [path for _method, path in api.requests]
    assert (paths.count(CLAIMS_OF_VERSION_LINE), paths.count(SLICES)) == (1, 1) and paths.count(PODS) > 10


def test_a_recovery_leaves_static_pods_to_the_reboot(api, cluster, time):
    api.put(PODS, pod("train-a", owner=("Node", "a"), annotations=MIRROR, npus=8))
    assert [blocker.kind for blocker in time.drain(cluster).simulate()] == ["static-pod"]
    assert time.drain(cluster, leave_stuck=True).simulate() == []


def test_a_drain_that_may_watch_lists_the_pods_when_they_change(api, cluster, time):
    """However long they take to end."""
    api.put(PODS, pod("slow"), pod("slower"))
    api.on_evict = lambda item: item["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z")

    def on_watch(handler, query):
        """They end when the drain waits."""
        api.objects[PODS].clear()
        handler.close_connection = True
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"{}\n")
        return True

    api.on_watch = on_watch
    assert time.drain(cluster).evict_others() == 2
    assert api.evicted == ["slow", "slower"]
    # What this run has just evicted is looked at again before the watch, which would report that at once.
    assert [path for method, path in api.requests if (method, path) == ("GET", PODS)] == [PODS] * 4  # one of them the watch
    assert time.now < 3
