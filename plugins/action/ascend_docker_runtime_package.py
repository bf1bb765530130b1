# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_module import HostAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._package import sending as package_sending
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import RUNTIME, PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import TIMEOUT, Store

_MODULE = "npuops.ascend.ascend_docker_runtime_package"
# What the host is not told: it reads a package that the controller sends to it.
_OF_CONTROLLER = (
    "package_username",
    "package_password",
    "registry_mirror",
    "registry_username",
    "registry_password",
    "registry_plain_http",
    "registry_ca_file",
)


class ActionModule(HostAction):
    """Runs the module ascend_docker_runtime_package, whose documentation is with it. Sends the package to a host that lacks it."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        options = self._task.args
        if options.get("state", "present") != "present":
            # What is secret of a package that is not asked for stays here.
            self._task.args = {name: value for name, value in options.items() if name not in (*_OF_CONTROLLER, "package")}
            return super().run(tmp, task_vars)
        result = ActionBase.run(self, tmp, task_vars)
        try:
            result.update(self._install(options, task_vars or {}))
        except NpuError as exc:
            result.update(exc.details, failed=True, msg=exc.message)
        return self._data(result)

    def _install(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        plain = boolean(options.get("registry_plain_http"), strict=False)
        source = PackageSource.of(dict(options, registry_plain_http=plain), RUNTIME)
        arguments = {name: value for name, value in options.items() if name not in _OF_CONTROLLER}
        arguments.update(package=source.name, package_sha256=source.digest.rpartition(":")[2])
        result = self._execute_module(module_name=_MODULE, module_args=arguments, task_vars=variables)
        if result.get("needs_package") is not True or self._task.check_mode:
            return result
        path = Store().file(source, TIMEOUT)
        with package_sending.sent(self, path, source, TIMEOUT) as there:
            arguments["package_file"] = there
            return self._execute_module(module_name=_MODULE, module_args=arguments, task_vars=variables)
