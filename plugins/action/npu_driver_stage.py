# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import sentence
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import DRIVER, FIRMWARE
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import this_run
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.package_action import PackageAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import TIMEOUT

# What the module says of the package that a release was extracted from. The host has it from a file on its disk.
_SETTINGS = {
    "npu_driver_source": re.compile("package"),
    "npu_driver_package": re.compile(r"[\w./:@%+,=~-]{1,1024}", re.ASCII),
    "npu_driver_package_sha256": re.compile("[0-9a-f]{64}"),
    "npu_driver_version": re.compile(r"[\w.+~-]{1,128}", re.ASCII),
}


class ActionModule(PackageAction):
    """Runs the module npu_driver_stage, whose documentation is with it. Sends a package to a host that lacks the release."""

    PACKAGES = {"package": DRIVER, "firmware_package": FIRMWARE}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        options = self._task.args
        if options.get("source") != "package" or options.get("release") or options.get("state", "present") != "present":
            self._forget_packages()
            return self._with_command(super().run(tmp, task_vars), task_vars or {})
        return self._run_with_packages(tmp, task_vars, int(options.get("timeout") or TIMEOUT))

    @staticmethod
    def _with_command(result: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """The result, with the command that stages the package again if the host says that it needs it."""
        told = result.pop("package_settings", None)
        if not result.get("failed") or not _are_settings(told):
            return result
        command = this_run.again("upgrade", told, limit=variables.get("inventory_hostname"))
        return dict(result, msg="%s To stage it again: %s" % (sentence(str(result.get("msg"))), command))


def _are_settings(told: Any) -> bool:
    """Whether the host says what a command may have: people paste it, so nothing of it may be a template or an option."""
    return (
        isinstance(told, dict)
        and told.keys() == _SETTINGS.keys()
        and all(isinstance(told[name], str) and form.fullmatch(told[name]) for name, form in _SETTINGS.items())
    )
