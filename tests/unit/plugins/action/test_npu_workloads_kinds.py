# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parking of what is stopped in its own way: by Commands, annotations, declared fields, or not at all; and by ResourceClaims."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry

from support.kube.eviction_stub import claim, holding
from support.kube.parking import names, park, restore
from support.kube.workload_stub import COMMANDS, CUSTOM, FIELD, WorkloadApi, made, template

LEASE = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
STOP = "serving.kserve.io/stop"


@pytest.fixture(autouse=True)
def time_flies(monkeypatch):
    slept = []
    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(slept.append))
    monkeypatch.setattr(kube_retry.Clock, "monotonic", staticmethod(lambda: time.monotonic() + sum(slept)))


@pytest.fixture
def api():
    with WorkloadApi() as server:
        server.custom = CUSTOM + FIELD
        server.define("leaderworkersets", ".spec.replicas", group="leaderworkerset.x-k8s.io")
        yield server


def volcano_job(api, phase="Running", **status):
    api.add(made("VolcanoJob", maxRetry=3, status={"state": {"phase": phase}, **status}))
    return api.everything()


def phase(api):
    return api.get("VolcanoJob")["status"]["state"]["phase"]


# --- Volcano ---


def test_a_volcano_job_is_aborted_and_resumed(api):
    before = volcano_job(api)
    assert park(api)["parked"] == [{"object": "Job.batch.volcano.sh train/x", "was": False}]
    assert phase(api) == "Aborted" and not park(api)["changed"]
    result = restore(api)
    assert names(result["restored"]) == ["Job.batch.volcano.sh train/x"] and result["problem"] is None
    job = api.get("VolcanoJob")
    assert job["status"] == {"state": {"phase": "Running"}, "retryCount": 1}
    job["status"].pop("retryCount")
    assert api.everything() == before and not api.objects[COMMANDS]


@pytest.mark.parametrize("state", ["Aborted", "Completed", "Failed", "Terminated"])
def test_a_volcano_job_that_does_not_run_is_left_alone(api, state):
    before = volcano_job(api, state)
    assert park(api)["parked"] == [] and api.everything() == before


def test_a_volcano_job_that_would_fail_when_it_is_resumed(api):
    before = volcano_job(api, retryCount=2)
    result = park(api)
    assert result["parked"] == [] and api.everything() == before
    (entry,) = result["left"]
    assert "restarted 2 times and its spec.maxRetry is 3" in entry["reason"] and not entry["repair"]


def test_volcano_is_not_at_work(api):
    """Nothing is lost: the marks stay until it has resumed the Job."""
    volcano_job(api)
    api.volcano = False
    result = park(api, settings={"pod_deletion": {"timeout": 30}})
    assert result["waiting"] == ["Job.batch.volcano.sh train/x"]
    api.start_volcano()
    api.volcano = False
    assert phase(api) == "Aborted"
    result = restore(api)
    assert "does not take Commands" in result["problem"] and "kubectl create -f -" in result["problem"]
    assert '"action":"ResumeJob"' in result["left"][0]["command"]
    assert "kubectl -n train annotate jobs.batch.volcano.sh x npuops.ascend/parked-" in result["left"][0]["command"]
    api.start_volcano()
    assert phase(api) == "Running"
    assert names(restore(api)["restored"]) == ["Job.batch.volcano.sh train/x"]
    assert phase(api) == "Running" and api.get("VolcanoJob")["status"]["retryCount"] == 1


def test_a_webhook_that_refuses_the_command_for_a_moment(api, monkeypatch):
    """What was not sent is sent by the next try, within the same run."""
    volcano_job(api)
    park(api)
    api.faults["POST", COMMANDS] = (500, 'failed calling webhook "commands.example.com": connection refused')
    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(lambda _seconds: api.faults.clear()))
    result = restore(api)
    assert names(result["restored"]) == ["Job.batch.volcano.sh train/x"] and result["problem"] is None
    assert phase(api) == "Running" and api.get("VolcanoJob")["status"]["retryCount"] == 1


def test_an_abort_that_still_waits_is_withdrawn(api):
    """Volcano comes back when all is over: it must not abort the Job then."""
    volcano_job(api)
    api.volcano = False
    park(api, settings={"pod_deletion": {"timeout": 30}})
    restore(api)
    assert [command["action"] for command in api.objects[COMMANDS].values()] == ["ResumeJob"]
    api.start_volcano()
    assert phase(api) == "Running" and len(restore(api)["restored"]) == 1


