# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the record, with the real client over HTTP: what is a conflict, what is a loss, and what is our own write."""

from __future__ import annotations

import itertools
import json
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval_event, node_log
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_events import EVENTS
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.node_log import Change, NodeLog

from support.fleet.fake_fleet import Clock
from support.kube.field_owners import cordon_of
from support.kube.stub import ApiServer, node

NODES = "/api/v1/nodes"


@pytest.fixture
def api():
    with ApiServer() as server:
        server.put(NODES, node("npu-a", labels={maintenance_record.LABEL_STATE: "upgrade-required"}))
        yield server


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def said():
    return []


@pytest.fixture
def log(api, clock, said):
    cluster = RetryingCluster(kube_client.connect({"host": api.address, "api_key": "token"}), said.append, clock)
    made = NodeLog(cluster, "npu-a", "run-1", clock)
    made.open()
    return made


def item(api):
    return api.objects[NODES]["npu-a"]


def edit(api, change):
    """Another client writes the Node."""
    changed = json.loads(json.dumps(item(api)))
    change(changed)
    api.put(NODES, changed)


def begin(log):
    log.write(lambda found, _none: Change(maintenance_record.new_record(found, "run-1", log.now(), 7, "upgrade", {}, {})))


def once(api, action):
    """Do ``action`` right before the next patch takes effect."""

    def strike():
        api.on_patch = lambda: None
        action()

    api.on_patch = strike


def test_one_patch_for_everything(api, log):
    begin(log)
    before = len(api.requests)
    log.step(maintenance_record.JOBS, cordon=True, labels={"a": "b"}, annotations={"c": "d"}, unschedulable=False)
    assert api.requests[before:] == [("PATCH", NODES + "/npu-a"), ("PATCH", NODES + "/npu-a/status"), ("POST", EVENTS)]
    metadata = item(api)["metadata"]
    assert item(api)["spec"] == {"unschedulable": True}
    assert metadata["labels"] == {maintenance_record.LABEL_STATE: "wait-for-jobs-required", "a": "b"}
    record = json.loads(metadata["annotations"][maintenance_record.ANNOTATION_RECORD])
    assert record == log.record and record["step"] == "wait-for-jobs-required" and metadata["annotations"]["c"] == "d"
    assert sorted(record["times"]) == ["cordon-required", "wait-for-jobs-required"]
    log.step(maintenance_record.PODS, cordon=False)
    assert item(api)["spec"] == {}


def test_the_kubelet_writes_in_between(api, log):
    begin(log)
    once(api, lambda: edit(api, lambda found: found["status"].update(phase="x")))
    log.step(maintenance_record.JOBS)
    assert maintenance_record.state(item(api)) == "wait-for-jobs-required" and item(api)["status"]["phase"] == "x"


@pytest.mark.parametrize(
    "change", [{"labels": {"a": "b"}}, {"annotations": {"a": "b"}}, {"cordon": True}], ids=lambda change: next(iter(change))
)
def test_the_kubelet_writes_between_two_writes_of_one_second(api, log, change):
    """Both write the same record: that the Node has it does not show that the rest was written."""
    begin(log)
    log.step(maintenance_record.JOBS)
    once(api, lambda: edit(api, lambda found: found["status"].update(phase="x")))
    log.step(maintenance_record.JOBS, **change)
    found = item(api)
    there = {
        "labels": found["metadata"]["labels"],
        "annotations": found["metadata"]["annotations"],
        "cordon": found["spec"].get("unschedulable"),
    }
    ((kind, wanted),) = change.items()
    assert there[kind] is True if kind == "cordon" else there[kind]["a"] == wanted["a"]


def test_the_decision_is_made_anew(api, log):
    begin(log)
    once(api, lambda: edit(api, lambda found: found["metadata"]["labels"].update(stop="now")))

    def guard(found, _record):
        if "stop" in kube_client.labels(found):
            raise KeyError("stop")

    with pytest.raises(KeyError):
        log.step(maintenance_record.JOBS, guard=guard)
    assert maintenance_record.state(item(api)) == "cordon-required"


@pytest.mark.parametrize("write", ["step", "beat", "look"])
def test_somebody_else_has_the_record(api, clock, log, write):
    begin(log)
    other = dict(log.record, run="run-2", generation=8)
    annotation = {maintenance_record.ANNOTATION_RECORD: json.dumps(other)}
    edit(api, lambda found: found["metadata"]["annotations"].update(annotation))
    clock.sleep(60)
    version = item(api)["metadata"]["resourceVersion"]
    with pytest.raises(node_log.Lost, match="another run .run-2"):
        {"step": lambda: log.step(maintenance_record.JOBS), "beat": log.beat, "look": log.look}[write]()
    assert item(api)["metadata"]["resourceVersion"] == version


def test_somebody_begins_first(api, log):
    other = {"run": "run-2", "generation": 1, "step": "cordon-required", "heartbeat": "x"}
    annotation = {maintenance_record.ANNOTATION_RECORD: json.dumps(other)}
    once(api, lambda: edit(api, lambda found: found["metadata"]["annotations"].update(annotation)))
    with pytest.raises(node_log.Lost):
        begin(log)
    assert maintenance_record.decode(item(api)) == other


