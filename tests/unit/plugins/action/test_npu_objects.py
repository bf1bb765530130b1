# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it. How DaemonSets are rolled out: plugin_utils/_components."""

from __future__ import annotations

import json
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_objects import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.daemonset_stub import SETS, Clock, DaemonSetApi, definition

OLD, NEW = "registry.example/plugin:1", "registry.example/plugin:2"
PACE = {"max_unavailable": "1", "timeout": 60}


@pytest.fixture
def api(monkeypatch):
    with DaemonSetApi() as server:
        monkeypatch.setattr(kube_client, "Clock", lambda: Clock(server))
        server.fleet("a", "b")
        run(server, OLD, PACE)
        server.settle()
        yield server


def run(api, image, rollout, check_mode=False, diff=False):
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=diff)
    given = {"definitions": json.dumps(definition(image)), "host": api.address, "api_key": "token"}
    if rollout is not None:
        given["rollout"] = rollout
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)).validate(given)
    assert not checked.error_messages
    return action.act(checked.validated_parameters)


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_changed_template_is_rolled_out(api, check_mode, capsys):
    result = run(api, NEW, PACE, check_mode, diff=True)
    assert result["changed"] and result["changes"] == ["change DaemonSet npu-operator/plugin"]
    assert [(item["from"], item["to"], item["nodes"], item["first"]) for item in result["rollouts"]] == [(OLD, NEW, 2, "a")]
    assert NEW in result["diff"][0]["after"] and OLD in result["diff"][0]["before"]
    assert set(api.running().values()) == {OLD if check_mode else NEW}
    assert "image %s -> %s on 2 nodes: a first" % (OLD, NEW) in " ".join(capsys.readouterr().out.split())


def test_a_second_run_changes_nothing(api):
    assert run(api, OLD, PACE) == {"changed": False, "changes": [], "rollouts": []}


def test_without_a_pace_it_is_kubernetes_that_replaces_pods(api):
    assert run(api, NEW, None) == {"changed": True, "changes": ["change DaemonSet npu-operator/plugin"], "rollouts": []}
    assert not api.deleted and api.objects[SETS]["plugin"]["spec"]["updateStrategy"]["type"] == "RollingUpdate"


@pytest.mark.parametrize(
    "pace", [{"max_unavailable": "0"}, {"max_unavailable": "half"}, {"max_unavailable": "101%"}, {"timeout": 0}]
)
def test_a_pace_that_is_none(api, pace):
    with pytest.raises(NpuError, match="it must be a number of"):
        run(api, NEW, pace)
    assert not api.deleted
