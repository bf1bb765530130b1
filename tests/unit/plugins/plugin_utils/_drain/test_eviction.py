# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socket

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import eviction

from support.kube.eviction_stub import BUDGETS, PODS, EvictionApi, budget, pod, violation


@pytest.fixture
def api():
    with EvictionApi() as server:
        yield server


class Time:
    """A clock that only moves when somebody sleeps. ``events``: second -> function."""

    def __init__(self):
        self.now, self.events, self.beats, self.said = 0.0, {}, [], []

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)
        for when in sorted(self.events):
            if when <= self.now:
                self.events.pop(when)()

    def drain(self, cluster, node="a", leave_stuck=False, namespace="npu-operator", **variables):
        return eviction.Drain(
            cluster,
            node,
            eviction.DrainPolicy.of(**variables),
            beat=lambda: self.beats.append(self.now),
            say=self.said.append,
            sleep=self.sleep,
            clock=lambda: self.now,
            leave_stuck=leave_stuck,
            namespace=namespace,
        )


@pytest.fixture
def time():
    return Time()


def kinds(*items):
    return [eviction.Pod(item).kind for item in items]


def test_kinds():
    assert kinds(
        pod("done", phase="Succeeded", npus=1),
        pod("static", owner=("Node", "a"), annotations={"kubernetes.io/config.mirror": "x"}),
        pod("plugin", owner=("DaemonSet", "ascend-device-plugin-daemonset"), namespace="npu-operator", npus=0),
        pod("proxy", owner=("DaemonSet", "proxy")),
        pod("train", npus=8),
        pod("vnpu", npus=1, resource="huawei.com/Ascend910-2c"),
        pod("web"),
    ) == ["finished", "mirror", "component", "daemonset", "npu", "npu", "other"]


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
    assert eviction.Pod(pod("web-1", owner=owner, labels=labels)).owner_text == told


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


def test_a_users_pod_with_our_node_selector_is_evicted(api, cluster, time):
    api.put(PODS, pod("serve-1", npus=4, node_selector=OURS["node_selector"]))
    assert time.drain(cluster).evict_npu_pods() == 1 and api.evicted == ["serve-1"]


def test_another_namespace_of_ours(api, cluster, time):
    api.put(PODS, pod("x", owner=("DaemonSet", "npu-exporter"), namespace="ascend"))
    with pytest.raises(eviction.Blocked, match="ascend/x"):
        time.drain(cluster, namespace="ascend").wait_components_gone(5)
    time.drain(cluster).wait_components_gone(5)


def test_requests_add_up():
    item = pod("a", npus=2)
    item["spec"]["containers"] *= 2
    assert eviction.Pod(item).requests == {"huawei.com/Ascend910": 4}


# --- policy ---


def test_every_value_may_be_a_string():
    policy = eviction.DrainPolicy.of(
        {"selector": "app=train", "timeout": "60"},
        {"force": "true", "timeout": "5", "delete_empty_dir": "no"},
        {"enable": "false", "force": "", "timeout": "", "delete_empty_dir": "yes", "skip_selector": ""},
    )
    assert (policy.jobs_timeout, policy.deletion_force, policy.deletion_timeout) == (60, True, 5)
    assert (policy.drain_enable, policy.drain_force, policy.drain_timeout) == (False, False, 300)
    assert (policy.deletion_delete_empty_dir, policy.drain_delete_empty_dir) == (False, True)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"drain": {"force": "perhaps"}}, r"npu_upgrade_drain\.force is 'perhaps'"),
        ({"drain": {"timeout": "-1"}}, r"npu_upgrade_drain\.timeout is '-1'"),
        ({"pod_deletion": {"timeout": "soon"}}, r"npu_upgrade_pod_deletion\.timeout is 'soon'"),
        ({"pod_deletion": {"tiemout": 1}}, "npu_upgrade_pod_deletion has no 'tiemout'; it has force, timeout"),
        ({"wait_for_jobs": "app=train"}, "npu_upgrade_wait_for_jobs is not a mapping"),
        ({"wait_for_jobs": {"selector": "a b"}}, r"npu_upgrade_wait_for_jobs\.selector is not a label selector"),
    ],
)
def test_what_is_wrong_with_a_knob_is_told_by_name(variables, message):
    with pytest.raises(NpuError, match=message):
        eviction.DrainPolicy.of(**variables)


