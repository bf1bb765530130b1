# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it: what it says of the cluster as a whole."""

from __future__ import annotations

import json
import tempfile
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_status import ActionModule
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet import reports
from support.kube.eviction_stub import EvictionApi

LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"


@pytest.fixture
def api(monkeypatch, tmp_path_factory):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("discovery")))
    with EvictionApi() as server:
        yield server


def status(api):
    spec = dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)
    checked = ArgumentSpecValidator(spec).validate({"hosts": [], "host": api.address, "api_key": "token"})
    assert not checked.error_messages
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=False, diff=False)
    action._display = types.SimpleNamespace(display=print)
    return action.act(checked.validated_parameters)


def lease(api, slots):
    api.put(LEASES, {"metadata": {"name": "npu-maintenance", "annotations": {"npuops.ascend/slots": slots}}})


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
