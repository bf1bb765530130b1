# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a Node tells of its maintenance, and the Lease of all of them, whatever is written there."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking_mark, workload_kinds
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import halt as maintenance_halt
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import node_log, wedged_annotation
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from hypothesis import given
from hypothesis import strategies as st

from support.kube.stub import node
from support.properties import bounded, damaged, hostile_json

THEN = "2026-11-21T11:59:50Z"
TARGET = {"version": "25.5.2", "release": "25.5.2-k-012345678901", "digest": "sha256:0"}
RECORD = maintenance_record.new_record(node("a"), "r1", THEN, 3, "upgrade", {"version": "25.5.0", "release": "x"}, TARGET, [THEN])
WEDGE = {"since": THEN, "reason": "hangs", "boot_id": "boot-a"}
MARK = {"run": "r1", "since": THEN, "uid": "uid-1", "restore": {"spec": {"replicas": 3}}}
SLOTS = {"max": 1, "halted": maintenance_halt.made("a", "b", THEN, "upgrade", "n"), "holders": {"a": {"run": "r"}}}
times = st.one_of(
    st.sampled_from((THEN, "", "0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "2026-02-30T00:00:00Z")),
    damaged(st.just(THEN)),
    st.text(max_size=25),
)


@given(st.integers(0, 253402300799))
def test_a_time_is_read_as_it_was_written(seconds):
    assert maintenance_record.seconds_of(maintenance_record.rfc3339(seconds)) == seconds


@given(st.one_of(times, st.none()))
def test_a_time_is_read_or_is_none(text):
    with bounded():
        seconds = maintenance_record.seconds_of(text)
    assert seconds is None or (isinstance(seconds, int) and seconds >= 0)
    assert isinstance(maintenance_record.age({"heartbeat": text}, 10.0), (int, float))


@given(st.text(max_size=30), st.sampled_from(maintenance_record.REASONS), st.integers(0, 2**53), st.text(max_size=30000), st.data())
def test_what_is_written_on_a_node_is_read_from_it(run, reason, generation, failure, data):
    made = node("a")
    made["metadata"].setdefault("resourceVersion", "1")
    record = maintenance_record.new_record(
        made, run, THEN, generation, reason, {}, TARGET, data.draw(st.lists(st.just(THEN), max_size=3))
    )
    record.update(failure=failure, step=data.draw(st.sampled_from(maintenance_record.STEPS)))
    last = maintenance_record.ended(record, "failed", THEN)
    change = node_log.Change(record, annotations={maintenance_record.ANNOTATION_LAST: last})
    made["metadata"]["annotations"] = change.patch(made)["metadata"]["annotations"]
    maintenance_record.check(made)
    assert maintenance_record.decode(made) == change.record and change.is_on(made, None)
    assert {**change.record, "outcome": "failed", "ended": THEN} == maintenance_record.last(made)


@given(hostile_json(RECORD), hostile_json(RECORD), hostile_json(WEDGE), st.sampled_from((THEN, None)))
def test_a_node_is_understood_or_refused(record, last, wedged, when):
    names = {maintenance_record.ANNOTATION_RECORD: record, maintenance_record.ANNOTATION_LAST: last, "npuops.ascend/wedged": wedged}
    made = node("a", annotations=names)
    made["metadata"]["managedFields"] = [
        {"manager": "m", "time": when, "fieldsV1": {"f:metadata": {"f:annotations": {"f:npuops.ascend/wedged": {}}}}}
    ]
    with bounded():
        found = wedged_annotation.of(made)
        assert found.reason and len(found.text) < 3000 and (found.told_at is None or found.told_at >= 0)
        assert isinstance(maintenance_record.last(made), dict)
        maintenance_record.left_cordoned(made)
        try:
            maintenance_record.check(made)
        except NpuError as exc:
            assert "of the node a cannot be read" in exc.message
            return
        found = maintenance_record.decode(made)
        maintenance_record.intended(found)
        maintenance_record.age(found, 0.0)
        assert node_log.Change(found).record["run"] == found["run"]


@given(hostile_json(SLOTS))
def test_slots_are_understood_or_refused(text):
    class Cluster:
        @staticmethod
        def get(_path):
            return {"metadata": {"annotations": {maintenance_slots.ANNOTATION: text}, "resourceVersion": "1"}}

        written: list = []

        @classmethod
        def merge_patch(cls, _path, body):
            cls.written.append(json.loads(body["metadata"]["annotations"][maintenance_slots.ANNOTATION]))

    slots = maintenance_slots.Slots(Cluster(), "n", None)
    with bounded():
        try:
            found = slots.view()
        except maintenance_slots.Refused as exc:
            assert "cannot be read" in exc.message
            return
        assert {"max", "halted", "holders"} <= set(found) and isinstance(found["max"], int)
        if found["halted"]:
            assert isinstance(maintenance_halt.text(found["halted"]), str)
        # What a run does that gives something back: the rest is not changed.
        slots._write(lambda slots: slots["holders"].pop("a", None))
        if Cluster.written:
            assert set(found["holders"]) - {"a"} == set(Cluster.written[-1]["holders"])


KINDS = (
    next(kind for kind in workload_kinds.BUILT_IN if kind.off == 0 and kind.off is not False),
    next(kind for kind in workload_kinds.BUILT_IN if kind.off is False or kind.off is True),
    workload_kinds.Kind("x.example", "v1", "jobs", "Job", field=("spec", "runPolicy", "suspend"), off=True),
)


@given(st.sampled_from(KINDS), st.data(), st.booleans())
def test_a_mark_is_understood_or_refused(kind, data, controlled):
    """Whatever its annotation says, we write only one field below spec of a parked workload."""
    restore = parking_mark.nested(kind.field, data.draw(st.one_of(st.none(), st.booleans(), st.integers(-1, 9))))
    text = data.draw(
        st.one_of(
            hostile_json({**MARK, "restore": restore}),
            hostile_json({**MARK, "restore": 5}),
            st.just(json.dumps({**MARK, "restore": restore})),
        )
    )
    metadata = {
        "name": "w",
        "namespace": "n",
        "uid": "uid-1",
        "labels": {parking_mark.MARK: "true"},
        "annotations": {parking_mark.MARK: text},
    }
    if controlled:
        metadata["ownerReferences"] = [{"controller": True, "kind": "X", "name": "x"}]
    workload = workload_kinds.Workload(kind, {"metadata": metadata, "spec": {}})
    with bounded():
        try:
            mark = parking_mark.Mark.read(workload)
        except parking_mark.Unreadable as exc:
            assert "kubectl" in exc.message
            return
        assert mark is None or (mark.path[0] == "spec" and len(mark.path) > 1)
        if mark:
            assert mark.was is None or type(mark.was) is type(kind.off)
            assert json.loads(mark.text())["restore"] == parking_mark.nested(mark.path, mark.was)


@pytest.mark.parametrize("value", [0, 7, True, None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_mark_of_ours_is_read_as_it_was_written(kind, value):
    value = bool(value) if isinstance(kind.off, bool) and value is not None else value
    value = int(value) if not isinstance(kind.off, bool) and value is not None else value
    mark = parking_mark.Mark("r1", THEN, "uid-1", parking_mark.nested(kind.field, value))
    metadata = {
        "name": "w",
        "namespace": "n",
        "uid": "uid-1",
        "labels": {parking_mark.MARK: "true"},
        "annotations": {parking_mark.MARK: mark.text()},
    }
    read = parking_mark.Mark.read(workload_kinds.Workload(kind, {"metadata": metadata, "spec": {}}))
    assert (read.run, read.since, read.uid, read.restore, read.was) == ("r1", THEN, "uid-1", mark.restore, value)
