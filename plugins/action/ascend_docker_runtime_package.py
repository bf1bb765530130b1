# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import RUNTIME
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.package_action import OF_REGISTRY, PackageAction


class ActionModule(PackageAction):
    """Runs the module ascend_docker_runtime_package, whose documentation is with it. Sends the package to a host that lacks it."""

    PACKAGES = {"package": RUNTIME}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        if self._task.args.get("state", "present") != "present":
            self._forget_packages(*OF_REGISTRY)
            return super().run(tmp, task_vars)
        return self._run_with_packages(tmp, task_vars)
