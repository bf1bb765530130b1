# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules that run on hosts have in common on the controller: what a host answers is data, never an order.

Ansible acts on some keys of a result whatever module it is of: facts become variables that win over the inventory's, unless
inject_facts_as_vars is off, and statistics are handed on to other jobs. A compromised host could answer with
npu_kubernetes_auth, and the controller would send its token to another API server. (Ansible removes add_host by itself.)
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.action.normal import ActionModule as NormalAction

# None of our modules returns any of them.
ORDERS = ("ansible_facts", "ansible_stats")
_OF_THE_CALL = ("ansible_facts", "invocation", "diff")


class HostAction(NormalAction):
    """Runs the module of the action's name on the host, and passes on all of its result that is data."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._data(super().run(tmp, task_vars))

    def answer(self, module: str, arguments: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """What the module, of whatever name, says about the host: no facts, and none of what is about the call."""
        result = self._data(self._execute_module(module_name=module, module_args=arguments, task_vars=task_vars))
        return {name: value for name, value in result.items() if name not in _OF_THE_CALL and not name.startswith("_ansible_")}

    def _data(self, result: dict[str, Any]) -> dict[str, Any]:
        """All of a module's result that is data."""
        answer = {name: value for name, value in result.items() if name not in ORDERS}
        if self._discovered_interpreter_key:
            # Ansible itself has looked for it, and would look again for each task.
            answer["ansible_facts"] = {self._discovered_interpreter_key: self._discovered_interpreter}
        return answer
