# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parking and restoring, with an API server behind it."""

from __future__ import annotations

import itertools
import json
import tempfile
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness

from support.kube.parking import names, park, restore, run
from support.kube.stub import WEBHOOK_DOWN, node
from support.kube.workload_stub import BUILT_IN, CUSTOM, SUSPENDED, WorkloadApi, made, template

MARK = "npuops.ascend/parked"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
NO_RIGHT = (
    'deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments" in API group "apps" in the namespace "a-team"'
)


@pytest.fixture(autouse=True)
def discovery_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(autouse=True)
def time_flies(monkeypatch):
    """What is slept has passed."""
    slept = []
    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(slept.append))
    monkeypatch.setattr(kube_retry.Clock, "monotonic", staticmethod(lambda: time.monotonic() + sum(slept)))


@pytest.fixture
def api():
    with WorkloadApi() as server:
        server.define("fleets", ".spec.replicas")
        server.define("gangs", ".spec.workers.count")
        yield server


def one_of_each(api):
    api.add(
        made("Deployment", replicas=3),
        made("StatefulSet", replicas=2),
        made("ReplicaSet", replicas=1),
        made("ReplicationController", replicas=1),
        made("Job", suspend=False),
        made("CronJob", pods=template(npus=None, init=2)),
        made("Fleet", replicas=4),
        made("Gang", workers={"count": 5}),
        made("Pod", owner=("Gang", "x")),
    )


KINDS = (
    "CronJob",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "Fleet.ml.example",
    "Gang.ml.example",
)


# --- what is parked ---


@pytest.mark.parametrize("aggregated", [True, False])
def test_one_of_each_kind(api, aggregated):
    api.aggregated = aggregated
    one_of_each(api)
    before = api.everything()
    result = park(api)
    assert names(result["parked"]) == [kind + " train/x" for kind in KINDS]
    assert [entry["was"] for entry in result["parked"]] == [None, 3, 2, 1, 1, False, 4, 5]
    assert (api.get("Deployment")["spec"]["replicas"], api.get("Job")["spec"]["suspend"]) == (0, True)
    assert (api.get("Fleet")["spec"]["replicas"], api.get("Gang")["spec"]["workers"]) == (0, {"count": 0})
    assert api.get("CronJob")["spec"]["suspend"] is True
    written = json.loads(api.get("Deployment")["metadata"]["annotations"][MARK])
    assert (written["run"], written["restore"]) == ("run-1", {"spec": {"replicas": 3}})
    result = restore(api)
    assert len(result["restored"]) == len(KINDS) and not result["left"] and not result["problem"]
    assert api.everything() == before
    assert "suspend" not in api.get("CronJob")["spec"]


def suspendable(kind, **status):
    """A job of a training framework, with a pod."""
    job = made(kind, runPolicy={"cleanPodPolicy": "None"}, pytorchReplicaSpecs={"Worker": {"replicas": 2}}, status=status)
    return job, made("Pod", owner=(kind, "x"))


def test_jobs_of_training_frameworks_are_suspended_not_scaled(api):
    """To scale a PyTorchJob would stop its workers and leave its master."""
    api.custom = CUSTOM + SUSPENDED
    for kind in ("PyTorchJob", "RayJob"):
        api.add(*suspendable(kind))
        api.objects[BUILT_IN["Pod"] % "namespaces/train"]["of-" + kind] = api.objects[BUILT_IN["Pod"] % "namespaces/train"].pop("x")
    before = api.everything()
    assert names(park(api)["parked"]) == ["PyTorchJob.kubeflow.org train/x", "RayJob.ray.io train/x"]
    assert api.get("PyTorchJob")["spec"]["runPolicy"] == {"cleanPodPolicy": "None", "suspend": True}
    assert api.get("PyTorchJob")["spec"]["pytorchReplicaSpecs"] == {"Worker": {"replicas": 2}}
    assert api.get("RayJob")["spec"]["suspend"] is True
    result = restore(api)
    assert len(result["restored"]) == 2 and api.everything() == before


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("PyTorchJob", {"conditions": [{"type": "Succeeded", "status": "True"}]}),
        ("PyTorchJob", {"conditions": [{"type": "Failed", "status": "True"}]}),
        ("RayJob", {"jobDeploymentStatus": "Complete"}),
    ],
)
def test_jobs_of_training_frameworks_that_have_ended_are_left_alone(api, kind, status):
    api.custom = CUSTOM + SUSPENDED
    api.add(*suspendable(kind, **status))
    assert park(api)["parked"] == []


