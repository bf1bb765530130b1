# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it: what it shows, what it refuses, and that it changes nothing unless it is told to."""

from __future__ import annotations

import copy
import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_adopt import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt.turn import ANNOTATION
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.slots import new_lease

from support.kube.adoption_stub import FLEET, THEIR_EXPORTER, THEIRS, AdoptionApi
from support.kube.daemonset_stub import CHIPS, SETS

FACTS = {"chip_count": 8, "family": {"name": "910B", "resource": CHIPS, "accelerator": "huawei-Ascend910"}}
SET_ASIDE = [f"set DaemonSet npu-operator/{name} aside" for name in (THEIRS, THEIR_EXPORTER)]


@pytest.fixture(name="api")
def fixture_api():
    with AdoptionApi() as server:
        server.fleet(*FLEET)
        server.deploy_all()
        yield server


def run(api, check_mode=False, diff=False, hosts=FLEET, **options):
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=diff)
    asked = [{"name": name, "facts": FACTS, "config": {}} for name in hosts]
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)).validate(
        dict(options, hosts=asked, host=api.address, api_key="token"))  # fmt: skip
    assert not checked.error_messages, checked.error_messages
    return action.act(checked.validated_parameters)


def state(api):
    return copy.deepcopy(api.objects)


@pytest.mark.parametrize("options", [{}, {"act": True, "check_mode": True, "diff": True}, {"state": "returned"}])
def test_what_only_looks_changes_nothing(api, options):
    before = state(api)
    result = run(api, **options)
    assert state(api) == before
    assert result["changed"] is ("act" in options) and result["found"] and result["done"] == [] and result["conflicts"] == []
    if options.get("state") != "returned":
        assert result["todo"] == ["move a", "move b", "move c", *SET_ASIDE]
    assert result.get("diff") == ({"before": {"to_do": result["todo"]}, "after": {}} if "diff" in options else None)


def test_a_missing_right_is_told_and_refused_before_anything_is_changed(api):
    api.denied.add(("patch", "daemonsets"))
    (told, _other) = run(api)["conflicts"]
    assert told.startswith(
        f"DaemonSet npu-operator/{THEIRS}: the Kubernetes user may not patch it. docs/controller-access-adopt.yml"
    )
    before = state(api)
    with pytest.raises(NpuError, match="Nothing was changed:\n  DaemonSet npu-operator/"):
        run(api, act=True)
    assert state(api) == before


def test_a_change_that_a_dry_run_refuses_is_told(api):
    api.faults["PATCH", "/apis/apps/v1/namespaces/npu-operator/daemonsets/" + THEIRS] = (422, "denied by the policy keep-away")
    (told,) = run(api)["conflicts"]
    assert "a dry run of its change is refused" in told and "denied by the policy keep-away" in told


def test_other_settings_are_refused(api):
    with pytest.raises(NpuError, match="npu_device_plugin_volcano is true"):
        run(api, act=True, device_plugin_settings={"volcano": "true"})


def test_nothing_is_there(api):
    api.objects[SETS].clear()
    result = run(api, hosts=())
    assert (result["found"], result["todo"], result["conflicts"]) == (False, [], [])


@pytest.mark.parametrize("options, told", [({"max_unavailable": "0"}, "max_unavailable"), ({"timeout": 0}, "timeout")])
def test_a_pace_that_is_none(api, options, told):
    with pytest.raises(NpuError, match=told):
        run(api, **options)


def test_a_run_the_other_way_is_left_alone(api, monkeypatch):
    """Two of them would move nodes to and fro. Who only looks is not held up."""

    def beat(_seconds):
        lease["metadata"]["annotations"][ANNOTATION] = '{"run": "other", "state": "returned", "beat": 2}'

    lease = new_lease("npu-operator", {ANNOTATION: '{"run": "other", "state": "returned", "beat": 1}'})
    api.put("/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases", lease)
    monkeypatch.setattr(kube_retry.Clock, "sleep", staticmethod(beat))
    before = state(api)
    assert run(api)["todo"] and run(api, act=True, check_mode=True)["todo"] and state(api) == before
    with pytest.raises(NpuError, match="Nothing was changed: the run other with npu_adopt_state: returned moves nodes"):
        run(api, act=True)
    api.objects.pop("/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases")
    before.pop("/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases")
    assert state(api) == before
