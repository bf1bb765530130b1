# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._driver.package_name import FIRMWARE
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_module import HostAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._package import sending as package_sending
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import TIMEOUT, Store

_MODULE = "npuops.ascend.npu_driver_stage"
_PARTS = ("", "_sha256", "_username", "_password")
_OF_PACKAGE = tuple(name + part for name in ("package", "firmware_package") for part in _PARTS)
# What the host is not told: it reads a package that the controller sends to it.
_OF_CONTROLLER = (
    "package_username",
    "package_password",
    "firmware_package_username",
    "firmware_package_password",
    "registry_mirror",
    "registry_username",
    "registry_password",
    "registry_plain_http",
    "registry_ca_file",
)


class ActionModule(HostAction):
    """Runs the module npu_driver_stage, whose documentation is with it. Sends a package to a host that lacks the release."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        options = self._task.args
        if options.get("source") != "package" or options.get("release") or options.get("state", "present") != "present":
            # What is secret in the URL of a package that is not asked for stays here.
            self._task.args = {name: value for name, value in options.items() if name not in _OF_PACKAGE}
            return super().run(tmp, task_vars)
        result = ActionBase.run(self, tmp, task_vars)
        try:
            result.update(self._stage(options, task_vars or {}))
        except NpuError as exc:
            result.update(exc.details, failed=True, msg=exc.message)
        return self._data(result)

    def _stage(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        given = dict(options, registry_plain_http=boolean(options.get("registry_plain_http"), strict=False))
        sources = {"package": PackageSource.of(given)}
        if options.get("firmware_package"):
            sources["firmware_package"] = PackageSource.of(given, FIRMWARE)
        arguments = {name: value for name, value in options.items() if name not in _OF_CONTROLLER}
        for name, source in sources.items():
            arguments.update({name: source.name, name + "_sha256": source.digest.rpartition(":")[2]})
        result = self._execute_module(module_name=_MODULE, module_args=arguments, task_vars=variables)
        wanted = [name for name in sources if result.get("needs_" + name) is True]
        if not wanted or self._task.check_mode:
            return result
        seconds = int(options.get("timeout") or TIMEOUT)
        # All of them, before the first one is on its way.
        paths = {name: Store().file(sources[name], seconds) for name in wanted}
        with contextlib.ExitStack() as on_host:
            for name, path in paths.items():
                arguments[name + "_file"] = on_host.enter_context(package_sending.sent(self, path, sources[name], seconds))
            result = self._execute_module(module_name=_MODULE, module_args=arguments, task_vars=variables)
        if any(result.get("needs_" + name) is True for name in sources):
            raise NpuError("Another run has changed the releases of this host while a package was on the way. Run again")
        return result