@pytest.mark.parametrize(
    "item",
    [
        made("Deployment", replicas=3, pods=template(npus=None)),
        made("Deployment", replicas=3, pods=template(npus=0)),
        made("Deployment", replicas=3, pods=template(resource="huawei.com/Ascend310P")),
        made("Deployment", replicas=3, namespace="npu-operator"),
        made("Deployment", replicas=0),
        made("Job", suspend=True),
        made("Job", status={"conditions": [{"type": "Complete", "status": "True"}]}),
        made("ReplicaSet", replicas=0),
        made("Fleet", replicas=0),
        made("Gang", workers={"count": 2}),
        made("Pod"),
        made("Deployment", replicas=3, pods=template(labels={"app": "finishes"})),
    ],
)
def test_what_is_left_alone(api, item):
    api.add(item)
    before = api.everything()
    result = park(api, settings={"wait_for_jobs": {"selector": "app=finishes"}})
    assert (result["parked"], result["left"], result["changed"]) == ([], [], False)
    assert api.everything() == before


def test_of_those_that_own_each_other_the_topmost(api):
    """A Fleet owns a Set, which cannot be scaled, which owns a Deployment."""
    api.add(made("Fleet", replicas=2, pods=template(npus=None)), made("Set", owner=("Fleet", "x")),
            made("Deployment", owner=("Set", "x"), replicas=3), made("ReplicaSet", owner=("Deployment", "x"), replicas=3))  # fmt: skip
    assert names(park(api)["parked"]) == ["Fleet.ml.example train/x"]
    assert api.get("Deployment")["spec"]["replicas"] == 3


def test_an_owner_that_cannot_be_scaled(api):
    api.add(made("Set"), made("Deployment", owner=("Set", "x"), replicas=3))
    assert names(park(api)["parked"]) == ["Deployment train/x"]


def test_a_deployment_whose_old_pods_ask(api):
    """In the middle of a rollout to a template that does not."""
    api.add(made("Deployment", replicas=3, pods=template(npus=None)), made("ReplicaSet", owner=("Deployment", "x"), replicas=1))
    assert names(park(api)["parked"]) == ["Deployment train/x"]


@pytest.mark.parametrize("custom", [CUSTOM, ()])
def test_an_old_revision(api, custom):
    """Its template asks, but it has no pods; and it has a copy of the Deployment's annotation, which Kubernetes makes."""
    api.custom = custom
    old = made("ReplicaSet", owner=("Deployment", "x"), replicas=0)
    old["metadata"]["annotations"] = {MARK: '{"run":"r","since":"","uid":"uid-Deployment-x","restore":{"spec":{"replicas":1}}}'}
    api.add(made("Deployment", replicas=3, pods=template(npus=None)), old)
    before = api.everything()
    assert park(api)["parked"] == [] and restore(api)["restored"] == []
    assert api.everything() == before


def test_an_owner_that_cannot_be_read(api):
    api.add(made("Set"), made("Deployment", owner=("Set", "x"), replicas=3))
    api.faults["GET", "/apis/ml.example/v1/namespaces/train/sets/x"] = (500, "conversion webhook failed")
    result = park(api)
    assert names(result["parked"]) == ["Deployment train/x"] and "conversion webhook failed" in result["lines"][-1]


def test_a_cronjob_and_its_job(api):
    api.add(made("CronJob", suspend=False), made("Job", "x-1", owner=("CronJob", "x"), suspend=False))
    assert names(park(api)["parked"]) == ["CronJob train/x", "Job train/x-1"]


def test_a_role_that_a_custom_resource_does_not_have(api):
    """What the scale subresource stands for need not be there; it must not be made up."""
    api.add(made("Gang"), made("Pod", owner=("Gang", "x")))
    assert park(api)["parked"] == [] and "workers" not in api.get("Gang")["spec"]


