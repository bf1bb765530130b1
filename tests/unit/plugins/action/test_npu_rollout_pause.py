# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it."""

from __future__ import annotations

import json
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action import npu_rollout_pause
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import person
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.stub import node

LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
SLOTS = "npuops.ascend/slots"
FAILURE = {"who": "run-1", "why": "npu-a did not come back.", "when": "2026-11-21T10:00:00Z", "reason": "upgrade", "node": "npu-a"}


@pytest.fixture(autouse=True)
def fleet(api, monkeypatch):
    monkeypatch.delenv("JOB_ID", raising=False)
    api.put("/api/v1/nodes", node("npu-a"))
    api.put(LEASES, {"metadata": {"name": "npu-maintenance", "annotations": {SLOTS: json.dumps({"max": 1, "halted": FAILURE})}}})


def run(api, check_mode=False, task_vars=None, **options):
    action = npu_rollout_pause.ActionModule.__new__(npu_rollout_pause.ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=False)
    action._task_vars = task_vars or {}
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **action.ARGUMENTS)).validate(
        {"host": api.address, "api_key": "token", **options})  # fmt: skip
    assert not checked.error_messages
    return action.act(checked.validated_parameters)


def halted(api):
    return json.loads(api.objects[LEASES]["npu-maintenance"]["metadata"]["annotations"][SLOTS])["halted"]


def test_paused_until_resumed(api):
    paused = run(api, reason="incident 4711")
    assert paused["changed"] and paused["halted"] == halted(api)
    assert (halted(api)["why"], halted(api)["reason"], halted(api)["failure"]) == ("incident 4711", "pause", FAILURE)
    assert paused["msg"].startswith("All rollouts are paused since ") and paused["msg"].endswith(
        "ansible-playbook npuops.ascend.resume"
    )
    assert not run(api, reason="incident 4711")["changed"]
    resumed = run(api, state="running")
    assert (resumed["changed"], resumed["halted"], halted(api)) == (True, FAILURE, FAILURE)
    assert "npu-a did not come back" in resumed["msg"]
    assert not run(api, state="running")["changed"]


@pytest.mark.parametrize("state", ["paused", "running"])
def test_check_mode_changes_nothing(api, state):
    if state == "running":
        run(api)
    before = halted(api)
    assert run(api, check_mode=True, state=state)["changed"]
    assert halted(api) == before


def test_who_paused_it_is_the_user_of_awx(api):
    run(api, task_vars={"awx_job_id": 42, "awx_user_name": "chen.wei"})
    assert halted(api)["who"] == "chen.wei (job 42)"


def test_who_paused_it_has_no_name_on_this_machine(api, monkeypatch):
    def unknown():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(person.getpass, "getuser", unknown)
    monkeypatch.setattr(person.os, "getuid", lambda: 4711)
    run(api)
    assert halted(api)["who"].startswith("user ID 4711@")


def test_a_cluster_without_a_lease_can_be_paused(api):
    del api.objects[LEASES]["npu-maintenance"]
    run(api, reason="no upgrades this week")
    assert halted(api)["why"] == "no upgrades this week"
    assert run(api, state="running")["msg"] == "Rollouts are not paused, and not halted."
