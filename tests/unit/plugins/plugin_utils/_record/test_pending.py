# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import pending as maintenance_pending

from support.kube.stub import node

NODES = "/api/v1/nodes"
STATE = "npu.openfuyao.com/driver-upgrade-state"
REBOOT = "npu.openfuyao.com/reboot-required"
RECORD = {"npuops.ascend/maintenance": "{}"}
WEDGED = {"npuops.ascend/wedged": "{}"}
DATED = {"npuops.ascend/wedged": '{"reason": "npu-smi failed", "since": "2026-11-21T21:14:51Z"}'}
APPROVE = "npu.openfuyao.com/approve-reboot"
FOR = "npuops.ascend/approval-for"


def states(api):
    return {name: item["metadata"]["labels"].get(STATE) for name, item in api.objects[NODES].items()}


def test_all_due_nodes_in_one_go(api, cluster):
    api.put(NODES, node("a"), node("b"), node("c"), node("old", labels={STATE: "upgrade-required"}))
    changes = maintenance_pending.label(cluster, ["a", "b"], ["c", "old"])
    assert states(api) == {"a": "upgrade-required", "b": "upgrade-required", "c": None, "old": None}
    assert [change["name"] for change in changes] == ["a", "b", "old"]
    assert changes[0] == {"name": "a", "before": {}, "after": {STATE: "upgrade-required"}}
    assert maintenance_pending.label(cluster, ["a", "b"], ["c", "old"]) == []


@pytest.mark.parametrize(
    ("labels", "annotations", "due", "wanted"),
    [
        ({}, {}, True, {STATE: "upgrade-required"}),
        ({STATE: "approval-required", REBOOT: "true"}, {}, True, {}),
        ({STATE: "drain-required"}, RECORD, True, {}),
        ({STATE: "drain-required"}, RECORD, False, {}),
        ({STATE: "drain-required"}, {}, False, {}),
        ({STATE: "upgrade-failed"}, {}, True, {STATE: "upgrade-required"}),
        ({STATE: "upgrade-failed"}, {}, False, {STATE: None}),
        ({STATE: "approval-required", REBOOT: "true"}, {}, False, {STATE: None, REBOOT: None}),
        ({STATE: "approval-required", REBOOT: "true"}, WEDGED, False, {STATE: None}),
        ({}, {}, False, {}),
    ],
)
def test_what_is_written(labels, annotations, due, wanted):
    assert maintenance_pending.change(node("a", labels=labels, annotations=annotations), due) == (wanted, {})


@pytest.mark.parametrize(
    ("annotations", "due", "wanted"),
    [
        ({}, True, {FOR: "26.1.0"}),
        # An approval before the first run is for whatever comes.
        ({APPROVE: "true"}, True, {FOR: "26.1.0"}),
        ({APPROVE: "true", FOR: "26.1.0"}, True, {}),
        ({APPROVE: "true", FOR: "25.5.3"}, True, {FOR: "26.1.0", APPROVE: None, "npu.openfuyao.com/approved-by": None}),
        ({FOR: "25.5.3"}, True, {FOR: "26.1.0"}),
        ({APPROVE: "true", FOR: "$(reboot)"}, True, {FOR: "26.1.0"}),
        ({APPROVE: "true", FOR: "25.5.3"}, False, {}),
        ({FOR: "25.5.3"}, False, {FOR: None}),
        ({APPROVE: "true", FOR: "25.5.3", **RECORD}, True, {}),
        # Of its recovery, which comes first; and of one that came to nothing.
        ({APPROVE: "true", FOR: "recovery-2026-11-21T21:14:51Z", **DATED}, True, {}),
        (
            {APPROVE: "true", FOR: "recovery-2026-11-21T21:14:51Z"},
            True,
            {FOR: "26.1.0", APPROVE: None, "npu.openfuyao.com/approved-by": None},
        ),
    ],
)
def test_what_an_approval_is_for(annotations, due, wanted):
    assert maintenance_pending.change(node("a", annotations=annotations), due, "26.1.0")[1] == wanted


def test_an_approval_for_another_version_is_withdrawn(api, cluster):
    api.put(NODES, node("a", labels={STATE: "approval-required"}, annotations={APPROVE: "true", FOR: "25.5.3"}))
    changes = maintenance_pending.label(cluster, ["a"], [], versions={"a": "26.1.0"})
    assert changes == [{"name": "a", "before": {APPROVE: "true", FOR: "25.5.3"}, "after": {FOR: "26.1.0"}}]
    assert api.objects[NODES]["a"]["metadata"]["annotations"] == {FOR: "26.1.0"}
    assert maintenance_pending.label(cluster, ["a"], [], versions={"a": "26.1.0"}) == []


def test_a_node_that_goes_into_maintenance_in_that_moment_is_left_alone(api, cluster):
    api.put(NODES, node("a"))

    def interfere():
        api.on_patch = lambda: None
        api.put(NODES, node("a", labels={STATE: "cordon-required"}, annotations=RECORD))

    api.on_patch = interfere
    assert maintenance_pending.label(cluster, ["a"], []) == []
    assert states(api) == {"a": "cordon-required"}


def test_a_write_of_the_kubelet_in_that_moment_does_not_matter(api, cluster):
    api.put(NODES, node("a"))

    def interfere():
        api.on_patch = lambda: None
        api.put(NODES, node("a", labels={"other": "1"}))

    api.on_patch = interfere
    maintenance_pending.label(cluster, ["a"], [])
    assert api.objects[NODES]["a"]["metadata"]["labels"] == {"other": "1", STATE: "upgrade-required"}


def test_check_mode_writes_nothing(api, cluster):
    api.put(NODES, node("a"))
    assert maintenance_pending.label(cluster, ["a"], [], check_mode=True)
    assert states(api) == {"a": None}


def test_missing_nodes_stop_before_the_first_write(api, cluster):
    api.put(NODES, node("a"))
    with pytest.raises(NpuError, match="No such node in the cluster: b"):
        maintenance_pending.label(cluster, ["a", "b"], ["gone"])
    assert states(api) == {"a": None}


def test_a_node_that_may_not_be_written_keeps_no_other_one(api, cluster):
    api.put(NODES, node("a"), node("b"), node("c", labels={STATE: "upgrade-required"}))
    api.faults["PATCH", NODES + "/a"] = (422, "a policy says no")
    with pytest.raises(NpuError, match="a: .*a policy says no") as caught:
        maintenance_pending.label(cluster, ["a", "b"], ["c"])
    assert states(api) == {"a": None, "b": "upgrade-required", "c": None}
    assert caught.value.details["changed"]