def test_a_volcano_job_that_ended_while_it_was_parked(api):
    volcano_job(api)
    park(api)
    api.get("VolcanoJob")["status"]["state"]["phase"] = "Terminated"
    result = restore(api)
    assert result["left"][0]["reason"] == "it has ended: its phase is Terminated" and result["problem"] is None
    assert not api.get("VolcanoJob")["metadata"]["annotations"]


def test_volcano_without_its_commands(api):
    """Nothing may say that the Job is gone, and nothing keeps it marked."""
    before = volcano_job(api)
    api.faults["POST", COMMANDS] = (404, "the server could not find the requested resource")
    result = park(api)
    (entry,) = result["left"]
    assert entry["object"] == "Job.batch.volcano.sh train/x" and "the cluster does not have the kind Command" in entry["reason"]
    assert result["parked"] == [] and result["waiting"] == []
    assert restore(api)["problem"] is None and api.everything() == before
    # One that is stopped cannot be resumed without it.
    del api.faults["POST", COMMANDS]
    park(api)
    api.faults["POST", COMMANDS] = (404, "the server could not find the requested resource")
    assert "the cluster does not have the kind Command" in restore(api)["problem"] and phase(api) == "Aborted"


def test_permissions_for_commands(api):
    before = volcano_job(api)
    api.denied = {("create", "commands")}
    with pytest.raises(NpuError, match=r'"create" on "commands\.bus\.volcano\.sh"'):
        park(api)
    assert api.everything() == before


class Killed(Exception):
    pass


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("act", [park, restore])
def test_every_crash_around_a_command(api, monkeypatch, act, after, number):
    """Parked in two writes, restored in three."""
    before = volcano_job(api)
    if act is restore:
        park(api)
    request, writes = kube_client.Cluster.request, []

    def dying(self, method, path, **arguments):
        if method not in ("post", "patch", "delete") or "selfsubject" in path or path.startswith(LEASE):
            return request(self, method, path, **arguments)
        writes.append(path)
        if len(writes) == number and not after:
            raise Killed
        try:
            return request(self, method, path, **arguments)
        finally:
            if len(writes) == number:
                raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(kube_client.Cluster, "request", dying)
        if act is park and number == 3:
            act(api)
            assert len(writes) == 2
        else:
            with pytest.raises(Killed):
                act(api)
    restore(api, run="run-2")
    assert phase(api) == "Running" and not api.objects.get(COMMANDS)
    api.get("VolcanoJob")["status"].pop("retryCount", None)
    assert api.everything() == before


# --- annotations ---


@pytest.mark.parametrize("was", [None, "false"])
def test_kserve_is_told_by_an_annotation(api, was):
    service = made("InferenceService", predictor={"model": {}})
    service["metadata"]["annotations"] = {"note": "kept", **({STOP: was} if was else {})}
    api.add(service, made("Deployment", owner=("InferenceService", "x"), replicas=2))
    before = api.everything()
    assert park(api)["parked"] == [{"object": "InferenceService.serving.kserve.io train/x", "was": was}]
    assert api.get("InferenceService")["metadata"]["annotations"][STOP] == "true"
    assert api.get("Deployment")["spec"]["replicas"] == 2
    assert len(restore(api)["restored"]) == 1 and api.everything() == before


def test_a_service_that_is_stopped_already(api):
    service = made("InferenceService")
    service["metadata"]["annotations"] = {STOP: "true"}
    api.add(service, made("Pod", owner=("InferenceService", "x")))
    assert park(api)["parked"] == []


@pytest.mark.parametrize(
    "restore_patch", [{"metadata": {"annotations": {"x": None}}}, {"metadata": {"finalizers": "x"}}, {"spec": {}}]
)
def test_a_memory_that_would_change_something_else(api, restore_patch):
    api.add(made("InferenceService"), made("Pod", owner=("InferenceService", "x")))
    park(api)
    annotations = api.get("InferenceService")["metadata"]["annotations"]
    annotations["npuops.ascend/parked"] = json.dumps(dict(json.loads(annotations["npuops.ascend/parked"]), restore=restore_patch))
    assert "cannot be read" in restore(api)["problem"]


# --- the scale subresource ---


def test_a_leader_worker_set_is_scaled(api):
    api.add(made("LeaderWorkerSet", replicas=2), made("Pod", owner=("LeaderWorkerSet", "x")))
    before = api.everything()
    assert park(api)["parked"] == [{"object": "LeaderWorkerSet.leaderworkerset.x-k8s.io train/x", "was": 2}]
    assert api.get("LeaderWorkerSet")["spec"]["replicas"] == 0
    restore(api)
    assert api.everything() == before


# --- what cannot be stopped ---