def test_a_custom_kind_that_cannot_be_listed(api):
    api.add(made("Deployment", replicas=1), made("Fleet", replicas=1))
    api.away.add("/apis/ml.example/v1/fleets")
    for act, key in ((park, "parked"), (restore, "restored")):
        result = act(api)
        assert names(result[key]) == ["Deployment train/x"]
        assert "/apis/ml.example/v1/fleets" in result["unseen"][0] and "conversion webhook failed" in result["lines"][-1]


def test_a_user_who_may_not_look_at_workloads(api):
    """And has no need to: an upgrade asks for no such right unless it parks."""
    api.add(made("StatefulSet", replicas=2))
    park(api)
    message = 'cannot list resource "deployments" in API group "apps" at the cluster scope'
    api.faults["GET", "/apis/apps/v1/deployments"] = (403, "deployments.apps is forbidden: User " + message)
    result = restore(api)
    assert names(result["restored"]) == ["StatefulSet train/x"]
    assert len(result["unseen"]) == 1 and len(result["lines"]) == 1
    with pytest.raises(NpuError, match='Allow "list" on "deployments.apps"'):
        park(api)


def test_missing_permissions_are_told_before_anything_is_parked(api):
    one_of_each(api)
    before = api.everything()
    api.denied = {("patch", "jobs"), ("patch", "gangs")}
    with pytest.raises(NpuError, match=r'"patch" on "gangs\.ml\.example".*"patch" on "jobs\.batch"'):
        park(api)
    assert api.everything() == before


@pytest.mark.parametrize("goes", [True, False])
def test_waits_for_the_pods(api, monkeypatch, goes):
    api.add(made("Deployment", replicas=2, status={"replicas": 2}), made("Job", status={"active": 1}))
    ticks = itertools.count()
    monkeypatch.setattr(kube_retry.Clock, "monotonic", staticmethod(lambda: next(ticks)))

    def sleep(_seconds):
        api.get("Job")["status"]["active"] = 0
        api.get("Deployment")["status"]["replicas"] = 0 if goes else 2

    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(sleep))
    result = park(api, settings={"pod_deletion": {"timeout": "200"}})
    assert result["waiting"] == ([] if goes else ["Deployment train/x"])
    assert len(result["parked"]) == 2 and ("still has pods: Deployment train/x" in result["lines"]) is not goes


def test_a_status_from_before_does_not_count(api, monkeypatch):
    """The controller has not noticed yet that there are to be none, or any."""
    item = made("Deployment", replicas=2, status={"replicas": 0, "observedGeneration": 1})
    item["metadata"]["generation"] = 2
    api.add(item)
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        api.get("Deployment")["status"]["observedGeneration"] = 2

    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(sleep))
    assert park(api)["waiting"] == [] and len(slept) == 1


@pytest.mark.parametrize("act", [park, restore])
def test_check_mode(api, act):
    one_of_each(api)
    if act is restore:
        park(api)
    before, leases = api.everything(), json.dumps(api.objects.get(LEASES))
    told = act(api, check_mode=True)
    assert api.everything() == before and json.dumps(api.objects.get(LEASES)) == leases
    done = act(api)
    assert told == done and told["changed"] and told["diff"]["before"] != told["diff"]["after"]
    assert not act(api)["changed"]


# --- another client interferes ---


def test_a_second_run_parks_what_is_not_and_forgets_nothing(api):
    one_of_each(api)
    before = api.everything()
    park(api, run="run-0")
    result = park(api)
    assert len(result["parked"]) == len(KINDS) and not result["changed"]
    restore(api)
    assert api.everything() == before


