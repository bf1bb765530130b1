# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A changed DaemonSet, rolled out against an API server with Kubernetes' controller and kubelets behind it."""

from __future__ import annotations

import copy
import json
import threading

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._components import daemonset_rollout as components_daemonset_rollout
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_pace import Pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_progress import ANNOTATION
from ansible_collections.npuops.ascend.plugins.plugin_utils._components.rollout_watch import SETTLE_SECONDS
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry

from support.kube.daemonset_stub import ALL_PODS, CHIPS, NODES, PODS, REVISIONS, SETS, Clock, DaemonSetApi, definition
from support.kube.eviction_stub import holding, pod
from support.kube.stub import NO_ANSWER

OLD, NEW = "registry.example/plugin:1", "registry.example/plugin:2"
FLEET = ("a", "b", "c")
RUNNING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


@pytest.fixture
def api():
    with DaemonSetApi() as server:
        server.fleet(*FLEET)
        rollout(server, definition(OLD)).bring_about()
        server.settle()
        assert server.running() == dict.fromkeys(FLEET, OLD)
        yield server


def rollout(api, wanted, said=None, then=lambda _second: None, at_once="1", timeout=60, run=None):
    clock = Clock(api, then)
    say = (said if said is not None else []).append
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    retrying = kube_retry.RetryingCluster(cluster, lambda _sentence: None, clock, retry_seconds=120)
    pace = Pace(at_once, timeout)
    return components_daemonset_rollout.DaemonSetRollout(retrying, copy.deepcopy(wanted), pace, say, clock, run)


def bring_about(api, image=NEW, check_mode=False, **kwargs):
    return rollout(api, definition(image), **kwargs).bring_about(check_mode)


def failure(api, *args, **kwargs):
    with pytest.raises(NpuError) as caught:
        bring_about(api, *args, **kwargs)
    return caught.value.message


def daemonset(api, name="plugin"):
    return api.objects[SETS][name]


def is_kubernetes_own(api):
    """Nothing of a rollout is left on the DaemonSet."""
    item = daemonset(api)
    return ANNOTATION not in item["metadata"]["annotations"] and item["spec"]["updateStrategy"] == RUNNING


def image_of(api):
    return daemonset(api)["spec"]["template"]["spec"]["containers"][0]["image"]


def uids(api):
    return {item["spec"]["nodeName"]: item["metadata"]["uid"] for item in api.objects[PODS].values()}


# --- a good change ---


def test_one_node_then_the_next(api):
    said = []
    change = bring_about(api, said=said)
    assert (change["action"], change["label"]) == ("change", "DaemonSet npu-operator/plugin")
    assert api.running() == dict.fromkeys(FLEET, NEW) and is_kubernetes_own(api)
    assert api.unavailable == 1 and len(api.deleted) == 3
    assert "image %s -> %s on 3 nodes: a first, then 1 at a time" % (OLD, NEW) in said[0]
    before = uids(api)
    api.pass_time(60)
    assert uids(api) == before, "the controller has nothing left to replace"
    assert bring_about(api) is None


def test_what_does_not_change_the_pods_restarts_none(api):
    before = uids(api)
    assert rollout(api, definition(OLD, at_once=2)).bring_about()
    api.settle()
    assert uids(api) == before and not api.deleted
    assert daemonset(api)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == 2


def test_check_mode_tells_and_writes_nothing(api):
    before = copy.deepcopy(api.objects)
    said = []
    run = rollout(api, definition(NEW), said)
    change = run.bring_about(check_mode=True)
    assert api.objects == before
    assert NEW in json.dumps(change["after"]) and OLD in json.dumps(change["before"])
    assert run.told == [
        {"daemonset": "npu-operator/plugin", "from": OLD, "to": NEW, "nodes": 3, "first": "a", "not_waited_for": []}
    ]


def test_the_first_is_one_whose_npus_are_not_used(api):
    for number, name in enumerate(("a", "b")):
        item = pod("train-%d" % number, node=name, npus=8)
        api.objects[ALL_PODS][item["metadata"]["name"]] = item
    run, before = rollout(api, definition(NEW)), uids(api)
    run.bring_about()
    assert run.told[0]["first"] == "c" and api.deleted[0] == before["c"]


def test_a_pod_with_a_claim_may_use_npus(api):
    """Of which driver the claim is, a rollout does not ask."""
    item = holding(pod("train", node="a"), "mine")
    api.objects[ALL_PODS][item["metadata"]["name"]] = item
    run = rollout(api, definition(NEW))
    run.bring_about()
    assert run.told[0]["first"] == "b"


@pytest.mark.parametrize("at_once, most", [("2", 2), ("50%", 3), ("100%", 5)])
def test_never_more_than_that_at_once_and_one_at_first(at_once, most):
    with DaemonSetApi() as api:
        names = ["n%d" % number for number in range(6)]
        api.fleet(*names)
        bring_about(api, OLD)
        api.settle()
        seen = []
        bring_about(api, at_once=at_once, then=lambda _second: seen.append(len(api.deleted)))
        assert api.unavailable == most and api.running() == dict.fromkeys(names, NEW)
        assert seen.count(1) * 2 >= SETTLE_SECONDS


def shares(count, image=OLD):
    container = {"name": "main", "image": image, "args": ["exec device-plugin -shareDevCount=%d" % count]}
    return definition(containers=[container])


def offers(api):
    return {name: item["status"]["allocatable"][CHIPS] for name, item in api.objects[NODES].items()}


def test_each_chip_is_offered_more_often_and_less_often_again(api):
    """A node works when it has its chips back, however many devices they are."""
    assert rollout(api, shares(4)).bring_about()["action"] == "change"
    assert offers(api) == dict.fromkeys(FLEET, "32") and is_kubernetes_own(api)
    assert rollout(api, shares(1)).bring_about()["action"] == "change"
    assert offers(api) == dict.fromkeys(FLEET, "8") and is_kubernetes_own(api)


def test_too_few_devices_are_not_taken_for_all_chips(api):
    """Where each chip is to be four devices, as many devices as before are a quarter of the chips."""
    api.put(NODES, *[dict(item, status=dict(item["status"], allocatable={CHIPS: "8"})) for item in api.objects[NODES].values()])
    api.devices = 8
    with pytest.raises(NpuError, match="2 instead of 8 of huawei.com/Ascend910"):
        rollout(api, shares(4)).bring_about()
    assert offers(api) == dict.fromkeys(FLEET, "8") and is_kubernetes_own(api)


def test_what_is_no_component_of_chips_is_not_judged_by_them():
    with DaemonSetApi() as api:
        api.fleet("a")
        rollout(api, definition(OLD, plugin=False)).bring_about()
        api.settle()

        def lose_a_chip(_second):
            api.objects[NODES]["a"]["status"]["allocatable"][CHIPS] = "7"

        rollout(api, definition(NEW, plugin=False), then=lose_a_chip).bring_about()
        assert api.running() == {"a": NEW}


@pytest.mark.parametrize("why", ["NotReady", "in maintenance", "its components are paused"])
def test_nodes_that_cannot_tell_are_not_waited_for(api, why):
    item = api.objects[NODES]["b"]
    if why == "NotReady":
        item["status"]["conditions"][0]["status"] = "Unknown"
    elif why == "in maintenance":
        item["metadata"]["annotations"]["npuops.ascend/maintenance"] = "{}"
    else:
        item["metadata"]["labels"]["npuops.ascend/components"] = "paused"
    said = []
    bring_about(api, said=said)
    assert "not waited for: b (%s)" % why in said[0]
    assert api.running()["a"] == NEW and is_kubernetes_own(api)


def goes_down(api, *names, image=NEW, seconds=3):
    """What lets those hosts go down so many seconds after they began to run that image."""
    since = {}

    def then(_second):
        for item in api.objects[PODS].values():
            name = item["spec"]["nodeName"]
            if name in names and item["spec"]["containers"][0]["image"] == image and item["status"].get("containerStatuses"):
                since.setdefault(name, api.now)
                if api.now - since[name] >= seconds:
                    api.objects[NODES][name]["status"]["conditions"][0]["status"] = "Unknown"
                    item["status"]["conditions"][0]["status"] = "False"

    return then


def down(api):
    return [name for name, item in api.objects[NODES].items() if item["status"]["conditions"][0]["status"] != "True"]


# Before its pod counts as one that works, and after.
@pytest.mark.parametrize(
    "seconds, told", [(3, "b is not waited for any more: NotReady"), (28, "b became NotReady after its pod was replaced")]
)
def test_a_node_that_goes_meanwhile_is_said(api, seconds, told):
    """By chance: the template works on another one."""
    said = []
    bring_about(api, said=said, then=goes_down(api, "b", seconds=seconds))
    assert sum(told in line for line in said) == 1
    assert [api.running()[name] for name in ("a", "c")] == [NEW, NEW] and is_kubernetes_own(api)


def test_a_component_that_takes_its_host_down_comes_to_no_second_one(api):
    message = failure(api, then=goes_down(api, *FLEET), timeout=300)
    assert "it does not work on a: NotReady since its pod was replaced (kubelet is posting ready status)" in message
    assert down(api) == ["a"] and api.running() == {"b": OLD, "c": OLD} and is_kubernetes_own(api) and image_of(api) == OLD
    assert len(api.deleted) == 2, "a host that comes up again does not start it again"
    api.objects[NODES]["a"]["status"]["conditions"][0]["status"] = "True"
    api.settle()
    assert api.running() == dict.fromkeys(FLEET, OLD)


@pytest.mark.parametrize("at_once, most", [("1", 4), ("3", 4)])
def test_a_host_that_goes_down_after_it_seemed_to_work(at_once, most):
    """Kubernetes tells of it 40 seconds later. Until then, the node is as one that works."""
    with DaemonSetApi() as api:
        names = ["n%d" % number for number in range(8)]
        api.fleet(*names)
        bring_about(api, OLD)
        api.settle()
        message = failure(api, then=goes_down(api, *names, seconds=40), at_once=at_once, timeout=300)
        assert "it does not work on n0, n1" in message and 2 <= len(down(api)) <= most
        api.settle()
        assert set(api.running().values()) == {OLD} and is_kubernetes_own(api)


def test_a_host_that_went_down_did_not_work(api):
    """As long as it seemed to, the next one was taken."""
    api.per_node["b", NEW] = "hangs"
    assert "it does not work on a: NotReady since" in failure(api, then=goes_down(api, "a", seconds=28), timeout=300)
    assert len(api.deleted) == 4, "both have the previous template again"
    assert api.running() == {"b": OLD, "c": OLD} and is_kubernetes_own(api)


def test_a_node_that_is_down_with_the_previous_pod_says_nothing(api):
    """An earlier run was killed before it replaced that."""
    assert killed(api, NEW, 3, done=False) and not api.deleted
    api.objects[NODES]["a"]["status"]["conditions"][0]["status"] = "Unknown"
    bring_about(api)
    assert [api.running()[name] for name in ("b", "c")] == [NEW, NEW] and is_kubernetes_own(api)


def test_a_node_that_is_down_for_its_maintenance_proves_nothing(api):
    lose = goes_down(api, "a")

    def then(second):
        lose(second)
        if down(api):
            api.objects[NODES]["a"]["metadata"]["annotations"]["npuops.ascend/maintenance"] = "{}"

    said = []
    bring_about(api, said=said, then=then)
    assert any("a is not waited for any more: in maintenance" in line for line in said)
    assert [api.running()[name] for name in ("b", "c")] == [NEW, NEW] and is_kubernetes_own(api)


def test_without_a_node_that_works_it_is_no_success(api):
    def then(_second):
        if api.deleted:
            for item in api.objects[NODES].values():
                item["metadata"]["annotations"]["npuops.ascend/maintenance"] = "{}"

    assert "it was not seen to work on any node: a (in maintenance)" in failure(api, then=then)
    assert is_kubernetes_own(api) and image_of(api) == OLD


def test_where_nothing_works_kubernetes_replaces_all(api):
    """There is nothing to lose, and nothing to tell good from bad."""
    bring_about_plain(api, "registry.example/plugin:bad", "no image")
    said = []
    bring_about(api, said=said)
    assert "its pods work on no node" in said[0] and is_kubernetes_own(api)
    api.settle()
    assert api.running() == dict.fromkeys(FLEET, NEW)


def bring_about_plain(api, image, fate):
    """A user has changed the image with kubectl, which broke node after node."""
    api.images[image] = fate
    daemonset(api)["spec"]["template"]["spec"]["containers"][0]["image"] = image
    daemonset(api)["metadata"]["generation"] += 1
    for item in api.objects[PODS].values():
        item["status"] = {"phase": "Pending"}
    api.settle()


def test_a_template_that_works_nowhere_is_not_what_it_goes_back_to(api):
    """Kubernetes replaces pods with it, one at a time, and stopped at the first."""
    api.images["registry.example/plugin:bad"] = "hangs"
    daemonset(api)["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/plugin:bad"
    daemonset(api)["metadata"]["generation"] += 1
    api.settle()
    assert sorted(api.running().values()) == [OLD, OLD]
    api.images[NEW] = "hangs"
    assert "Its previous template with the image %s is restored" % OLD in failure(api)
    api.settle()
    assert api.running() == dict.fromkeys(FLEET, OLD)


# --- a bad one ---


@pytest.mark.parametrize(
    "fate, why",
    [
        ("no image", "cannot get its image %s: %s: not found (ErrImagePull)" % (NEW, NEW)),
        ("ends", "keeps ending: exit code 127, 3 restarts (CrashLoopBackOff)"),
        ("hangs", "its pod is Running; no events yet"),
        ("no chips", "its pod is Ready, but the node offers 0 instead of 8 of %s" % CHIPS),
    ],
)
def test_it_returns_by_itself(api, fate, why):
    api.images[NEW] = fate
    message = failure(api)
    assert message.startswith("DaemonSet npu-operator/plugin: with the image %s it does not work on a: " % NEW) and why in message
    assert "the image %s is restored on all nodes that had the new one" % OLD in message and "run this again" in message
    assert len(api.deleted) == 2 and api.unavailable == 1
    assert api.running() == dict.fromkeys(FLEET, OLD) and is_kubernetes_own(api) and image_of(api) == OLD
    assert {item["status"]["allocatable"][CHIPS] for item in api.objects[NODES].values()} == {"8"}
    # And with what works everything goes on, as if nothing had been.
    api.images.clear()
    bring_about(api, "registry.example/plugin:3")
    assert set(api.running().values()) == {"registry.example/plugin:3"}


def test_it_returns_from_all_nodes_that_have_it(api):
    """It worked on two; on the third it does not."""
    api.per_node["c", NEW] = "no chips"
    assert "it does not work on c: " in failure(api)
    assert api.running() == dict.fromkeys(FLEET, OLD) and is_kubernetes_own(api) and api.unavailable <= 2
    assert {item["status"]["allocatable"][CHIPS] for item in api.objects[NODES].values()} == {"8"}


def test_what_an_earlier_template_had_is_not_left_in_the_next(api):
    """The template of the second definition has a field that neither the first nor the third has."""
    api.images[NEW] = "hangs"
    with pytest.raises(NpuError):
        rollout(api, definition(NEW, hostNetwork=True, terminationGracePeriodSeconds=5)).bring_about()
    rollout(api, definition("registry.example/plugin:3")).bring_about()
    assert not {"hostNetwork", "terminationGracePeriodSeconds"} & set(daemonset(api)["spec"]["template"]["spec"])


def test_the_last_words_are_told_and_cut(api):
    api.images[NEW] = "ends"
    words = ["one", "{{ lookup('pipe', 'id') }} \x1b[31mred", "x" * 10000]
    api.logs.update({"plugin-%d" % number: "\n".join(words) for number in range(20)})
    message = failure(api)
    assert "Its last log lines:\n  xxx" in message or "{{ lookup('pipe', 'id') }} [31mred" in message
    assert "\x1b" not in message and len(message) < 3000


def test_the_old_one_does_not_work_any_more_either(api):
    def then(_second):
        if api.deleted:
            api.per_node["a", OLD] = "hangs"

    api.images[NEW] = "hangs"
    message = failure(api, then=then)
    assert "With the previous template it does not work on a either" in message
    assert is_kubernetes_own(api) and image_of(api) == OLD


# --- several runs, and people ---


def test_two_runs_at_once_do_not_fight(api):
    """The second waits for the first, and finds its work done."""
    said = []
    # The other one's time passes in that of this one: it is driven by hand.
    first = Steps(rollout, api, definition(NEW), "run-1")

    def drive(_second):
        first.go_on()

    first.go_on_until(lambda: len(api.deleted) == 1)
    assert rollout(api, definition(NEW), said, run="run-2", then=drive).bring_about() is None
    first.end()
    assert first.error is None and "the run run-1 rolls it out; waiting" in said[0]
    assert len(api.deleted) == 3 and api.unavailable == 1 and api.running() == dict.fromkeys(FLEET, NEW)


def test_a_run_that_stalls_loses_the_rollout(api):
    first = Steps(rollout, api, definition(NEW), "run-1")
    first.go_on_until(lambda: len(api.deleted) == 1)
    bring_about(api, run="run-2")
    first.end()
    assert "the run" in str(first.error) or "Another client changed" in str(first.error)
    assert api.running() == dict.fromkeys(FLEET, NEW) and is_kubernetes_own(api)


def test_the_next_run_sees_that_a_host_went_down_with_it(api):
    first = Steps(rollout, api, definition(NEW), "run-1")
    first.go_on_until(lambda: len(api.deleted) == 1)
    api.pass_time(5)
    api.objects[NODES]["a"]["status"]["conditions"][0]["status"] = "Unknown"
    assert "it does not work on a: NotReady since" in failure(api, run="run-2")
    assert down(api) == ["a"] and is_kubernetes_own(api) and image_of(api) == OLD
    first.end()


def test_the_next_run_sees_first_whether_it_works_on_another_node(api):
    """Which an earlier run knew."""
    first = Steps(rollout, api, definition(NEW), "run-1")
    first.go_on_until(lambda: len(api.deleted) == 2)
    api.pass_time(5)
    api.objects[NODES]["b"]["status"]["conditions"][0]["status"] = "Unknown"
    said, began, taken = [], api.now, []
    bring_about(api, said=said, run="run-2", then=lambda second: taken.append(second - began) if len(api.deleted) > 2 else None)
    assert any("b is not waited for any more: NotReady" in line for line in said)
    assert taken[0] >= 30 + SETTLE_SECONDS, "before that, c is not taken"
    assert [api.running()[name] for name in ("a", "c")] == [NEW, NEW] and is_kubernetes_own(api)
    first.end()


@pytest.mark.parametrize("begun", [False, True], ids=["by this run", "by a run that was killed, too"])
def test_what_an_earlier_run_began_and_this_one_takes_back_is_a_change(api, begun):
    first = Steps(rollout, api, definition(NEW), "run-1")
    first.go_on_until(lambda: len(api.deleted) == 1)
    if begun:
        second = Steps(rollout, api, definition(OLD), "run-2")
        second.go_on_until(lambda: json.loads(daemonset(api)["metadata"]["annotations"][ANNOTATION])["direction"] == "back")
    run = rollout(api, definition(OLD), run="run-3")
    change = run.bring_about()
    assert (change["action"], change["label"]) == ("change", "DaemonSet npu-operator/plugin")
    if not begun:
        told = {"daemonset": "npu-operator/plugin", "from": NEW, "to": OLD, "nodes": 3, "first": "a", "not_waited_for": []}
        assert run.told == [told]
    assert api.running() == dict.fromkeys(FLEET, OLD) and is_kubernetes_own(api)
    assert bring_about(api, OLD) is None
    first.end()


class Disturbed:
    """A cluster whose API server is ``away(second)``, or lets each look at the DaemonSet take so many ``seconds``."""

    def __init__(self, cluster, api, away=lambda _second: False, seconds=0):
        self._cluster, self._api, self._away, self._seconds = cluster, api, away, seconds
        self.without_retries = self

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def _wait(self, path):
        if self._away(self._api.now):
            raise kube_client.Unreachable("The Kubernetes API cannot be reached.")
        if path.endswith("/daemonsets/plugin") and self._seconds:
            self._api.pass_time(self._seconds)

    def get(self, path, **params):
        self._wait(path)
        return self._cluster.get(path, **params)

    def request(self, method, path, **arguments):
        self._wait("")
        return self._cluster.request(method, path, **arguments)

    def merge_patch(self, path, body, **params):
        self._wait("")
        return self._cluster.merge_patch(path, body, **params)


def taken_over(api, beats, **disturbed):
    """The second at which another run takes over the rollout of one that shows a sign of life at each second of ``beats``.

    Seconds count from when that other run begins to wait.
    """
    first = Steps(rollout, api, definition(NEW), "run-1")
    first.go_on_until(lambda: len(api.deleted) == 1)
    began, found, left = api.now, [], sorted(beats)
    away = disturbed.pop("away", lambda _second: False)

    def then(_second):
        written = daemonset(api)["metadata"]["annotations"]
        progress = json.loads(written.get(ANNOTATION, "{}"))
        if progress.get("run") == "run-1":
            while left and left[0] <= api.now - began:
                progress["beat"] += 1
                left.pop(0)
            written[ANNOTATION] = json.dumps(progress)
        else:
            found.append(api.now - began)

    clock = Clock(api, then)
    cluster = kube_client.connect({"host": api.address, "api_key": "token"})
    cluster = Disturbed(cluster, api, lambda second: away(second - began), **disturbed)
    retrying = kube_retry.RetryingCluster(cluster, lambda _sentence: None, clock, retry_seconds=120)
    wanted = copy.deepcopy(definition(NEW))
    components_daemonset_rollout.DaemonSetRollout(retrying, wanted, Pace("1", 600), print, clock, "run-2").bring_about()
    assert api.running() == dict.fromkeys(FLEET, NEW) and is_kubernetes_own(api)
    first.end()
    return found[0]


def test_a_dead_run_is_waited_for_half_a_minute(api):
    assert 30 <= taken_over(api, []) <= 34


def test_while_the_api_server_is_away_no_run_can_show_that_it_lives(api):
    """The run that rolls out needs some seconds more than the one that waits to see that the server is back."""
    beats = [5, 85, 95]
    assert 125 <= taken_over(api, beats, away=lambda second: 8 <= second < 70) <= 130


def test_an_api_server_that_is_away_again_and_again_keeps_no_dead_run_alive(api):
    assert 30 <= taken_over(api, [], away=lambda second: second % 20 >= 12) <= 300


def test_where_each_look_takes_long_signs_of_life_may_come_as_late(api):
    assert 350 <= taken_over(api, [70, 150], seconds=12) <= 430


def test_where_each_look_takes_long_a_dead_run_is_replaced(api):
    assert 30 <= taken_over(api, [], seconds=12) <= 280


def test_it_shows_that_it_lives_while_it_waits_for_the_controller_manager(api):
    """Which may come back later than the API server."""
    changed = {}

    def then(second):
        text = daemonset(api)["metadata"]["annotations"].get(ANNOTATION)
        changed.setdefault(text, second)
        api.blind = second < began + 45

    began, api.blind = api.now, True
    bring_about(api, then=then)
    seconds = sorted(second for text, second in changed.items() if text)
    assert [second - began for second in seconds if second <= began + 45][-1] > 30
    assert max(after - before for before, after in zip(seconds, seconds[1:], strict=False)) <= 15


@pytest.mark.parametrize("image", [OLD, "registry.example/plugin:theirs"])
def test_what_a_person_does_meanwhile_stays(api, image):
    """kubectl rollout undo, kubectl set image."""

    def then(_second):
        if len(api.deleted) == 1 and image_of(api) == NEW:
            item = daemonset(api)
            item["spec"]["template"]["spec"]["containers"][0]["image"] = image
            item["metadata"]["generation"] += 1
            item["metadata"]["managedFields"] = [{"manager": "kubectl-set", "time": "2026-11-23T10:00:00Z"}]
            api.put(SETS, item)

    message = failure(api, then=then)
    assert "(kubectl-set) while it was rolled out" in message and "with the image %s" % image in message
    assert is_kubernetes_own(api)
    api.settle()
    assert api.running() == dict.fromkeys(FLEET, image)


def test_a_person_who_deletes_the_daemonset(api):
    def then(_second):
        if api.deleted:
            api.objects[SETS].clear()

    assert "was deleted while it was rolled out" in failure(api, then=then)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": 2}', "x" * 200000, json.dumps({"format": 1, "run": "r", "beat": -1})]
)
def test_an_annotation_that_nobody_of_us_wrote(api, text):
    daemonset(api)["metadata"]["annotations"][ANNOTATION] = text
    before = copy.deepcopy(api.objects)
    message = failure(api)
    assert "cannot be read" in message and ANNOTATION + "-" in message and len(message) < 1000
    assert api.objects == before


def test_revisions_of_others_are_not_gone_back_to(api):
    """Another client has made a ControllerRevision with the labels of the one that works, and the highest number."""
    mine = next(iter(api.objects[REVISIONS].values()))
    theirs = copy.deepcopy(mine)
    theirs["metadata"].update(name="plugin-evil", ownerReferences=[dict(mine["metadata"]["ownerReferences"][0], uid="other")])
    theirs.update(revision=10**6, data={"spec": {"template": {"spec": {"containers": [{"image": "evil"}]}}}})
    api.put(REVISIONS, theirs)
    api.images[NEW] = "no image"
    failure(api)
    assert api.running() == dict.fromkeys(FLEET, OLD)


def test_a_way_back_that_is_no_template_is_found_before_anything_is_changed(api):
    for item in api.objects[REVISIONS].values():
        item["data"] = {"spec": {"template": {"spec": {}}}}
    before = copy.deepcopy(api.objects)
    assert "contains no usable pod template" in failure(api)
    assert api.objects == before


def test_a_controller_manager_that_is_away(api):
    api.blind = True
    daemonset(api)["metadata"]["generation"] += 1
    assert "the controller manager has not seen" in failure(api)
    assert image_of(api) == OLD and not api.deleted


# --- killed at every call, and what the next run makes of it ---


class _Killed(BaseException):
    pass


class Mortal:
    """A cluster whose client dies at the writing call number ``at``, before or after the server has done it."""

    def __init__(self, cluster, at, done):
        self._cluster, self._left, self._done = cluster, at, done
        self.without_retries = self

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def _count(self, call, dry):
        if dry:
            return call()
        self._left -= 1
        if self._left == 0 and not self._done:
            raise _Killed
        answer = call()
        if self._left == 0:
            raise _Killed
        return answer

    def request(self, method, path, **arguments):
        return self._count(lambda: self._cluster.request(method, path, **arguments), method == "get" or "dry_run" in arguments)

    def merge_patch(self, path, body, **params):
        return self._count(lambda: self._cluster.merge_patch(path, body, **params), "dry_run" in params)


def killed(api, image, at, done):
    """Whether a run for that image died at that call; otherwise it ended, well or not."""
    clock = Clock(api)
    cluster = Mortal(kube_client.connect({"host": api.address, "api_key": "token"}), at, done)
    run = components_daemonset_rollout.DaemonSetRollout(cluster, definition(image), Pace("1", 60), print, clock)
    try:
        run.bring_about()
    except _Killed:
        return True
    except NpuError:
        pass
    return False


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("fate", [None, "no image"])
@pytest.mark.parametrize("then_wanted", [NEW, OLD, "registry.example/plugin:3"])
def test_killed_at_every_call(fate, done, then_wanted):
    reached = 0
    for at in range(1, 100):
        with DaemonSetApi() as api:
            api.fleet("a", "b")
            rollout(api, definition(OLD)).bring_about()
            api.settle()
            api.images[NEW] = fate
            if not killed(api, NEW, at, done):
                break
            reached = at
            api.pass_time(20)
            try:
                bring_about(api, then_wanted)
                ended = then_wanted
            except NpuError as exc:
                assert fate and then_wanted == NEW, (at, exc.message)
                ended = OLD
            assert ended == then_wanted or fate
            assert not (fate and ended == NEW), at
            assert api.running() == dict.fromkeys(("a", "b"), ended), at
            assert is_kubernetes_own(api) and image_of(api) == ended, at
            assert api.unavailable <= 1, at
            before = uids(api)
            api.pass_time(60)
            assert uids(api) == before, at
            if fate is None or then_wanted != NEW:
                assert bring_about(api, then_wanted) is None, at
    assert reached >= 4


