# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it, the real drain and smoke pod, and a host that only the port knows."""

from __future__ import annotations

import json
import re
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.dataloader import DataLoader
from ansible_collections.npuops.ascend.plugins.action import npu_maintenance
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings

from support.fleet.fake_fleet import NEW, OLD
from support.kube.eviction_stub import PODS, EvictionApi, pod
from support.kube.stub import node
from support.webhooks import Webhooks

NODES = "/api/v1/nodes"
STATE = "npu.openfuyao.com/driver-upgrade-state"
RESOURCE = "huawei.com/Ascend910"


class Host:
    """Reboots in no time, and its kubelet is as fast."""

    boot_id, driver, good, generation = "boot-0", OLD, OLD, 0

    def __init__(self, api):
        self._api, self.calls = api, []

    def view(self, _wait=None, chips=False, _ports=False):
        return {
            "boot_id": self.boot_id, "generation": self.generation, "driver": self.driver, "good": self.good, "next": None,
            "previous": None, "trial": None, "holders": [], "ready": {"release": self.driver}, "failed": None,
            "loaded_version": self.driver.split("-")[0], "unit": "active",
            "kernel": OLD.split("-")[1], "releases": [OLD],
        }  # fmt: skip

    def rebooted(self, boot_id, generation, release, refuse_held):
        self.calls.append(("rebooted", boot_id, generation, release, refuse_held))
        self.boot_id, self.driver, self.generation = "boot-1", release, generation
        self._api.objects[NODES]["npu-a"]["status"]["nodeInfo"]["bootID"] = "boot-1"
        return {"already": False, "queued": True, "held": []}

    def confirmed(self, generation, release, boot_id):
        self.calls.append(("confirmed", generation, release))
        self.good = release

    def validate(self, version):
        return {"valid": version == "25.5.0", "checks": [], "msg": ""}


@pytest.fixture
def api():
    with EvictionApi() as server:
        labels = {STATE: "upgrade-required", kube_client.LABEL_COMPONENTS: "enabled"}
        server.put(NODES, node("npu-a", "boot-0", labels=labels, allocatable={RESOURCE: "8"}))
        yield server


@pytest.fixture
def host(api, monkeypatch):
    made = Host(api)
    monkeypatch.setattr(npu_maintenance, "HostPort", lambda *_arguments: made)
    return made


def act(api, check_mode=False, transport="ssh", **options):
    target = {"version": "25.5.0", "release": NEW, "digest": "sha256:b"}
    given = {"node": "npu-a", "run": "r", "target": target, "resource": RESOURCE, "chips": "8"}
    validator = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **npu_maintenance.ActionModule.ARGUMENTS))
    checked = validator.validate(dict(given, host=api.address, api_key="token", **options))
    assert not checked.error_messages
    module = npu_maintenance.ActionModule.__new__(npu_maintenance.ActionModule)
    module._task = types.SimpleNamespace(check_mode=check_mode)
    module._connection = types.SimpleNamespace(transport=transport)
    module._task_vars, module._loader = {"awx_user_name": "chen.wei", "awx_workflow_job_id": 41}, DataLoader()
    return module.act(checked.validated_parameters)


