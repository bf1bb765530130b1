# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it."""

from __future__ import annotations

import json
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_pending import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.stub import node
from support.webhooks import Webhooks

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"
SLOTS = "npuops.ascend/slots"
OLD = "2026-11-21T10:00:00Z"


def lease(**holders):
    slots = {"max": 1, "halted": None, "holders": holders}
    return {"metadata": {"name": "npu-maintenance", "annotations": {SLOTS: json.dumps(slots)}}}


def run(api, check_mode=False, **options):
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=False)
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)).validate(
        {"due": [], "settled": ["a"], "host": api.address, "api_key": "token", **options})  # fmt: skip
    assert not checked.error_messages
    return action.act(checked.validated_parameters)


def holders(api):
    return list(json.loads(api.objects[LEASES]["npu-maintenance"]["metadata"]["annotations"][SLOTS])["holders"])


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_slot_that_a_killed_run_did_not_give_back(api, check_mode):
    """The record had ended; giving the slot back was all that was left, and nothing else would touch the node again."""
    last = {"run": "run-1", "generation": 1, "ended": "2026-11-21T10:05:00Z"}
    api.put(NODES, node("a", annotations={"npuops.ascend/last-maintenance": json.dumps(last)}))
    api.put(LEASES, lease(a={"run": "run-1", "since": OLD}))
    result = run(api, check_mode)
    assert (result["freed"], result["changed"]) == (([], False) if check_mode else (["a"], True))
    assert holders(api) == (["a"] if check_mode else [])


def test_a_node_in_maintenance_keeps_its_slot(api):
    record = {"run": "run-1", "generation": 1, "step": "drain-required", "heartbeat": OLD}
    api.put(NODES, node("a", annotations={"npuops.ascend/maintenance": json.dumps(record)}))
    api.put(LEASES, lease(a={"run": "run-1", "since": OLD}))
    result = run(api)
    assert (result["freed"], result["changed"], holders(api)) == ([], False, ["a"])


def test_without_a_lease_nothing_is_written(api):
    api.put(NODES, node("a"))
    result = run(api)
    assert not result["changed"] and {method for method, _path in api.requests} == {"GET"}


def test_a_webhook_is_notified_that_a_run_begins(api):
    api.put(NODES, node("a"))
    with Webhooks() as server:
        run(api, notify={"url": server.url})  # nothing is due
        run(api, check_mode=True, notify={"url": server.url}, due=["a"], settled=[])
        assert not server.bodies
        run(api, notify={"url": server.url}, due=["a"], settled=[], versions={"a": "25.5.1"}, run="r1")
        assert [(body["event"], body["run"], body["lines"]) for body in server.bodies] == [
            ("begin", "r1", ["Upgrade of 1 node begins: a", "To: 25.5.1"])
        ]


def test_a_webhook_that_is_none_stops_the_run_before_anything_is_changed(api):
    with pytest.raises(NpuError, match="npu_notify_url is not an address"):
        run(api, notify={"url": "hooks.slack.com/x"}, due=["a"])
    assert not api.requests
