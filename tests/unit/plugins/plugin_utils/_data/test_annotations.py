# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client writes into the annotations of one Node affects that Node only."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import annotations as data_annotations
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recovery_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import plan_table, rollout_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import planner as rollout_planner
from ansible_collections.npuops.ascend.plugins.plugin_utils._plan import snapshot as fleet_snapshot
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import approval, node_log, wedged_annotation
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import pending as maintenance_pending
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import slots as maintenance_slots
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import html as report_html
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import junit as report_junit
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import report_table, rollout_report
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import status as report_status

from support.fleet.hosts import NEW_DIGEST, NEW_RELEASE, OLD_RELEASE, host
from support.fleet.planning import asked
from support.fleet.reports import planned
from support.kube.stub import node
from support.random_json import RandomJson

NOW = 1795262400  # 2026-11-21T12:00:00Z
THEN = "2026-11-21T11:59:50Z"
STATE = "npu.openfuyao.com/driver-upgrade-state"
RECORD = {
    "run": "r1", "job": {"id": "1", "url": "https://awx.example/1", "user": "u", "workflow": None}, "generation": 3, "first_generation": 2,
    "heartbeat": THEN, "reason": "upgrade", "from": {"version": "25.5.0", "release": OLD_RELEASE},
    "to": {"version": "25.5.2", "release": NEW_RELEASE, "digest": NEW_DIGEST}, "step": "reboot-required", "uid": "uid-a",
    "unschedulable": False, "boot_id": None, "attempt": 1, "approval": {"time": THEN, "manager": "kubectl", "by": "u"}, "started": THEN,
    "times": {"cordon-required": THEN, "left-cordoned": THEN}, "failure": "x", "recoveries": [THEN], "due": "approval-required",
}  # fmt: skip
LAST = dict(RECORD, ended=THEN, outcome="failed", withdrawn_for="rollback", reason="recovery")
WEDGED = {"since": THEN, "reason": "hangs", "boot_id": "boot-a", "probes": 3}


def a_node(name="a", **annotations):
    names = {
        "record": maintenance_record.ANNOTATION_RECORD,
        "last": maintenance_record.ANNOTATION_LAST,
        "wedged": "npuops.ascend/wedged",
    }
    labels = {"openfuyao.com/npu.present": "", STATE: "upgrade-failed"}
    return node(name, boot_id="boot-" + name, labels=labels, annotations={names[key]: text for key, text in annotations.items()},
                unschedulable=True, allocatable={"huawei.com/Ascend910": "8"})  # fmt: skip


@pytest.mark.parametrize("annotation", ["record", "last"])
@pytest.mark.parametrize(("changes", "why"), [
    ({"recoveries": 5}, "recoveries is a number, not a list"),
    ({"recoveries": [5]}, "recoveries[0] is a number, not a string"),
    ({"recoveries": [THEN] * 1001}, "recoveries has 1001 entries, which is more than 1000"),
    ({"ports": {"0": "UP $(reboot)"}}, "ports.0 is 'UP $(reboot)', which is not a link and an address"),
    ({"ports": {"x": "UP -"}}, "a name in ports is 'x', which is not the number of a chip"),
    ({"ports": dict.fromkeys(map(str, range(1025)), "UP -")}, "ports has 1025 entries, which is more than 1024"),
    ({"times": []}, "times is a list, not an object"),
    ({"times": {"cordon-required": 1}}, "times.cordon-required is a number, not a string"),
    ({"generation": True}, "generation is true or false, not a number"),
    ({"generation": -1}, "generation is -1, which is not between 0 and"),
    ({"generation": 10**400}, "generation is 1000000"),
    ({"to": "25.5.2"}, "to is a string, not an object"),
    ({"to": {"version": []}}, "to.version is a list, not a string"),
    ({"run": "x" * 257}, "run has 257 characters, which is more than 256"),
    ({"boot_id": 1}, "boot_id is a number, not a string"),
    ({"unschedulable": "no"}, "unschedulable is a string, not true or false"),
    ({"step": "levitation-required"}, "step is 'levitation-required', which this version does not know"),
    ({"reason": ["upgrade"]}, "reason is ['upgrade'], which this version does not know"),
    ({"format": 2}, "format is 2, which this version does not know"),
])  # fmt: skip
def test_a_record_that_is_none(annotation, changes, why):
    made = a_node(**{annotation: json.dumps(dict(RECORD, **changes))})
    with pytest.raises(NpuError) as caught:
        maintenance_record.check(made)
    name = {"record": "npuops.ascend/maintenance", "last": "npuops.ascend/last-maintenance"}[annotation]
    assert "The annotation %s of the node a cannot be read: %s" % (name, why) in caught.value.message
    assert "or a newer version of npuops.ascend wrote it: then use that one" in caught.value.message
    assert "kubectl annotate node a %s-" % name in caught.value.message