def test_upgrade(api, host, capsys, monkeypatch):
    monkeypatch.setenv("JOB_ID", "42")
    monkeypatch.setenv("AWX_HOST", "https://awx.example.com/")
    api.objects[NODES]["npu-a"]["metadata"]["annotations"]["npu.openfuyao.com/approve-reboot"] = "true"
    api.put(PODS, pod("web-1", node="npu-a"))
    result = act(api, settings={"auto": "false", "drain": {"timeout": "30"}, "max_parallel": "2"})
    assert (result["outcome"], result["changed"], result["msg"]) == ("done", True, "done")
    assert api.evicted == ["web-1"]
    assert host.calls == [("rebooted", "boot-0", 1, NEW, True), ("confirmed", 1, NEW)]
    found = api.objects[NODES]["npu-a"]
    last = json.loads(found["metadata"]["annotations"]["npuops.ascend/last-maintenance"])
    assert last["outcome"] == "success" and last["approval"]["job"] == "42" and last["to"]["digest"] == "sha256:b"
    assert last["job"] == {"id": "42", "url": "https://awx.example.com/#/jobs/playbook/42", "user": "chen.wei", "workflow": "41"}
    assert "unschedulable" not in found["spec"] and STATE not in found["metadata"]["labels"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "npu-a  00:00  cordon  begins: upgrade from 25.2.0 to 25.5.0"
    assert act(api)["outcome"] == "up-to-date"


def test_a_webhook_is_notified_of_an_approval_and_of_a_failure(api, host):
    with Webhooks() as server:
        result = act(api, notify={"url": server.url}, settings={"auto": False, "approval_wait": 1})
        assert result["outcome"] == "awaiting-approval"
        (asks,) = server.bodies
        assert asks["event"] == "approval" and "npu.openfuyao.com/approve-reboot" in asks["text"]
        result = act(api, notify={"url": server.url}, settings={"auto": True}, failure="the hook failed")
        assert result["outcome"] == "failed"
        assert server.bodies[-1]["lines"] == ["npu-a: failed: %s" % result["reason"]]


def test_how_far_the_run_is(api, host, capsys):
    assert act(api, settings={"auto": True}, due=2)["outcome"] == "done"
    assert re.search(r"^1 of 2 nodes done, about \d+ (s|min) left$", capsys.readouterr().out, re.M)


def test_check_mode(api, host):
    assert act(api, check_mode=True) == {"outcome": "check-mode", "msg": "Would run the maintenance of npu-a"}
    assert api.requests == []


def test_the_controller_is_not_rebooted(api, host):
    with pytest.raises(NpuError, match="the controller would reboot itself"):
        act(api, transport="local")


def test_a_run_that_would_take_every_other_one_for_dead(api, host):
    for seconds in ("0", "-1"):
        with pytest.raises(NpuError, match="npu_upgrade_heartbeat_limit is '%s'; it must be a whole number, 1 or more" % seconds):
            act(api, settings={"heartbeat_limit": seconds})
    assert api.requests == []


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"max_parallel": "-1"}, "npu_upgrade_max_parallel is '-1'"),
        ({"drain": {"timeout": "soon"}}, "npu_upgrade_drain.timeout"),
        ({"smoke_pod": "/nowhere/smoke.yml"}, "npu_upgrade_smoke_pod cannot be read"),
    ],
)
def test_settings_that_are_none(api, host, settings, text):
    with pytest.raises(NpuError, match=text):
        act(api, settings=settings)
    assert not [request for request in api.requests if request[0] != "GET"]


def test_an_api_that_stays_away_ends_the_whole_run(api, host, monkeypatch):
    monkeypatch.setattr(kube_retry.RetryingCluster.__init__, "__defaults__", (0, 0, 0))
    api.faults[("GET", NODES + "/npu-a")] = (503, "the server is currently unable to handle the request")
    with pytest.raises(NpuError) as caught:
        act(api)
    assert caught.value.details["outcome"] == "failed" and caught.value.details["api_unreachable"] is True


def test_what_could_not_begin_says_so_for_the_play(api, host):
    host.boot_id = "another"
    with pytest.raises(NpuError, match="is not the node npu-a") as caught:
        act(api, settings={"auto": True})
    assert caught.value.details == {"outcome": "failed", "changed": False}


@pytest.mark.parametrize(
    ("settings", "reason", "until"),
    [
        ({}, "upgrade", "done"),
        ({"hook_after": "a.yml"}, "rollback", "confirm"),
        ({"hook_after": "a.yml", "with_os": "o.yml"}, "upgrade", "reboot"),
        ({"hook_after": "a.yml", "with_os": "o.yml"}, "recovery", "confirm"),
        ({"hook_before": "b.yml", "with_os": "o.yml"}, "upgrade", "cordon"),
    ],
)
def test_it_stops_where_the_first_tasks_of_the_user_run(settings, reason, until):
    assert npu_maintenance.maintenance_cycle.before_hook(valid_settings.settings("npu_upgrade", settings), reason) == until


def test_without_hooks_one_call_is_all(api, host):
    assert act(api, until="hook", settings={"auto": "true"})["outcome"] == "done" and host.good == NEW


def test_with_a_hook_it_stops_there(api, host):
    done = act(api, until="hook", settings={"auto": "true", "hook_before": "b.yml"})
    assert done["outcome"] == "under-way" and not host.calls


def test_a_percentage_of_the_cluster_is_none_of_one_node(api, host):
    with pytest.raises(NpuError, match="max_parallel is 50%.*Give the max_parallel that npu_plan or npu_heal returned"):
        act(api, settings={"auto": "true", "max_parallel": "50%"})
    assert not host.calls
