# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules with an API server behind them."""

from __future__ import annotations

import json
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action import npu_heal, npu_heal_watch
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.stub import node

NODES = "/api/v1/nodes"
HOSTS = [{"name": "a", "variables": ["npu_driver_version", "npu_heal_auto"]}]


def act(api, module=npu_heal, check_mode=False, **options):
    action = module.ActionModule.__new__(module.ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=False)
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **module.ActionModule.ARGUMENTS)).validate(
        dict({"hosts": HOSTS, "host": api.address, "api_key": "token"}, **options))  # fmt: skip
    assert not checked.error_messages, checked.error_messages
    return action.act(checked.validated_parameters)


@pytest.fixture
def wedged(api):
    told = {"since": "2026-11-21T10:00:00Z", "probes": 3, "reason": "npu-smi failed", "boot_id": "boot-0"}
    labels = {kube_client.LABEL_PRESENT: ""}
    api.put(NODES, node("a", "boot-0", labels=labels, annotations={"npuops.ascend/wedged": json.dumps(told)}))
    return api


def test_it_reads_the_nodes_and_nothing_else(wedged):
    result = act(wedged, heal_settings={"auto": True})
    assert result["order"] == ["a"] and result["hosts"]["a"]["verdict"] == "recover"
    assert {method for method, _path in wedged.requests} == {"GET"} and wedged.requests.count(("GET", NODES)) == 1


def test_a_smoke_pod_that_cannot_be_created_keeps_the_node_from_its_reboot(wedged, tmp_path):
    path = tmp_path / "smoke.yml"
    with pytest.raises(NpuError, match="Nothing was done: npu_upgrade_smoke_pod cannot be read: .*smoke.yml"):
        act(wedged, settings={"smoke_pod": str(path)}, heal_settings={"auto": True})


def test_bounds_are_checked(wedged):
    with pytest.raises(NpuError, match="npu_heal_storm_percent is 300"):
        act(wedged, heal_settings={"storm_percent": 300})


@pytest.mark.parametrize("module", [npu_heal, npu_heal_watch])
def test_a_mistyped_setting_is_refused(wedged, module):
    hosts = [{"name": "a", "variables": ["npu_heal_atuo", "npu_of_somebody_else"]}]
    with pytest.raises(NpuError, match="unknown variable npu_heal_atuo: did you mean npu_heal_auto") as caught:
        act(wedged, module, hosts=hosts)
    assert "somebody_else" not in caught.value.message and wedged.requests == []


def test_a_watch_in_check_mode_looks_once(wedged, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ansible-playbook", "heal.yml"])
    result = act(wedged, npu_heal_watch, check_mode=True)
    assert result["hosts"]["a"]["verdict"] == "awaiting-approval"
    assert {method for method, _path in wedged.requests} == {"GET"} and wedged.requests.count(("GET", NODES)) == 1


def test_a_watch_needs_a_pause(wedged):
    with pytest.raises(NpuError, match="npu_heal_watch_interval is 0"):
        act(wedged, npu_heal_watch, heal_settings={"watch_interval": 0})


def test_a_watch_whose_credentials_are_refused_ends(wedged):
    """As a task: the play fails, visibly, and systemd restarts it."""
    wedged.tokens = {"token"}

    def revoke(line):
        wedged.tokens = set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["ansible-playbook", "heal.yml"])
        patch.setattr(npu_heal_watch.screen, "show", revoke)
        with pytest.raises(NpuError, match="The watch stops: .*does not accept the credentials"):
            act(wedged, npu_heal_watch, heal_settings={"watch_interval": 1})
    assert wedged.requests.count(("GET", NODES)) >= 1 + 3


@pytest.mark.parametrize(("max_parallel", "most"), [(2, 2), (0, 3), ("1%", 3)])
def test_a_watch_leaves_a_percentage_to_the_runs_that_it_starts(wedged, monkeypatch, max_parallel, most):
    seen = []

    class Watch:
        def __init__(self, *arguments):
            seen.append(arguments[-1])

        def run(self, _more):
            pass

    monkeypatch.setattr("sys.argv", ["ansible-playbook", "heal.yml"])
    monkeypatch.setattr(npu_heal_watch.context, "CLIARGS", {})
    monkeypatch.setattr(npu_heal_watch.heal_watch, "Watch", Watch)
    act(wedged, npu_heal_watch, settings={"max_parallel": max_parallel}, heal_settings={"max_parallel": 3})
    assert seen == [most]
