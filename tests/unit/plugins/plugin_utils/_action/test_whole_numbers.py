# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments that Ansible cannot convert to whole numbers in time."""

from __future__ import annotations

import types

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import whole_numbers
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.cluster import ClusterAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.controller import ControllerAction

SPEC = {
    "timeout": {"type": "int"},
    "rollout": {"type": "dict", "options": {"timeout": {"type": "int"}}},
    "parts": {"type": "list", "elements": "dict", "options": {"count": {"type": "int"}}},
    "name": {"type": "str"},
}


@pytest.mark.parametrize("value", ["1e999999999", "inf", "nan", float("inf"), "", "x" * 500])
@pytest.mark.parametrize(
    ("place", "name"),
    [
        (lambda value: {"timeout": value}, "timeout"),
        (lambda value: {"rollout": {"timeout": value}}, r"rollout\.timeout"),
        (lambda value: {"parts": [{"count": 1}, {"count": value}]}, r"parts\.count"),
    ],
)
def test_what_is_no_whole_number_is_refused_by_name(place, name, value):
    with pytest.raises(NpuError, match=r"^%s is .{1,90}; it must be a whole number$" % name):
        whole_numbers.check(SPEC, place(value))


def test_what_is_one_is_left_to_ansible():
    whole_numbers.check(SPEC, {"timeout": " 5 ", "rollout": {"timeout": 1e3}, "parts": "[]", "name": "inf"})


@pytest.mark.parametrize("base", [ClusterAction, ControllerAction])
def test_an_action_asks_before_ansible_converts(monkeypatch, base):
    monkeypatch.setattr(ActionBase, "run", lambda *_arguments: {})
    action = type("Action", (base,), {"ARGUMENTS": SPEC}).__new__(base)
    action.ARGUMENTS, action._task = SPEC, types.SimpleNamespace(args={"timeout": "1e999999999"})
    result = action.run(task_vars={})
    assert result["failed"] and result["msg"] == "timeout is '1e999999999'; it must be a whole number"
