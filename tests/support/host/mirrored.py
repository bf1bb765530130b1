# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module npu_mirror as Ansible runs it, without a playbook."""

from __future__ import annotations

import types
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_mirror import ActionModule

from support.host.registry_server import Registry


def run(check_mode: bool = False, **options: Any) -> dict[str, Any]:
    """Its result. Raises NpuError."""
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode)
    checked = ArgumentSpecValidator(ActionModule.ARGUMENTS).validate(options)
    assert not checked.error_messages
    return action.act(checked.validated_parameters)


def access(*registries: Registry) -> list[dict[str, Any]]:
    """The option `registries` that gives access to these."""
    return [{"registry": one.address, "username": one.username, "password": one.password, "plain_http": True} for one in registries]
