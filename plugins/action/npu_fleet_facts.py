# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.template import Templar
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import many_hosts
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import given, is_empty

MODULE = "npuops.ascend.npu_facts"
# The variables that the options of that module are set by.
VARIABLES = {
    "driver_root": "npu_driver_root",
    "driver_source": "npu_driver_source",
    "library_path": "npu_runtime_library_path",
    "network": "npu_validate_network",
    "runtime_mode": "npu_runtime_mode",
    "runtime_package": "npu_runtime_package",
    "vnpu_layout": "npu_vnpu",
}


class ActionModule(ActionBase):
    """See the documentation of the module npu_fleet_facts."""

    ARGUMENTS = {
        "hosts": {"type": "list", "elements": "str", "required": True},
        "options": {"type": "dict", "default": {}},
        "variables": {"type": "list", "elements": "str", "choices": list(VARIABLES), "default": []},
        "timeout": {"type": "int", "default": 300},
    }
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        task_vars = task_vars or {}
        result = super().run(tmp, task_vars)
        _validation, params = self.validate_argument_spec(self.ARGUMENTS)
        if not self._task.delegate_to:
            raise AnsibleActionFail("Delegate npu_fleet_facts to localhost, so that no password of a host is used for others.")
        answers: dict[str, dict[str, Any]] = {}
        calls = list(self._calls(params, task_vars, answers))
        answers.update(self._ask(calls, task_vars, params["timeout"]))
        return dict(result, changed=False, answers=answers)

    def _ask(self, calls: list[many_hosts.Call], task_vars: dict[str, Any], timeout: int) -> dict[str, dict[str, Any]]:
        secrets = many_hosts.passwords(self._play_context, task_vars, self._task.delegate_to)
        return many_hosts.ask(self, calls, secrets, int(task_vars.get("ansible_forks") or 1), timeout)

    def _calls(
        self, params: dict[str, Any], task_vars: dict[str, Any], answers: dict[str, dict[str, Any]]
    ) -> Iterator[many_hosts.Call]:
        """``answers`` receives what is known of a host without asking it."""
        hostvars = given(task_vars["hostvars"])
        for name in params["hosts"]:
            host = hostvars._inventory.get_host(name)  # noqa: SLF001
            variables = hostvars._variable_manager.get_vars(  # noqa: SLF001
                play=self._task.play, host=host, include_hostvars=False, _hosts=[name], _hosts_all=[name]
            )
            try:
                arguments = dict(params["options"], **self._of_host(params["variables"], variables))
            except AnsibleError as exc:
                answers[name] = {"failed": True, "msg": one_line(exc)}
            else:
                # One that has no Python, where check mode brings none, cannot be asked.
                if (variables.get("__npu_python") or {}).get("python", True):
                    yield many_hosts.Call(host, variables, MODULE, arguments)

    def _of_host(self, options: list[str], variables: dict[str, Any]) -> dict[str, Any]:
        templar = Templar(loader=self._loader, variables=variables)
        values = {option: templar.template(variables[VARIABLES[option]]) for option in options if VARIABLES[option] in variables}
        found = {option: value for option, value in values.items() if not is_empty(value)}
        if "runtime_package" in found:
            found["runtime_package"] = True
        return found
