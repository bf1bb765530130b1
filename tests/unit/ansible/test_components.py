# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an upgrade makes of the components before and after the drivers, and what its report is told."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.pace import pace
from ansible_collections.npuops.ascend.plugins.plugin_utils._report import rollout_report

from support.fleet.reports import planned
from support.scripted import Scripted

CHANGE = "change DaemonSet npu-operator/npu-exporter"
EXPORTER = {
    "deploy": {"exporter": True}, "left_alone": None, "version_line": "7.3", "unfit": [], "driver_path": "/var/lib/Ascend/driver",
    "containerd_dir": "/run/containerd", "kubelet_dir": "/var/lib/kubelet", "accelerators": [], "admission_policies": False,
    "service_monitors": False, "kubelet_pods": False,
}  # fmt: skip
LEFT_ALONE = dict(EXPORTER, deploy={}, version_line=None, left_alone="the rollout is halted")
ROLLED_OUT = {"changed": True, "changes": [CHANGE], "rollouts": []}
FAILED = {"failed": True, "msg": "DaemonSet npu-operator/npu-exporter: it does not work on a."}
REPORT = {"report": rollout_report.document([], "r1", "upgrade", None, 1795264200.0), "problem": None, "table": ["<<the report>>"]}


def upgrade(tmp_path, order, found=None, objects=None, arguments=()):
    """(the run, calls of npu_objects after the plan, what npu_report is told of the components)."""
    plan = {
        "components": {"order": order, "from": ["26.1"], "to": "7.3", "changes": [CHANGE]},
        "hosts": {"a": dict(planned("a", "up-to-date"), node="a")},
        "pace": pace(1),
        "due_versions": {},
        **dict.fromkeys(("order", "deferred", "due_nodes", "settled_nodes", "park", "in_flight", "table"), []),
        **dict.fromkeys(("refusal", "problem", "halted", "estimate_seconds", "cluster_reasons"), None),
        "counts": {}, "green": True, "summary": "",
    }  # fmt: skip
    answers = {
        "npu_facts": {"*": [{"npu": {}}]},
        "npu_components": {"*": [EXPORTER, found or EXPORTER]},
        "npu_objects": {"*": [ROLLED_OUT, objects or ROLLED_OUT]},
        "npu_plan": {"*": [plan]},
        "npu_pending": {"*": [{"changed": False}]},
        "npu_workloads": {"*": [{"changed": False, "restored": [], "left": []}]},
        "npu_report": {"*": [REPORT]},
    }
    scripted = Scripted(tmp_path, answers)
    done = scripted.run("npuops.ascend.upgrade", {"a": {"ansible_connection": "local"}}, *arguments)
    told = [given["components"] for _host, given in scripted.calls("npu_report")]
    return done, scripted.calls("npu_objects")[1:], told[0] if told else None, scripted


def test_last_and_not_any_more(tmp_path):
    """Between the plan and the end, something came that keeps the components as they are."""
    done, objects, told, scripted = upgrade(tmp_path, "after", LEFT_ALONE)
    assert done.returncode == 0, done.stdout
    assert not objects and told["left_alone"] == "the rollout is halted"
    assert [given["heed_halt"] for _host, given in scripted.calls("npu_components")] == [False, True]


def test_last(tmp_path):
    done, objects, told, _scripted = upgrade(tmp_path, "after")
    assert done.returncode == 0 and len(objects) == 1, done.stdout
    assert (told["left_alone"], told["unfit"], told["problem"]) == ("", [], "")


def test_definitions_that_are_wrong(tmp_path):
    """The plan tells it, as everything else that is in the way."""
    _done, objects, _told, scripted = upgrade(tmp_path, None, arguments=["-e", "npu_exporter_version=v6.0.0"])
    ((_host, given),) = scripted.calls("npu_plan")
    assert "npu_exporter_version is v6.0.0" in given["components"]["problem"] and not objects


def test_a_component_that_does_not_work_before_the_drivers(tmp_path):
    done, objects, told, scripted = upgrade(tmp_path, "before", objects=FAILED)
    assert done.returncode == 2 and len(objects) == 1 and told is None and not scripted.calls("npu_pending")
    assert "No driver was changed: DaemonSet npu-operator/npu-exporter: it does not work on a." in done.stdout


@pytest.mark.parametrize("order", ["before", "after", None])
def test_check_mode(tmp_path, order):
    done, _objects, told, _scripted = upgrade(tmp_path, order, arguments=["--check"])
    assert done.returncode == 0 and told["order"] == order, done.stdout