@pytest.mark.parametrize(
    ("kind", "label", "reason"),
    [
        ("AscendJob", "AscendJob.mindxdl.gitee.com train/x", "cannot suspend an AscendJob"),
        ("Set", "Set.ml.example train/x", "npu_upgrade_workload_kinds"),
    ],
)
def test_what_cannot_be_stopped_is_named(api, kind, label, reason):
    api.add(made(kind), made("Pod", owner=(kind, "x")))
    result = park(api)
    (entry,) = result["left"]
    assert entry["object"] == label and reason in entry["reason"] and not entry["repair"]
    assert any(label in line for line in result["lines"]) and result["parked"] == []


def test_owners_that_own_each_other(api):
    api.add(made("Set", "a", owner=("Set", "b")), made("Set", "b", owner=("Set", "a")), made("Pod", owner=("Set", "a")))
    result = park(api)
    assert result["parked"] == [] and result["left"][0]["object"].startswith("Set.ml.example train/")


# --- declared kinds ---


@pytest.mark.parametrize(
    ("declaration", "spec", "stopped"),
    [
        ({"field": "spec.paused"}, {"paused": None}, {"spec": {"paused": True}}),
        ({"field": "spec.paused"}, {"paused": False}, {"spec": {"paused": True}}),
        ({"field": "spec.mode", "value": "Halted"}, {"mode": "Always"}, {"spec": {"mode": "Halted"}}),
        ({"annotation": "ml.example/stop"}, {}, {"metadata": {"annotations": {"ml.example/stop": "true"}}}),
    ],
)
def test_a_declared_kind_is_restored_by_a_run_that_does_not_know_it(api, declaration, spec, stopped):
    item = made("Set", **{key: value for key, value in spec.items() if value is not None})
    api.add(item, made("Pod", owner=("Set", "x")))
    before = api.everything()
    settings = {"workload_kinds": [{"group": "ml.example", "kind": "Set", **declaration}]}
    assert names(park(api, settings=settings)["parked"]) == ["Set.ml.example train/x"]
    for part, expected in stopped.items():
        for key, value in expected.items():
            now = api.get("Set")[part][key]
            assert now == value or now.items() >= value.items()
    assert names(restore(api, run="run-2")["restored"]) == ["Set.ml.example train/x"]
    assert api.everything() == before
    assert "npuops.ascend/parked-kinds" not in api.objects[LEASE]["npu-maintenance"]["metadata"]["annotations"]


def test_a_declaration_that_changes_while_something_is_parked_by_it(api):
    """Otherwise no run could restore that any more."""
    api.add(made("Set"), made("Pod", owner=("Set", "x")))
    before = api.everything()

    def settings(key):
        return {"workload_kinds": [{"group": "ml.example", "kind": "Set", "annotation": key}]}

    park(api, settings=settings("ml.example/stop"))
    with pytest.raises(
        NpuError, match="Set.ml.example train/x is parked by another annotation or field .*npu_upgrade_workloads: leave"
    ):
        park(api, run="run-2", settings=settings("ml.example/halt"))
    assert len(restore(api, run="run-2", settings=settings("ml.example/halt"))["restored"]) == 1 and api.everything() == before
    # What is remembered, and no longer parked, does not block a run.
    park(api, settings=settings("ml.example/stop"))
    api.get("Set")["metadata"].update(labels={"team": "t"}, annotations={})
    assert len(park(api, run="run-2", settings=settings("ml.example/halt"))["parked"]) == 1


@pytest.mark.parametrize(("count", "value"), [(50, True), (40, "\u00fc" * 256)])
def test_more_kinds_than_could_be_read_again_are_not_remembered(api, count, value):
    """Of runs that died, each with other declarations: no run could restore what they have parked."""
    api.add(made("Set"), made("Pod", owner=("Set", "x")))
    before = api.everything()
    others = [{"group": "ml.example", "kind": "Of%d" % number, "field": "spec.off", "value": value} for number in range(count)]
    api.objects.setdefault(LEASE, {})["npu-maintenance"] = {
        "metadata": {
            "name": "npu-maintenance",
            "namespace": "npu-operator",
            "resourceVersion": "1",
            "annotations": {"npuops.ascend/parked-kinds": json.dumps(others, separators=(",", ":"))},
        }
    }
    mine = {"group": "ml.example", "kind": "Set", "annotation": "ml.example/stop", "value": "\u00fc" * 256}
    with pytest.raises(NpuError, match="the Lease npu-operator/npu-maintenance would have .*npu_upgrade_workloads: leave"):
        park(api, settings={"workload_kinds": [mine]})
    assert api.everything() == before
    assert restore(api, run="run-2")["problem"] is None