@pytest.mark.parametrize("act", [park, restore])
@pytest.mark.parametrize(
    ("kind", "spec", "before", "now"),
    [("Deployment", {"replicas": 5}, 3, 5), ("Gang", {"workers": {"count": 1}}, 5, 1), ("Fleet", {"replicas": None}, 4, None)],
)
def test_changed_meanwhile(api, act, kind, spec, before, now):
    one_of_each(api)
    park(api)
    api.get(kind)["spec"].update(spec)
    result = act(api)
    (entry,) = result["left"]
    assert "was %d before" % before in entry["reason"] and "is %s now" % json.dumps(now) in entry["reason"]
    assert not entry["repair"] and result["problem"] is None
    assert api.get(kind)["spec"].items() >= spec.items()
    metadata = api.get(kind)["metadata"]
    assert MARK not in metadata["labels"] and MARK not in metadata["annotations"]


def test_changed_to_what_it_was(api):
    api.add(made("Deployment", replicas=3))
    before = api.everything()
    park(api)
    api.get("Deployment")["spec"]["replicas"] = 3
    result = restore(api)
    assert names(result["restored"]) == ["Deployment train/x"] and not result["left"]
    assert api.everything() == before


@pytest.mark.parametrize("state", ["parked", "restored"])
def test_a_lost_race(api, state):
    """Another client writes between reading and writing: it is judged again."""
    api.add(made("Deployment", replicas=3))
    if state == "restored":
        park(api)
    races = iter([True])

    def on_patch():
        if next(races, False):
            item = api.get("Deployment")
            item["metadata"]["labels"]["new"] = "1"
            item["spec"]["replicas"] = 7
            api.add(item)

    api.on_patch = on_patch
    result = run(api, state)
    spec = api.get("Deployment")["spec"]
    if state == "parked":
        assert result["parked"] == [{"object": "Deployment train/x", "was": 7}] and spec["replicas"] == 0
    else:
        assert "is 7 now" in result["left"][0]["reason"] and spec["replicas"] == 7
    assert api.get("Deployment")["metadata"]["labels"]["new"] == "1"


@pytest.mark.parametrize("state", ["parked", "restored"])
def test_gone_meanwhile(api, state):
    """Deleted between reading and writing."""
    api.add(made("Deployment", replicas=3), made("StatefulSet", replicas=3))
    if state == "restored":
        park(api)
    api.faults["PATCH", "/apis/apps/v1/namespaces/train/deployments/x"] = (404, "not found")
    result = run(api, state)
    assert names(result[state]) == ["StatefulSet train/x"] and not result["left"]


def test_another_object_of_that_name(api):
    api.add(made("Deployment", replicas=3))
    park(api)
    api.add(made("Deployment", replicas=0))
    result = restore(api)
    assert (result["restored"], result["left"], api.get("Deployment")["spec"]["replicas"]) == ([], [], 0)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"run": "r"}', '{"run": "r", "since": "", "uid": "u", "restore": {}}',
     '{"run": "r", "since": "", "uid": "u", "restore": {"spec": {"replicas": "3"}}}',
     '{"run": "r", "since": "", "uid": "u", "restore": {"spec": {"replicas": true}}}',
     '{"run": "r", "since": "", "uid": "u", "restore": {"spec": {"paused": true}}}',
     '{"run": "r", "since": "", "uid": "u", "restore": {"spec": {"replicas": 3, "paused": true}}}',
     '{"run": "r", "since": "", "uid": "another", "restore": {"spec": {"replicas": 3}}}'],
)  # fmt: skip
def test_a_memory_that_cannot_be_read(api, text):
    api.add(made("Deployment", replicas=3), made("StatefulSet", replicas=2))
    park(api)
    api.get("Deployment")["metadata"]["annotations"][MARK] = text
    result = restore(api)
    assert names(result["restored"]) == ["StatefulSet train/x"]
    (entry,) = result["left"]
    assert entry["repair"] and "kubectl -n train label deployments.apps x " + MARK + "-" in entry["reason"]
    assert "Deployment train/x" in result["problem"]
    assert api.get("Deployment")["spec"]["replicas"] == 0


def test_marks_that_a_controller_copied(api):
    """As an operator gives its own labels and annotations to what it makes."""
    api.add(made("Fleet", replicas=2), made("Deployment", owner=("Fleet", "x"), replicas=0))
    park(api)
    for key in ("labels", "annotations"):
        api.get("Deployment")["metadata"][key] = dict(api.get("Fleet")["metadata"][key])
    result = restore(api)
    assert names(result["restored"]) == ["Fleet.ml.example train/x"] and not result["left"]
    assert api.get("Deployment")["spec"]["replicas"] == 0


