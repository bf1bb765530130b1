# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it: what it says of the cluster as a whole."""

from __future__ import annotations

import json
import tempfile
import time
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action import npu_status
from ansible_collections.npuops.ascend.plugins.action.npu_status import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet import metrics, reports
from support.kube.eviction_stub import EvictionApi
from support.kube.field_owners import annotation_of
from support.kube.stub import node

APPROVE = "npu.openfuyao.com/approve-reboot"
NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"


@pytest.fixture
def api(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("discovery")))
    with EvictionApi() as server:
        yield server


def status(api, check_mode=False, **given):
    spec = dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)
    checked = ArgumentSpecValidator(spec).validate({"hosts": [], "host": api.address, "api_key": "token", **given})
    assert not checked.error_messages
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=False)
    return action.act(checked.validated_parameters)


def lease(api, slots):
    api.put(LEASES, {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": slots}}})


@pytest.mark.parametrize("fault", [(503, "the server is restarting"), (429, "too many requests")])
def test_what_is_waited_for_is_looked_at_again_after_a_fault(api, monkeypatch, fault):
    """The first look, which tells whether the address is right, is not repeated."""
    api.faults["GET", NODES] = fault
    with pytest.raises(NpuError, match=fault[1]):
        status(api, wait_timeout=300)
    del api.faults["GET", NODES]
    pauses = []

    def pause(_seconds):
        pauses.append(1)
        if len(pauses) < 3:
            api.faults["GET", NODES] = fault
        else:
            api.faults.clear()

    monkeypatch.setattr(npu_status.time, "sleep", pause)
    monkeypatch.setattr(npu_status.report_status, "may_get_better", lambda _rows: len(pauses) < 3)
    assert status(api, wait_timeout=300)["table"] and len(pauses) == 3


def test_a_halt_is_told_with_the_way_out(api):
    assert status(api)["halted"] is None
    lease(api, json.dumps({"max": 1, "halted": reports.HALTED, "holders": {}}))
    result = status(api)
    assert result["halted"] == reports.HALTED
    told = [line for line in result["table"] if line.startswith("HALTED: ")]
    assert len(told) == 1 and reports.HALTED["why"].rstrip(".") in told[0] and "npuops.ascend.upgrade" in told[0], told


def test_a_lease_that_cannot_be_read_does_not_hide_the_fleet(api):
    lease(api, "[")
    result = status(api)
    assert result["halted"] is None and any("Whether rollouts are halted is unknown" in line for line in result["table"])
    # For a run that no user watches, it is one more thing to repair.
    assert result["drift"][0].startswith("Whether rollouts are halted is unknown. ") and len(result["drift"]) == 2


def test_a_halt_is_drift(api):
    assert status(api)["drift"] == []
    lease(api, json.dumps({"max": 1, "halted": reports.HALTED, "holders": {}}))
    assert status(api)["drift"][0].startswith("Rollouts are halted. ")


def test_the_metrics_are_written(api, tmp_path):
    path = tmp_path / "npu.prom"
    assert status(api, metrics_file=str(path))["unwritten"] is None
    found = metrics.samples(path.read_text(encoding="utf-8"))
    assert found["npuops_fleet_halted", ("kind", "upgrade")] == 0
    assert abs(found[("npuops_fleet_status_timestamp_seconds",)] - time.time()) < 600
    lease(api, "[")
    status(api, metrics_file=str(path))
    assert "npuops_fleet_halted" not in path.read_text(encoding="utf-8")


def test_check_mode_writes_no_metrics(api, tmp_path):
    assert status(api, check_mode=True, metrics_file=str(tmp_path / "npu.prom"))["unwritten"] is None
    assert list(tmp_path.iterdir()) == []


def test_metrics_that_cannot_be_written_hide_nothing(api, tmp_path):
    result = status(api, metrics_file=str(tmp_path / "missing" / "npu.prom"))
    assert result["table"] and "could not be written to %s" % tmp_path in result["unwritten"]


def test_a_name_that_is_no_file_of_metrics_is_refused_first(api, tmp_path):
    with pytest.raises(NpuError, match="npu_status_metrics_file is "):
        status(api, metrics_file=str(tmp_path / "npu.txt"))
    assert api.requests == []


def test_an_approval_that_has_expired_is_waited_for(api):
    """By the same setting as heal judges it."""
    wedged, now = json.dumps({"since": "2026-11-21T21:14:51Z", "reason": "npu-smi failed"}), time.time()
    purpose = {"npuops.ascend/approval-for": "recovery-2026-11-21T21:14:51Z"}
    there = node("a", annotations={"npuops.ascend/wedged": wedged, APPROVE: "true", **purpose})
    there["metadata"]["managedFields"] = [annotation_of("kubectl", APPROVE, now - 1000)]
    there["metadata"]["labels"] = {"openfuyao.com/npu.present": ""}
    api.put("/api/v1/nodes", there)
    hosts = [{"name": "a", "facts": {"uptime": 10_000, "chip_count": 8}, "config": {}, "unreachable": False, "error": None}]
    (row,) = status(api, hosts=hosts)["fleet"]
    assert row["awaiting_approval"] is None
    (row,) = status(api, hosts=hosts, settings={"approval_max_age": 900})["fleet"]
    assert row["awaiting_approval"] == "recovery"
