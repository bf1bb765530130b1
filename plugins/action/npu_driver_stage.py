# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import DRIVER, FIRMWARE
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.package_action import PackageAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import TIMEOUT


class ActionModule(PackageAction):
    """Runs the module npu_driver_stage, whose documentation is with it. Sends a package to a host that lacks the release."""

    PACKAGES = {"package": DRIVER, "firmware_package": FIRMWARE}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        options = self._task.args
        if options.get("source") != "package" or options.get("release") or options.get("state", "present") != "present":
            self._forget_packages()
            return super().run(tmp, task_vars)
        return self._run_with_packages(tmp, task_vars, int(options.get("timeout") or TIMEOUT))
