# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it: several nodes at once."""

from __future__ import annotations

import json
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action import npu_release
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness

from support.fleet.hosts import host
from support.kube.field_owners import cordon_of
from support.kube.stub import node

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
SLOTS = "npuops.ascend/slots"
RECORD, LAST = "npuops.ascend/maintenance", "npuops.ascend/last-maintenance"
HALT = {"who": "run-1", "why": "npu-z did not come back.", "when": "2026-11-21T10:00:00Z", "reason": "upgrade", "node": "npu-z"}


def record(run="run-1", **changes):
    whole = {
        "run": run, "generation": 1, "first_generation": 1, "heartbeat": "2026-11-21T10:00:00Z", "reason": "upgrade",
        "from": {"version": "25.3.0"}, "to": {"version": "25.5.0"}, "step": "drain-required", "uid": "u", "unschedulable": False,
        "boot_id": None, "attempt": 1, "approval": None, "started": "2026-11-21T09:00:00Z",
        "times": {"cordon-required": "2026-11-21T09:00:00Z", "components-paused": "2026-11-21T09:00:00Z"}, "failure": None,
        "recoveries": [],
    }  # fmt: skip
    return {**whole, **changes}


def in_maintenance(name, **changes):
    labels = {"npu.openfuyao.com/driver-upgrade-state": "drain-required", "npuops.ascend/components": "paused"}
    text = changes.pop("text", None) or json.dumps(record(**changes))
    made = node(name, labels=labels, annotations={RECORD: text}, unschedulable=True)
    made["metadata"]["managedFields"] = [cordon_of("npuops.ascend-maintenance")]
    return made


@pytest.fixture(autouse=True)
def fleet(api, monkeypatch):
    monkeypatch.delenv("JOB_ID", raising=False)
    holders = {name: {"run": "run-1", "since": "2026-11-21T09:00:00Z"} for name in ("a", "b")}
    api.put(
        NODES,
        in_maintenance("a"),
        in_maintenance("b", boot_id="boot-b", step="reboot-required"),
        in_maintenance("c", text="{not JSON"),
        node("d"),
        in_maintenance("others"),
    )
    slots = json.dumps({"max": 2, "halted": HALT, "holders": holders})
    api.put(LEASES, {"metadata": {"name": "npu-maintenance", "annotations": {SLOTS: slots}}})


def run(api, names="abcd", check_mode=False, **options):
    action = npu_release.ActionModule.__new__(npu_release.ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=False)
    action._task_vars = {"awx_job_id": 42, "awx_user_name": "chen.wei"}
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **action.ARGUMENTS)).validate(
        {"host": api.address, "api_key": "token", "hosts": [host(name) for name in names], "heartbeat_limit": 0, **options})  # fmt: skip
    assert not checked.error_messages, checked.error_messages
    return action.act(checked.validated_parameters)


def test_each_node_for_itself(api):
    """One that must not be released, and one that cannot be read, keep no other one."""
    result = run(api, reason="incident 4711")
    assert (result["changed"], result["released"]) == (True, ["a"])
    told = "\n".join(result["lines"])
    assert "a: the upgrade from 25.3.0 to 25.5.0 by the run run-1 ended; its components run again; it is uncordoned" in told
    assert "HALTED: " in told and "npu-z did not come back" in told
    reboot, unreadable = result["problems"]
    assert reboot.startswith("b was not released: Its reboot is certain") and "npu_release_force=true" in reboot
    assert unreadable.startswith("c was not released: The annotation npuops.ascend/maintenance of the node c cannot be read")
    released = api.objects[NODES]["a"]
    assert not released["spec"].get("unschedulable") and released["metadata"]["labels"] == {"npuops.ascend/components": "enabled"}
    last = json.loads(released["metadata"]["annotations"][LAST])
    assert (last["outcome"], last["failure"]) == ("released", "Released by chen.wei (job 42): Incident 4711.")
    slots = json.loads(api.objects[LEASES]["npu-maintenance"]["metadata"]["annotations"][SLOTS])
    assert set(slots["holders"]) == {"b"} and slots["halted"] == HALT
    assert api.objects[NODES]["others"]["metadata"]["annotations"].keys() == {RECORD}
    again = run(api, "ad", reason="incident 4711")
    assert not again["changed"] and again["lines"][0] == "No maintenance has left anything on a, d."


def test_forced(api):
    assert run(api, "b", force=True)["released"] == ["b"]
    last = json.loads(api.objects[NODES]["b"]["metadata"]["annotations"][LAST])
    assert last["failure"].endswith("no reason given.".capitalize()) and last["boot_id"] == "boot-b"


def test_check_mode(api):
    before = json.dumps(api.objects, sort_keys=True)
    assert run(api, "a", check_mode=True)["released"] == ["a"]
    assert json.dumps(api.objects, sort_keys=True) == before


def test_a_run_that_shows_a_heartbeat_keeps_its_nodes(api, monkeypatch):
    def beat(_clock, _seconds):
        changed = api.objects[NODES]["a"]
        changed["metadata"]["annotations"][RECORD] = json.dumps(record(heartbeat="2026-11-21T10:00:10Z"))
        api.put(NODES, changed)

    monkeypatch.setattr(run_liveness.Clock, "sleep", beat)
    result = run(api, "ab", force=True, heartbeat_limit=90)
    assert not result["changed"] and [text.partition(":")[0] for text in result["problems"]] == [
        "a was not released",
        "b was not released",
    ]
    assert "the run run-1 is at work" in result["problems"][0].lower()


def test_a_node_that_does_not_exist(api):
    assert "does not exist: it was deleted" in run(api, "z")["problems"][0]