def test_what_the_server_refuses(api):
    api.add(made("Deployment", replicas=3), made("StatefulSet", replicas=2))
    path = "/apis/apps/v1/namespaces/train/deployments/x"
    api.faults["PATCH", path] = (422, "admission webhook says no")
    result = park(api)
    assert "says no" in result["left"][0]["reason"] and not result["left"][0]["repair"]
    api.faults.clear()
    park(api)
    api.faults["PATCH", path] = (422, "admission webhook says no")
    result = restore(api)
    assert names(result["restored"]) == ["StatefulSet train/x"]
    assert "says no" in result["problem"] and result["left"][0]["repair"]


# --- what fails does not keep the others ---


@pytest.mark.parametrize("fault", [WEBHOOK_DOWN, (422, "admission webhook says no"), (401, "Unauthorized"), (403, NO_RIGHT)])
def test_one_that_cannot_be_restored_keeps_no_other_one(api, fault):
    """All are tried, all that failed are told with what to do by hand, and the next run restores them."""
    for namespace in ("a-team", "b-team", "train"):
        api.add(made("Deployment", replicas=3, namespace=namespace), made("Job", namespace=namespace))
    before = api.everything()
    park(api)
    for path in ("/apis/apps/v1/namespaces/a-team/deployments/x", "/apis/apps/v1/namespaces/b-team/deployments/x"):
        api.faults["PATCH", path] = fault
    result = restore(api)
    assert names(result["restored"]) == ["Deployment train/x", "Job a-team/x", "Job b-team/x", "Job train/x"]
    assert [entry["object"] for entry in result["left"] if entry["repair"]] == ["Deployment a-team/x", "Deployment b-team/x"]
    assert result["problem"].startswith("2 parked workloads were not restored:")
    patch = '{"spec":{"replicas":3},"metadata":{"labels":{"%s":null},"annotations":{"%s":null}}}'
    command = "kubectl -n a-team patch deployments.apps x --type=merge -p '" + patch + "'"
    assert command % (MARK, MARK) in result["problem"]
    assert api.get("Deployment", namespace="a-team")["spec"]["replicas"] == 0
    api.faults.clear()
    assert len(restore(api, run="run-2")["restored"]) == 2
    assert api.everything() == before


def test_a_kind_that_cannot_be_listed_keeps_no_other_one(api):
    one_of_each(api)
    park(api)
    api.away.add("/apis/apps/v1/deployments")
    api.faults["GET", "/apis"] = WEBHOOK_DOWN
    result = restore(api)
    restored = names(result["restored"])
    assert "StatefulSet train/x" in restored and "Job train/x" in restored and "Deployment train/x" not in restored
    assert (
        "/apis/apps/v1/deployments" in result["problem"]
        and "kubectl get deployments.apps -A -l %s=true" % MARK in result["problem"]
    )
    assert "/apis: " in result["problem"]
    api.faults.clear()
    api.away.clear()
    restore(api)
    assert api.get("Deployment")["spec"]["replicas"] == 3 and api.get("Fleet")["spec"]["replicas"] == 4


def test_a_webhook_that_comes_back_soon(api, monkeypatch):
    """One that failed is tried again when all others have been."""
    api.add(made("Deployment", replicas=3), made("StatefulSet", replicas=2))
    park(api)
    api.faults["PATCH", "/apis/apps/v1/namespaces/train/deployments/x"] = WEBHOOK_DOWN
    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(lambda _seconds: api.faults.clear()))
    result = restore(api)
    assert names(result["restored"]) == ["StatefulSet train/x", "Deployment train/x"]
    assert result["problem"] is None and not result["left"]