# --- looking ahead ---


def simulate(cluster, own_pod=None, **variables):
    pods = eviction.pods_of_node(cluster, "a")
    return eviction.simulate(cluster, pods, eviction.DrainPolicy.of(**variables), own_pod=own_pod)


def test_simulation_names_budget_pod_and_owner_and_changes_nothing(api, cluster):
    api.put(PODS, pod("web-1", labels={"app": "web", "pod-template-hash": "5d4f"}), pod("elsewhere", node="b"))
    api.put(BUDGETS, budget("web", allowed=0, healthy=2, desired=2))
    (blocker,) = simulate(cluster)
    assert blocker.text == (
        "the pod train/web-1 (Deployment train/web) cannot be evicted: the PodDisruptionBudget train/web allows no disruption"
        " now: 2 healthy, 2 needed"
    )
    assert blocker.result()["budget"] == {
        "namespace": "train",
        "name": "web",
        "disruptions_allowed": 0,
        "current_healthy": 2,
        "desired_healthy": 2,
    }
    assert not api.evicted


def test_pods_that_must_go_one_at_a_time_block_nothing(api, cluster):
    api.put(PODS, *[pod("web-%d" % number) for number in range(3)])
    api.put(BUDGETS, budget(allowed=1, healthy=3))
    assert simulate(cluster) == []
    assert sorted(api.dry_runs) == ["web-0", "web-1", "web-2"]
    assert not api.evicted


def test_simulation_hears_what_the_status_does_not_tell(api, cluster):
    """An admission webhook denies it; or the budget is so new that nobody has counted."""
    api.put(PODS, pod("web-1"), pod("guarded", labels={"app": "other"}))
    api.put(BUDGETS, budget(allowed=1))
    api.refuse["web-1"] = (
        429,
        {"message": "m", "details": {"causes": [{"message": "The budget is being processed."}]}},
    )
    api.refuse["guarded"] = (403, {"message": 'admission webhook "guard" denied the request: not today'})
    assert [blocker.text for blocker in simulate(cluster)] == [
        "the pod train/web-1 (ReplicaSet train/web-5d4f) cannot be evicted: the PodDisruptionBudget train/web: The budget is being"
        " processed",
        "the pod train/guarded (ReplicaSet train/web-5d4f) cannot be evicted: The Kubernetes API at %s refuses: admission webhook"
        ' "guard" denied the request: not today' % api.address,
    ]


def test_missing_rights_are_no_blocker_but_an_error(api, cluster):
    api.put(PODS, pod("web-1"))
    api.refuse["web-1"] = (
        403,
        {"message": 'User "x" cannot create resource "pods/eviction" in API group "" in the namespace "train"'},
    )
    with pytest.raises(NpuError, match='Allow "create" on "pods/eviction" in the namespace train'):
        simulate(cluster)


@pytest.mark.parametrize(
    ("item", "variables", "kind"),
    [
        (pod("x", owner=None), {}, "no-controller"),
        (pod("x", owner=None), {"drain": {"force": True}}, None),
        (pod("x", owner=None, npus=1), {"drain": {"force": True}}, "no-controller"),
        (pod("x", owner=None, npus=1), {"pod_deletion": {"force": True}}, None),
        (pod("x", volumes=[{"name": "d", "emptyDir": {}}]), {}, "empty-dir"),
        (pod("x", volumes=[{"name": "d", "emptyDir": {}}]), {"drain": {"delete_empty_dir": True}}, None),
        (pod("x", owner=None), {"drain": {"skip_selector": "app=web"}}, None),
        (pod("x", owner=None, npus=1), {"drain": {"skip_selector": "app=web"}}, "no-controller"),
        (pod("x", owner=None), {"drain": {"enable": False}}, None),
        (pod("x", owner=("DaemonSet", "d")), {}, None),
        (pod("x", owner=("DaemonSet", "d"), npus=1), {}, "npu-daemonset"),
        (pod("x", owner=None, phase="Succeeded"), {}, None),
    ],
)
def test_what_policy_and_owner_keep(api, cluster, item, variables, kind):
    api.put(PODS, item)
    assert [blocker.kind for blocker in simulate(cluster, **variables)] == ([kind] if kind else [])


