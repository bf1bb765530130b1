# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules have in common that need neither a host nor the cluster: they run inside Ansible's own process."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen, whole_numbers


class ControllerAction(ActionBase):
    """A subclass has ``ARGUMENTS`` (an argument_spec), ``RULES`` (what else validate_argument_spec takes) and ``act(params)``,
    which returns the result as a dict. An NpuError becomes the failure, its details become part of the result.
    """

    ARGUMENTS: dict[str, Any] = {}
    RULES: dict[str, Any] = {}
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        try:
            whole_numbers.check(self.ARGUMENTS, self._task.args)
            _validation, params = self.validate_argument_spec(self.ARGUMENTS, **self.RULES)
            result.update(self.act(params))
        except NpuError as exc:
            result.update(exc.details, failed=True, msg=screen.clean(exc.message))
        return result

    def act(self, params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError
