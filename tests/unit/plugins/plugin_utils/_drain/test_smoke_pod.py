# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet.fake_fleet import Clock

PODS = "/api/v1/namespaces/train/pods"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: smoke, namespace: train}
spec:
  containers: [{name: main, image: registry/smoke:1}]
"""


@pytest.fixture
def smoke(api):
    """A function that makes the SmokePod; its pod's states (dicts) follow each other with every second."""

    def make(*states, timeout=60):
        clock, beats = Clock(), []
        left = list(states)

        def beat():
            beats.append(clock.now())
            for pod in api.objects.get(PODS, {}).values():
                if left:
                    pod["status"] = left.pop(0)

        cluster = kube_client.connect({"host": api.address, "api_key": "token"})
        made = smoke_pod.SmokePod(cluster, "npu-a", smoke_pod.read(MANIFEST), timeout, beat, print, clock)
        made.beats = beats
        return made

    return make


def created(api):
    return [path for method, path in api.requests if method == "POST"]


def test_succeeds(api, smoke):
    pod = smoke({"phase": "Pending"}, {"phase": "Running"}, {"phase": "Succeeded"})
    pod.run()
    assert created(api) == [PODS] and api.objects[PODS] == {}
    assert len(pod.beats) >= 3


def test_no_limit(api, smoke):
    pod = smoke(*[{"phase": "Pending"}] * 1000, {"phase": "Succeeded"}, timeout=0)
    pod.run()
    assert len(pod.beats) > 1000


def test_fails(api, smoke):
    ended = {"state": {"terminated": {"exitCode": 3}}, "name": "main"}
    pod = smoke({"phase": "Failed", "containerStatuses": [ended]})
    api.logs["smoke-%s" % smoke_pod.for_node(smoke_pod.read(MANIFEST), "npu-a")["metadata"]["labels"][smoke_pod.LABEL]] = (
        "one\nno device\n"
    )
    with pytest.raises(smoke_pod.SmokeFailed, match="failed: its container main ended with 3, its last line: no device"):
        pod.run()
    assert api.objects[PODS] == {}


def test_a_line_without_end_is_not_waited_for(api, smoke, endless):
    ended = {"state": {"terminated": {"exitCode": 3}}, "name": "main"}
    pod = smoke({"phase": "Failed", "containerStatuses": [ended]})
    name = smoke_pod.for_node(smoke_pod.read(MANIFEST), "npu-a")["metadata"]["name"]
    api.logs[name] = endless
    with pytest.raises(smoke_pod.SmokeFailed, match="ended with 3, its last line: xxx"):
        pod.run()
    assert endless.sent < endless.all


def test_too_slow(api, smoke):
    with pytest.raises(smoke_pod.SmokeFailed, match="did not succeed within 30 s: it is Running; no events yet"):
        smoke(*[{"phase": "Running"}] * 100, timeout=30).run()
    assert api.objects[PODS] == {}


def test_its_image_does_not_exist(api, smoke):
    waiting = {"reason": "ErrImagePull", "message": "registry/smoke:1: not found"}
    pod = smoke(
        {"phase": "Pending", "containerStatuses": [{"name": "main", "image": "registry/smoke:1", "state": {"waiting": waiting}}]},
        timeout=10**6,
    )
    with pytest.raises(smoke_pod.SmokeFailed, match="cannot get its image registry/smoke:1"):
        pod.run()


def test_what_a_dead_run_left_does_not_count(api, smoke):
    pod = smoke({"phase": "Failed"})
    left = smoke_pod.for_node(smoke_pod.read(MANIFEST), "npu-a")
    left["status"] = {"phase": "Succeeded"}
    api.put(PODS, left)
    with pytest.raises(smoke_pod.SmokeFailed, match="failed"):
        pod.run()
    assert [method for method, path in api.requests if method in ("POST", "DELETE")] == ["DELETE", "POST", "DELETE"]


def test_deleted_while_it_runs(api, smoke):
    pod = smoke()

    def delete_it():
        api.objects[PODS].clear()

    pod._beat = delete_it
    with pytest.raises(smoke_pod.SmokeFailed, match="deleted while it ran"):
        pod.run()


def test_refused(api, smoke):
    api.faults["POST", PODS] = (422, "spec.containers[0].image: Required value")
    with pytest.raises(smoke_pod.SmokeFailed, match="cannot be created: .*Required value"):
        smoke().run()


@pytest.mark.parametrize(("period", "asked"), [(None, None), (30, None), (600, 30)])
def test_a_pod_that_ends_slowly_has_30_seconds_for_it(api, smoke, monkeypatch, period, asked):
    """Otherwise, the next one of its name would find it, and fail."""
    options, answer = [], api.answer

    def seen(method, path, query, body):
        if method == "DELETE":
            options.append(body and body.get("gracePeriodSeconds"))
        return answer(method, path, query, body)

    monkeypatch.setattr(api, "answer", seen)
    pod = smoke({"phase": "Succeeded"})
    pod._pod["spec"].update({"terminationGracePeriodSeconds": period} if period else {})
    pod.run()
    assert options == [asked] and api.objects[PODS] == {}


QUOTA = (409, 'Operation cannot be fulfilled on resourcequotas "npus": the object has been modified; please apply your changes')


def test_others_create_pods_under_the_same_quota(api, smoke):
    api.faults["POST", PODS] = QUOTA
    pod, beat = smoke(*[{"phase": "Running"}] * 3, {"phase": "Succeeded"}), None

    def until_the_quota_rests():
        if len(pod.beats) == 4:
            api.faults.clear()
        beat()

    beat, pod._beat = pod._beat, until_the_quota_rests
    pod.run()
    assert len(created(api)) > 1


def test_a_quota_that_never_rests(api, smoke):
    api.faults["POST", PODS] = QUOTA
    with pytest.raises(smoke_pod.SmokeFailed, match="cannot be created: .*resourcequotas"):
        smoke(timeout=30).run()


def test_on_that_node_only_and_in_spite_of_cordon_and_gate():
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term, term]}}}
    pod = smoke_pod.read(MANIFEST)
    pod["spec"].update(affinity=affinity, tolerations=[{"key": "x", "operator": "Exists"}], restartPolicy="Always")
    made = smoke_pod.for_node(pod, "npu-a")
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["npu-a"]}]}
    required = made["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    assert required["nodeSelectorTerms"] == [dict(term, **here)] * 2
    tolerated = [entry["key"] for entry in made["spec"]["tolerations"]]
    assert tolerated == ["x", "node.kubernetes.io/unschedulable", "npuops.ascend/not-accepted"]
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["metadata"]["name"] != smoke_pod.for_node(pod, "npu-b")["metadata"]["name"]
    assert pod["metadata"]["name"] == "smoke" and len(pod["spec"]["tolerations"]) == 1


@pytest.mark.parametrize("field", ["affinity:", "affinity: {nodeAffinity: }", "affinity: {nodeAffinity: {%s: }}" % REQUIRED])
def test_what_has_no_value_is_as_if_it_were_not_there(field):
    made = smoke_pod.for_node(
        smoke_pod.read(MANIFEST.replace("namespace: train", "namespace: train, labels: ") + "  %s\n" % field), "npu-a"
    )
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["npu-a"]}]}
    assert made["spec"]["affinity"] == {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [here]}}}
    assert list(made["metadata"]["labels"]) == [smoke_pod.LABEL]


@pytest.mark.parametrize("text", ["", "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}", MANIFEST + "---" + MANIFEST])
def test_not_one_pod(text):
    with pytest.raises(NpuError, match="must be the manifest of one Pod"):
        smoke_pod.read(text)