def test_a_record_of_ours_and_one_with_more_in_it():
    for record in (RECORD, LAST, dict(RECORD, colour=["green"], to={"version": "1", "shape": {}})):
        made = a_node(record=json.dumps(record), last=json.dumps(record))
        maintenance_record.check(made)
        assert maintenance_record.decode(made) == record == maintenance_record.last(made)


def test_what_is_nested_without_end():
    with pytest.raises(NpuError, match="it is nested too deeply|it is not JSON"):
        maintenance_record.decode(a_node(record='{"run":' * 10000))
    assert wedged_annotation.of(a_node(wedged="[" * 100000)).reason.endswith("...")


@pytest.mark.parametrize(("text", "why"), [
    ('{"run": "r", "generation": 1, "new": %s1%s}' % ("[" * 400, "]" * 400), "it is nested too deeply"),
    ('{"run": "r", "generation": 1, "new": {"x": 1e400}}', "it is not JSON ('1e400' is no number)"),
])  # fmt: skip
def test_what_could_not_be_copied_or_written_back(text, why):
    """A record keeps the fields that this version does not know, so each of its writes copies them."""
    with pytest.raises(NpuError) as caught:
        maintenance_record.decode(a_node(record=text))
    assert why in caught.value.message


def test_what_is_written_can_be_read():
    """However much a hook, a host or an approver has to say."""
    made = a_node()
    made["metadata"].update(resourceVersion="1")
    made["metadata"]["annotations"].update({approval.ANNOTATION_APPROVE: "true", approval.ANNOTATION_APPROVED_BY: "x" * 200000})
    given, _why = approval.given(made, NOW)
    record = dict(RECORD, failure="y" * 500000, approval=given)
    change = node_log.Change(
        record, annotations={maintenance_record.ANNOTATION_LAST: maintenance_record.ended(record, "failed", THEN)}
    )
    written = change.patch(made)["metadata"]["annotations"]
    made["metadata"]["annotations"] = written
    maintenance_record.check(made)
    assert maintenance_record.decode(made) == change.record and len("".join(written.values())) < 20000


def test_a_record_that_lacks_something_is_not_gone_on_with():
    log = node_log.NodeLog(None, "a", "r1", None)
    log.node = a_node()
    with pytest.raises(
        NpuError, match="cannot be read: it lacks from, times. .*kubectl annotate node a npuops.ascend/maintenance-"
    ):
        log.adopt({key: value for key, value in RECORD.items() if key not in ("times", "from")})


@pytest.mark.parametrize(
    "text",
    [
        '{"max": "1"}',
        '{"halted": {}}',
        '{"halted": {"who": "x", "why": "y"}}',
        '{"holders": {"a": {"run": []}}}',
        '{"holders": {"a": {"run": "r", "since": 5}}}',
        "[" * 100000,
        "null",
        '{"max": -1}',
    ],
)
def test_slots_that_are_none(text):
    class Cluster:
        @staticmethod
        def get(_path):
            return {"metadata": {"annotations": {maintenance_slots.ANNOTATION: text}}}

    with pytest.raises(
        maintenance_slots.Refused, match="The annotation npuops.ascend/slots of the Lease n/npu-maintenance cannot be read: "
    ):
        maintenance_slots.Slots(Cluster(), "n", None).view()


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[" * 100000,
        '{"run": [], "since": "x", "uid": "u", "restore": {"spec": {"replicas": 1}}}',
        '{"run": "r", "since": "x", "uid": "u", "restore": {"spec": {"replicas": 1, "x": 2}}}',
        '{"run": "r", "since": "x", "uid": "u", "restore": {"spec": {"replicas": -1}}}',
        '{"run": "r", "since": "x", "uid": "u", "restore": {"spec": {"replicas": 1e3}}}',
    ],
)
def test_the_memory_of_a_parked_workload_that_is_none(text):
    with pytest.raises(data_annotations.Misfit):
        data_annotations.mark(text, 0)