def test_a_memory_of_kinds_that_somebody_edited(api):
    api.add(made("Set"), made("Pod", owner=("Set", "x")))
    park(api, settings={"workload_kinds": [{"group": "ml.example", "kind": "Set", "field": "spec.paused"}]})
    annotations = api.objects[LEASE]["npu-maintenance"]["metadata"]["annotations"]
    annotations["npuops.ascend/parked-kinds"] = '[{"group": "apps", "kind": "Deployment", "field": "spec.paused", "value": true}]'
    result = restore(api)
    assert "npuops.ascend/parked-kinds" in result["problem"] and "it was edited" in result["problem"]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"kind": "Set", "field": "spec.paused"}, "workload_kinds[0].group is None"),
        ({"group": "apps", "kind": "Deployment", "field": "spec.paused"}, "Kubernetes' own kinds"),
        ({"group": "ml.example", "kind": "a set", "field": "spec.paused"}, "workload_kinds[0].kind is 'a set'"),
        ({"group": "ml.example", "kind": "Set"}, "either field or annotation"),
        ({"group": "ml.example", "kind": "Set", "field": "spec.a", "annotation": "b"}, "either field or annotation"),
        ({"group": "ml.example", "kind": "Set", "field": "metadata.finalizers"}, "workload_kinds[0].field is"),
        ({"group": "ml.example", "kind": "Set", "field": "spec"}, "workload_kinds[0].field is"),
        ({"group": "ml.example", "kind": "Set", "annotation": "npuops.ascend/parked"}, "belongs to npuops.ascend"),
        ({"group": "ml.example", "kind": "Set", "annotation": "a b"}, "workload_kinds[0].annotation is"),
        ({"group": "ml.example", "kind": "Set", "field": "spec.a", "value": -1}, "workload_kinds[0].value is -1"),
        ({"group": "ml.example", "kind": "Set", "field": "spec.a", "value": []}, "workload_kinds[0].value is []"),
        ({"group": "ml.example", "kind": "Set", "annotation": "a", "value": 5}, "workload_kinds[0].value is 5"),
        ({"group": "ml.example", "kind": "Set", "field": "spec.a", "vale": 5}, "no 'vale'"),
        ("Set", "must be a mapping"),
    ],
)
def test_a_declaration_that_makes_no_sense(api, entry, told):
    with pytest.raises(NpuError) as caught:
        park(api, settings={"workload_kinds": [entry]})
    assert told in caught.value.message


@pytest.mark.parametrize("text", ["{}", "Set", "5"])
def test_declarations_that_are_no_list(api, text):
    with pytest.raises(NpuError, match="must be a list of mappings with group, kind, field, annotation, value"):
        park(api, settings={"workload_kinds": text})


# --- ResourceClaims ---


def test_what_has_npus_by_claims_only(api):
    """Of a Deployment its pods tell; a CronJob goes beside the Job that it has started."""
    without = template(npus=None)
    pods = [holding(made("Pod", "web-1", owner=("ReplicaSet", "web"), pods=without), "mine"),
            holding(made("Pod", "tick-1", owner=("Job", "tick"), pods=without), "mine"),
            holding(made("Pod", "net-1", owner=("Deployment", "net"), pods=without), "net")]  # fmt: skip
    for pod in pods:
        pod["status"]["phase"] = "Running"
    api.add(*pods, made("Deployment", "web", replicas=2, pods=without), made("Deployment", "net", replicas=2, pods=without),
            made("ReplicaSet", "web", owner=("Deployment", "web"), replicas=2, pods=without),
            made("CronJob", "tock", pods=without), made("Job", "tick", owner=("CronJob", "tock"), pods=without))  # fmt: skip
    api.put("/apis/resource.k8s.io/v1/namespaces/train/resourceclaims", claim("mine"), claim("net", driver="net.example.com"))
    before = api.everything()
    assert names(park(api)["parked"]) == ["Deployment train/web", "Job train/tick", "CronJob train/tock"]
    assert len(restore(api)["restored"]) == 3 and api.everything() == before


def test_claims_that_may_not_be_read(api):
    pod = holding(made("Pod", "web-1", owner=("Deployment", "web"), pods=template(npus=None)), "mine")
    api.add(pod, made("Deployment", "web", replicas=2, pods=template(npus=None)))
    forbidden = (
        'resourceclaims.resource.k8s.io is forbidden: User "u" cannot list resource "resourceclaims" in API group "resource.k8s.io"'
    )
    api.faults["GET", "/apis/resource.k8s.io/v1/namespaces/train/resourceclaims"] = (403, forbidden)
    result = park(api)
    assert result["parked"] == [] and "whether they use NPUs" in result["unseen"][0]
