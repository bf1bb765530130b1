# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it."""

from __future__ import annotations

import json
import os
import tempfile
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_report import ActionModule
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet import reports
from support.kube.eviction_stub import EvictionApi
from support.webhooks import Webhooks

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"


@pytest.fixture(autouse=True)
def discovery_cache(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("discovery")))


@pytest.fixture
def api():
    with EvictionApi() as server:
        server.put(NODES, reports.upgraded("npu-a", 0)[4])
        yield server


def halt(api):
    slots = json.dumps({"max": 1, "halted": reports.HALTED, "holders": {}})
    api.put(LEASES, {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": slots}}})


def run(api, check_mode=False, **options):
    plan = {"hosts": {"npu-a": reports.planned("npu-a")}, "order": ["npu-a"]}
    hosts = [{"name": "npu-a", "outcome": "done", "reason": None}]
    spec = dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)
    given = {"run": "r1", "plan": plan, "hosts": hosts, "host": api.address, "api_key": "token"}
    checked = ArgumentSpecValidator(spec).validate(dict(given, **options))
    assert not checked.error_messages
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=False)
    return action.act(checked.validated_parameters)


@pytest.mark.parametrize("options", [{}, {"directory": ""}])
def test_without_a_directory_nothing_is_written(api, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    result = run(api, **options)
    assert (result["files"], result["changed"], result["problem"]) == ({}, False, None) and not os.listdir(tmp_path)
    assert result["table"][1].split() == ["npu-a", "25.5.0", "25.5.1", "upgraded"] + "60 s 240 s 60 s 360 s".split()


def test_the_files_are_those_of_the_report(api, tmp_path):
    halt(api)
    result = run(api, directory=str(tmp_path / "reports"))
    assert sorted(result["files"]) == ["html", "json", "xml"] and result["changed"]
    with open(result["files"]["json"], encoding="utf-8") as stream:
        assert json.load(stream) == result["report"]
    assert result["halted"] == result["report"]["halted"] == reports.HALTED
    # What is large is in the files only.
    assert set(result) == {"changed", "table", "problem", "halted", "files", "report"}


def test_check_mode_writes_nothing(api, tmp_path):
    result = run(api, check_mode=True, directory=str(tmp_path / "reports"))
    assert result["files"]["html"] == str(tmp_path / "reports" / "npu-upgrade-r1.html") and result["changed"]
    assert not os.listdir(tmp_path)


def test_what_cannot_be_written_is_told_with_the_table(api, tmp_path):
    (tmp_path / "reports").write_text("")
    result = run(api, directory=str(tmp_path / "reports"))
    assert result["problem"].startswith("The report could not be written to %s " % (tmp_path / "reports"))
    assert (result["files"], result["changed"]) == ({}, False) and "upgraded" in result["table"][1]


def test_nobody_is_asked_but_for_nodes_and_the_lease(api):
    run(api)
    assert {method for method, *_rest in api.requests} == {"GET"}


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_webhook_is_notified_of_the_end(api, check_mode):
    halt(api)
    with Webhooks() as server:
        run(api, check_mode, notify={"url": server.url})
        if check_mode:
            assert not server.bodies
        else:
            (body,) = server.bodies
            assert (body["event"], body["counts"], body["run"], body["cluster"]) == ("end", {"upgraded": 1}, "r1", api.address)
            assert body["lines"][1].startswith("Halted since %(when)s: " % reports.HALTED)
            assert any(line.startswith("To continue: ansible-playbook npuops.ascend.upgrade") for line in body["lines"])


def test_a_webhook_that_does_not_answer_is_a_warning(api, capsys):
    assert run(api, notify={"url": "http://127.0.0.1:9/secret"})["problem"] is None
    assert "127.0.0.1 was not notified: [Errno 111] Connection refused" in " ".join(capsys.readouterr().err.split())