def looks(made):
    """What everybody who looks at the fleet says of it: of two nodes, the first is ``made``, the other one is as it should be."""
    nodes = {"a": made, "b": a_node("b", wedged=json.dumps(dict(WEDGED, boot_id="boot-b")))}
    hosts = [host("a"), host("b")]
    recovery = recovery_plan.make(hosts, nodes, guards_of({"storm_percent": 100}), NOW, auto=True)
    snapshot = fleet_snapshot.FleetSnapshot(nodes, {}, disruption_budgets.Budgets(()))
    lookups = rollout_settings.Lookups(
        resolve=lambda *_args: NEW_DIGEST,
        size=lambda *_args: 1,
        support=lambda *_args: ([], []),
        confirm=lambda _pods: [],
        now=NOW,
    )
    slots = {"max": 1, "halted": None, "holders": {}}
    plan = rollout_planner.make(hosts, snapshot, slots, asked(retry=True), lookups)
    told = [{"name": name, "outcome": "done", "reason": None} for name in "ab"]
    rows = rollout_report.rows(told, {"hosts": {name: planned(name) for name in "ab"}, "order": ["a", "b"]}, nodes, "r1", NOW)
    report = rollout_report.document(rows, "r1", "upgrade", None, NOW)
    views = report_status.node_views(nodes, [], NOW, recovery)
    return {
        "recovery": (recovery.result(), recovery.table()),
        "plan": (plan.result(), plan_table.table(plan)),
        "report": (report, report_html.page(report), report_junit.document(report), report_table.table(report)),
        "fleet": (views, report_status.table(report_status.rows(hosts, views))),
        "due": maintenance_pending.change(made, True),
    }


def of_the_other(told):
    nodes = {node["host"]: node for node in told["report"][0]["nodes"]}
    # Its place in the order depends on what is in front of it.
    planned_ = {name: told["plan"][0]["hosts"]["b"][name] for name in ("verdict", "reasons", "notes", "to")}
    return told["recovery"][0]["hosts"]["b"], planned_, nodes["b"], told["fleet"][0]["b"]


@pytest.mark.parametrize("seed", range(8))
def test_what_is_written_on_one_node_does_nothing_to_the_others(seed):
    """Whatever it is: everything that looks at the fleet says the same of the other node, and no exception escapes."""
    expected = of_the_other(looks(a_node()))
    maker = RandomJson(seed)
    for _number in range(60):
        made = a_node(record=maker.text(RECORD), last=maker.text(LAST), wedged=maker.text(WEDGED))
        if maker.text(True) != "true":
            del made["metadata"]["annotations"][maintenance_record.ANNOTATION_RECORD]
        texts = json.dumps(made["metadata"]["annotations"])
        told = looks(made)
        assert of_the_other(told) == expected, texts


@pytest.mark.parametrize("annotation", ["record", "last"])
def test_the_node_is_named_and_blocked_everywhere(annotation):
    made = a_node(**{annotation: json.dumps(dict(LAST, recoveries=5)), "wedged": json.dumps(WEDGED)})
    told = looks(made)
    why = "of the node a cannot be read: recoveries is a number, not a list"
    for verdicts in (told["recovery"][0]["hosts"], told["plan"][0]["hosts"]):
        assert verdicts["a"]["verdict"] == "blocked" and why in verdicts["a"]["reasons"][0]
    row = told["report"][0]["nodes"][0]
    assert (row["outcome"], row["status"]) == ("failed", "failed") and why in row["reason"]
    assert annotation == "last" or why in told["fleet"][0]["a"]["maintenance"]
