# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module npu_workloads, run against a WorkloadApi."""

from __future__ import annotations

import types

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_workloads import ActionModule
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.workload_stub import NPU


def run(api, state, check_mode=False, **options):
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=True)
    options = dict({"resources": [NPU], "run": "run-1"}, **options)
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)).validate(
        dict(options, state=state, host=api.address, api_key="token"))  # fmt: skip
    assert not checked.error_messages
    return action.act(checked.validated_parameters)


def park(api, **options):
    return run(api, "parked", **options)


def restore(api, **options):
    return run(api, "restored", **options)


def names(entries):
    return [entry["object"] for entry in entries]