def test_an_outage_in_the_middle_is_told_for_all_that_are_left(api, monkeypatch):
    for number in range(4):
        api.add(made("Deployment", "x%d" % number, replicas=3))
    park(api)
    tried = []

    def gone(_self, path, _body, **_params):
        tried.append(path)
        raise kube_client.Unreachable("The Kubernetes API cannot be reached: no route", cause="no route")

    monkeypatch.setattr(kube_retry.RetryingCluster, "merge_patch", gone)
    result = restore(api)
    assert len(tried) == 1  # each would be waited for ten minutes
    assert len(result["left"]) == 4 and result["problem"].count("kubectl -n train patch deployments.apps x") == 4


def test_parking_goes_on_as_well(api):
    api.add(made("Deployment", replicas=3), made("StatefulSet", replicas=2))
    api.faults["PATCH", "/apis/apps/v1/namespaces/train/deployments/x"] = WEBHOOK_DOWN
    result = park(api)
    assert names(result["parked"]) == ["StatefulSet train/x"]
    assert "guard.example.com" in result["left"][0]["reason"]


# --- what another run has parked ---


def beating(api, monkeypatch, beat):
    """``beat()`` after every 10 s that are waited."""
    sleep, slept = kube_retry.Clock.sleep, []

    def waits(seconds):
        sleep(seconds)
        slept.append(seconds)
        if sum(slept) >= 10:
            slept.clear()
            beat()

    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(waits))


@pytest.mark.parametrize("ahead", [-3600, 0, 3600])
def test_another_run_at_work_keeps_what_it_parked(api, monkeypatch, ahead):
    """By what its record on a node tells, whatever its clock says."""
    api.add(made("Deployment", replicas=3))
    park(api, run="run-2")
    record = {"run": "run-2", "generation": 1, "step": "drain-required"}

    def beat():
        record["heartbeat"] = maintenance_record.rfc3339(kube_retry.Clock.monotonic() + time.time() + ahead)
        api.put("/api/v1/nodes", node("a", annotations={"npuops.ascend/maintenance": json.dumps(record)}))

    beat()
    with monkeypatch.context() as patch:
        beating(api, patch, beat)
        result = restore(api)
    assert "run-2, which is still running" in result["left"][0]["reason"] and result["problem"] is None
    assert api.get("Deployment")["spec"]["replicas"] == 0
    assert names(restore(api)["restored"]) == ["Deployment train/x"]  # silent since


def test_another_run_with_no_node_in_maintenance_keeps_what_it_parked(api, monkeypatch):
    """It has not begun with its first one yet, or waits for people to approve."""
    api.add(made("Deployment", replicas=3))
    park(api, run="run-2")
    clock = kube_retry.Clock()
    life = run_liveness.Life(kube_client.connect({"host": api.address, "api_key": "token"}), "npu-operator", "run-2", clock)
    with monkeypatch.context() as patch:
        beating(api, patch, life.beat)
        result = restore(api)
    assert "run-2, which is still running" in result["left"][0]["reason"] and result["problem"] is None
    assert api.get("Deployment")["spec"]["replicas"] == 0
    started = clock.monotonic()
    assert names(restore(api)["restored"]) == ["Deployment train/x"]
    assert clock.monotonic() - started >= 90
    assert signs(api) == []


def signs(api):
    lease = api.objects[LEASES]["npu-maintenance"]
    return [key for key in lease["metadata"]["annotations"] if key.startswith("npuops.ascend/parked-by.")]


def test_the_sign_of_life_comes_before_the_first_workload_stops(api):
    api.add(made("Deployment", replicas=3))
    api.objects[LEASES] = {}
    park(api)
    writes = [path for method, path in api.requests if method in ("POST", "PATCH") and "selfsubject" not in path]
    assert writes[0].startswith(LEASES) and "deployments" in writes[-1] and signs(api) == ["npuops.ascend/parked-by.run-1"]
    restore(api)
    assert signs(api) == []


def test_who_waits_for_its_pods_shows_that_it_lives(api, monkeypatch):
    api.add(made("Deployment", replicas=2, status={"replicas": 2}))
    seen = set()
    beating(api, monkeypatch, lambda: seen.add(api.objects[LEASES]["npu-maintenance"]["metadata"]["annotations"][signs(api)[0]]))
    assert park(api, settings={"pod_deletion": {"timeout": "120"}})["waiting"] == ["Deployment train/x"]
    assert len(seen) > 3


