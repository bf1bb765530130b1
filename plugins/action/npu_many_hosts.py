# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.template import Templar
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import host_warnings, many_hosts, screen
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.empty_answers import given, is_empty

# Of its URL, which may hold a secret, a host learns only that there is one.
_ONLY_WHETHER = "npu_runtime_package"


class ActionModule(ActionBase):
    """See the documentation of the module npu_many_hosts."""

    ARGUMENTS = {
        "module": {"type": "str", "choices": ["npu_facts", "npu_driver", "npu_cdi_spec", "npu_validate"], "required": True},
        "hosts": {"type": "list", "elements": "str", "required": True},
        "options": {"type": "dict", "default": {}},
        "variables": {"type": "dict", "default": {}},
        "host_options": {"type": "dict", "default": {}},
        "timeout": {"type": "int", "default": 300},
    }
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        task_vars = task_vars or {}
        result = super().run(tmp, task_vars)
        _validation, params = self.validate_argument_spec(self.ARGUMENTS)
        if not self._task.delegate_to:
            raise AnsibleActionFail("Delegate npu_many_hosts to localhost, so that no password of a host is used for others.")
        answers: dict[str, dict[str, Any]] = {}
        calls = list(self._calls(params, task_vars, answers))
        answers.update(self._ask(calls, task_vars, params["timeout"]))
        for warning in host_warnings.take(answers):
            screen.warn(warning)
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
            # One that has no Python, where check mode brings none, cannot be asked.
            if not (variables.get("__npu_python") or {}).get("python", True):
                continue
            try:
                templar = Templar(loader=self._loader, variables=variables)
                arguments = {
                    **params["options"],
                    **_values(params["variables"], variables, templar),
                    **(params["host_options"].get(name) or {}),
                }
            except AnsibleError as exc:
                answers[name] = {"failed": True, "msg": one_line(exc)}
            else:
                yield many_hosts.Call(host, variables, "npuops.ascend." + params["module"], arguments)


def _values(names: Mapping[str, Any], variables: Mapping[str, Any], templar: Templar) -> dict[str, Any]:
    """``names``, of variables or of more such names, with the values that the host's ``variables`` have or the roles' defaults.
    Without those that are empty."""
    found: dict[str, Any] = {}
    for option, name in names.items():
        if isinstance(name, Mapping):
            found[option] = _values(name, variables, templar)
            continue
        value = templar.template(variables[name]) if name in variables else None
        if is_empty(value):
            value = spec_defaults.default(name)
        if not is_empty(value):
            found[option] = True if name == _ONLY_WHETHER else value
    return found