def test_a_job_that_is_waited_for_is_judged_when_its_turn_comes(api, cluster, time):
    api.put(PODS, pod("fit", owner=None, npus=1))
    variables = {"wait_for_jobs": {"selector": "app=web", "timeout": 5}}
    assert simulate(cluster, **variables) == []
    assert api.dry_runs == []
    drain = time.drain(cluster, **variables)
    assert [item.name for item in drain.wait_for_jobs()] == ["fit"]
    with pytest.raises(eviction.Blocked, match="it has no controller"):
        drain.evict_npu_pods()


def test_several_budgets_on_one_pod(api, cluster):
    api.put(PODS, pod("web-1"))
    api.put(BUDGETS, budget("one", allowed=1), budget("two", allowed=1))
    (blocker,) = simulate(cluster)
    assert blocker.kind == "several-budgets"
    assert "train/one, train/two" in blocker.text


@pytest.mark.parametrize(
    ("ready", "phase", "spec", "blocked"),
    [
        (True, "Running", {}, True),
        (False, "Running", {}, False),  # enough others are healthy
        (False, "Running", {"desired": 3}, True),
        (False, "Running", {"desired": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, False),
        (False, "Pending", {"desired": 3}, False),
    ],
)
def test_unhealthy_pods_under_a_budget(ready, phase, spec, blocked):
    budgets = eviction.Budgets([budget(allowed=0, **spec)])
    assert bool(budgets.objection(eviction.Pod(pod("x", ready=ready, phase=phase)))) is blocked


def test_this_very_run_is_not_evicted(api, cluster, monkeypatch, time):
    api.put(PODS, pod(socket.gethostname()))
    assert eviction.own_pod_name() is None
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    with pytest.raises(eviction.Blocked, match="Ansible itself runs in it"):
        time.drain(cluster).evict_others()
    assert not api.evicted


def test_many_pods_with_one_cause_are_told_together():
    items = [eviction.Pod(pod("web-%d" % number)) for number in range(5)]
    budgets = eviction.Budgets([budget()])
    text = eviction.told([budgets.objection(item) for item in items])
    assert text.startswith(
        "the pods train/web-0, train/web-1, train/web-2 and 2 more (ReplicaSet train/web-5d4f) cannot be evicted"
    )


# --- acting ---


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
    with pytest.raises(eviction.Blocked) as caught:
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
    with pytest.raises(eviction.Blocked, match="to terminate by 2026-11-21T13:00:00Z and still runs"):
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
    with pytest.raises(eviction.Blocked, match="PodDisruptionBudget"):
        time.drain(cluster, drain={"timeout": 3}, leave_stuck=True).evict_others()


def test_policy_stops_before_the_first_eviction(api, cluster, time):
    api.put(PODS, pod("web-1"), pod("bare", owner=None))
    with pytest.raises(eviction.Blocked, match=r"train/bare cannot be evicted: it has no controller .*npu_upgrade_drain\.force"):
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


def test_a_pod_that_keeps_coming_back(api, cluster, time):
    numbers = iter(range(1, 1000))

    def come_back(item):
        api.remove(item)
        api.put(PODS, dict(pod("web-%d" % next(numbers))))

    api.put(PODS, pod("web-0"))
    api.on_evict = come_back
    with pytest.raises(eviction.Blocked, match="it tolerates the cordon"):
        time.drain(cluster, drain={"timeout": 5}).evict_others()


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
    lists, pods_of_node = [], eviction.pods_of_node

    def listed(*arguments):
        lists.append(time.now)
        return pods_of_node(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eviction, "pods_of_node", listed)
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
    with pytest.raises(eviction.Blocked, match="npu-operator/plugin .*cannot be evicted: it still runs"):
        time.drain(cluster).wait_components_gone(5)