def test_own_workloads_are_not_waited_for(api):
    api.add(made("Deployment", replicas=3))
    park(api)
    started = kube_retry.Clock.monotonic()
    assert names(restore(api)["restored"]) == ["Deployment train/x"]
    assert kube_retry.Clock.monotonic() - started < 60


def test_without_our_namespace_there_is_nobody_else(api):
    api.add(made("Deployment", replicas=3))
    api.faults["POST", LEASES] = (404, 'namespaces "npu-operator" not found')
    assert names(park(api, run="by hand")["parked"]) == ["Deployment train/x"]
    assert names(restore(api)["restored"]) == ["Deployment train/x"]


def test_a_sign_of_life_that_cannot_be_written_parks_nothing(api):
    api.add(made("Deployment", replicas=3))
    told = 'leases is forbidden: User "u" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "npu-operator"'
    api.faults["POST", LEASES] = (403, told)
    with pytest.raises(NpuError, match='"create" on "leases.coordination.k8s.io"'):
        park(api)
    assert api.get("Deployment")["spec"]["replicas"] == 3


# --- crashes ---


class Killed(Exception):
    pass


def dies_at(monkeypatch, number, after):
    """The controller dies at its write ``number``, before it reaches the server or ``after``. Returns the writes made."""
    merge_patch, made_so_far = kube_retry.RetryingCluster.merge_patch, []

    def write(self, path, body, **params):
        made_so_far.append(path)
        if len(made_so_far) == number and not after:
            raise Killed
        answer = merge_patch(self, path, body, **params)
        if len(made_so_far) == number:
            raise Killed
        return answer

    monkeypatch.setattr(kube_retry.RetryingCluster, "merge_patch", write)
    return made_so_far


@pytest.mark.parametrize("number", range(1, len(KINDS) + 1))
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("act", [park, restore])
@pytest.mark.parametrize("parks_again", [True, False])
def test_every_crash(api, monkeypatch, act, after, number, parks_again):
    """For every write: the next run restores all, whether it parks first or not."""
    one_of_each(api)
    before = api.everything()
    if act is restore:
        park(api)
    with monkeypatch.context() as patch:
        dies_at(patch, number, after)
        with pytest.raises(Killed):
            act(api)
    if parks_again:
        park(api, run="run-2")
        assert api.get("Deployment")["spec"]["replicas"] == 0
    restore(api, run="run-2")
    assert api.everything() == before


@pytest.mark.parametrize("act", [park, restore])
def test_there_are_no_more_writes(api, monkeypatch, act):
    """Than the crashes above are at."""
    one_of_each(api)
    if act is restore:
        park(api)
    writes = dies_at(monkeypatch, 0, False)
    act(api)
    assert len(writes) == len(KINDS)


def test_an_answer_that_is_lost(api, monkeypatch):
    """The write is repeated, and finds its own effect."""
    one_of_each(api)
    before = api.everything()
    merge_patch, lost = kube_client.Cluster.merge_patch, set()

    def write(self, path, body, **params):
        answer = merge_patch(self, path, body, **params)
        if path not in lost:
            lost.add(path)
            raise kube_client.Unreachable("gone")
        return answer

    monkeypatch.setattr(kube_client.Cluster, "merge_patch", write)
    assert [entry["was"] for entry in park(api)["parked"]] == [None, 3, 2, 1, 1, False, 4, 5]
    lost.clear()
    result = restore(api)
    assert len(result["restored"]) == len(KINDS) and not result["left"]
    assert api.everything() == before


def test_with_nothing_parked_it_only_looks(api):
    one_of_each(api)
    api.requests.clear()
    result = restore(api)
    assert not result["changed"] and {method for method, _path in api.requests} == {"GET"}
    lists = [path for _method, path in api.requests if path not in ("/version", "/apis", "/api", "/api/v1")]
    assert lists.pop(0).startswith(LEASES)  # are there kinds that another run declared?
    assert lists.pop().startswith(LEASES)  # has this run a sign of life to take back?
    assert len(lists) == len(KINDS)