def test_a_lost_answer_is_recognised(api, log, said):
    """The first patch took effect, its answer is an error of a proxy; the repeated one is a conflict with ourselves."""
    begin(log)
    answer = api.answer
    calls = itertools.count()

    def proxy(method, path, query, body):
        status, content = answer(method, path, query, body)
        if method == "PATCH" and next(calls) == 0:
            return 504, {"message": "gateway timeout"}
        return status, content

    api.answer = proxy
    generation = item(api)["metadata"]["resourceVersion"]
    log.step(maintenance_record.JOBS)
    # The record and the conditions, each once.
    assert int(item(api)["metadata"]["resourceVersion"]) == int(generation) + 2
    assert log.record["step"] == "wait-for-jobs-required"
    assert len(said) == 2 and "gateway timeout" in said[0] and "answers again" in said[1]


def test_the_end_with_a_lost_answer(api, log):
    begin(log)
    answer, calls = api.answer, itertools.count()

    def proxy(method, path, query, body):
        status, content = answer(method, path, query, body)
        return (504, {"message": "timeout"}) if method == "PATCH" and next(calls) == 0 else (status, content)

    api.answer = proxy
    text = maintenance_record.ended(log.record, "success", log.now())
    log.write(
        lambda _found, _record: Change(None, {maintenance_record.LABEL_STATE: None}, {maintenance_record.ANNOTATION_LAST: text})
    )
    assert log.record is None and maintenance_record.state(item(api)) is None
    assert maintenance_record.last(item(api))["outcome"] == "success"


def test_beats_every_ten_seconds(api, clock, log):
    begin(log)
    before = len(api.requests)
    for _second in range(60):
        clock.sleep(1)
        log.beat()
    assert len(api.requests) - before == 6
    assert maintenance_record.age(maintenance_record.decode(item(api)), clock.now()) == 0


def test_deleted_and_made_anew(api, log):
    begin(log)
    del api.objects[NODES]["npu-a"]
    with pytest.raises(node_log.Gone, match="systemctl restart kubelet"):
        log.step(maintenance_record.JOBS)
    anew = node("npu-a")
    anew["metadata"]["uid"] = "another"
    api.put(NODES, anew)
    with pytest.raises(node_log.Recreated):
        log.look()
    log.adopt_new_node(lambda found, record: Change(dict(record, uid=found["metadata"]["uid"])))
    assert maintenance_record.decode(item(api))["uid"] == "another"
    log.step(maintenance_record.JOBS)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"run": 1, "generation": 1}', '{"run": "a"}'])
def test_an_unreadable_record(api, log, text):
    edit(api, lambda found: found["metadata"]["annotations"].update({maintenance_record.ANNOTATION_RECORD: text}))
    with pytest.raises(NpuError, match="cannot be read: .* It was edited"):
        log.open()
    edit(api, lambda found: found["metadata"]["annotations"].clear())
    edit(api, lambda found: found["metadata"]["annotations"].update({maintenance_record.ANNOTATION_LAST: text}))
    assert maintenance_record.last(item(api)) == {}


def test_event(api, log):
    for now in ("2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"):
        approval_event.ask(log._cluster, log.node, "upgrade", "to=25.5.0", now)
    (event,) = api.objects[EVENTS].values()
    assert event["reason"] == "RebootRequired" and event["message"] == "reason=upgrade to=25.5.0"
    assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
        2,
        "2026-11-21T10:00:00Z",
        "2026-11-21T11:00:00Z",
    )
    assert event["involvedObject"]["uid"] == "uid-npu-a"


def test_times():
    assert maintenance_record.rfc3339(0) == "1970-01-01T00:00:00Z"
    assert maintenance_record.seconds_of("1970-01-01T00:01:00Z") == 60
    assert maintenance_record.seconds_of(None) is maintenance_record.seconds_of("yesterday") is None
    assert maintenance_record.age({}, 5) > 10**9


# --- whose cordon ---


def test_the_server_is_told_who_cordons(api, log):
    begin(log)
    log.step(maintenance_record.JOBS, cordon=True)
    assert maintenance_record.cordoned_by(item(api)) == "npuops.ascend-maintenance"
    edit(api, lambda found: (found["spec"].pop("unschedulable"), found["metadata"].pop("managedFields")))
    log.step(maintenance_record.PODS)
    assert maintenance_record.cordoned_by(item(api)) is None


@pytest.mark.parametrize(
    ("manager", "cordoned", "times", "ours"),
    [
        ("npuops.ascend-maintenance", True, {"left-cordoned": "x"}, True),
        ("npuops.ascend-maintenance", True, {}, False),
        ("npuops.ascend-maintenance", False, {"left-cordoned": "x"}, False),
        ("kubectl-cordon", True, {"left-cordoned": "x"}, False),
        ("npuops.ascend", True, {"left-cordoned": "x"}, False),
        (None, True, {"left-cordoned": "x"}, False),
    ],
)
def test_whose_cordon_it_is(manager, cordoned, times, ours):
    made = node("a", annotations={maintenance_record.ANNOTATION_LAST: json.dumps({"run": "r", "generation": 1, "times": times})})
    made["spec"]["unschedulable"] = cordoned
    made["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {}}] + ([cordon_of(manager)] if manager else [])
    assert maintenance_record.left_cordoned(made) is ours


@pytest.fixture(params=["UTC0", "CST-8", "EST5EDT,M3.2.0,M11.1.0"])
def zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("seconds", "text"), [(0, "1970-01-01T00:00:00Z"), (1_783_000_000, "2026-07-02T13:46:40Z")])
def test_times_are_those_of_utc_wherever_a_controller_is(zone, seconds, text):
    """Written and read: two controllers are in two time zones."""
    assert maintenance_record.rfc3339(seconds) == text and maintenance_record.seconds_of(text) == seconds