@pytest.mark.parametrize("number", range(1, 30))
def test_an_answer_that_is_lost(number):
    """The server has done it, and the connection ends: what is repeated finds its own effect."""
    with DaemonSetApi() as api:
        api.fleet("a", "b")
        rollout(api, definition(OLD)).bring_about()
        api.settle()
        lost = Lost(api, number)
        api.answer = lost.answer
        bring_about(api)
        assert api.running() == {"a": NEW, "b": NEW} and is_kubernetes_own(api) and api.unavailable == 1


class Lost:
    """Loses the answer to one writing request."""

    def __init__(self, api, number):
        self._usual, self._left = api.answer, number

    def answer(self, method, path, query, body):
        answer = self._usual(method, path, query, body)
        if method != "GET" and "dryRun" not in query:
            self._left -= 1
            if self._left == 0:
                return NO_ANSWER
        return answer


class Steps:
    """A run that goes on only when it is told to: in a thread of its own, between two of its sleeps."""

    def __init__(self, make, api, wanted, run):
        self._mine, self._theirs = threading.Semaphore(0), threading.Semaphore(0)
        self.error, self.over = None, False
        self._run = make(api, wanted, run=run)
        self._run._clock = self
        self._api = api
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self):
        self._mine.acquire()
        try:
            self._run.bring_about()
        except NpuError as exc:
            self.error = exc.message
        self.over = True
        self._theirs.release()

    def monotonic(self):
        return self._api.now

    def sleep(self, _seconds):
        self._theirs.release()
        self._mine.acquire()

    def go_on(self):
        if not self.over:
            self._mine.release()
            self._theirs.acquire()

    def go_on_until(self, condition):
        while not condition() and not self.over:
            self.go_on()
            self._api.pass_time(2)

    def end(self):
        self.go_on_until(lambda: self.over)
