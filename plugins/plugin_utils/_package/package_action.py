# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules for hosts have in common that install a package, which the controller downloads and sends."""

from __future__ import annotations

import contextlib
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._action.host_module import HostAction
from ansible_collections.npuops.ascend.plugins.plugin_utils._package import sending as package_sending
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.store import TIMEOUT, Store

OF_REGISTRY = ("registry_mirror", "registry_username", "registry_password", "registry_plain_http", "registry_ca_file")


class PackageAction(HostAction):
    """Runs the module of the action's name on the host, then again with the packages that it says the host needs.

    ``PACKAGES``: the options that name packages, each with the variable that names it for people. The first one is required. An
    option ``package`` comes with ``package_sha256``, ``package_username`` and ``package_password``; the module has ``package_file``
    for where the file is on the host, and returns ``needs_package``.
    """

    PACKAGES: dict[str, str] = {}

    def _forget_packages(self, *more: str) -> None:
        """Keep the options of packages, and `more`, from a host that is to get none: there are secrets in them."""
        unused = {*more, *(name + part for name in self.PACKAGES for part in ("", "_sha256", "_username", "_password"))}
        self._task.args = {name: value for name, value in self._task.args.items() if name not in unused}

    def _run_with_packages(self, tmp: str | None, task_vars: dict[str, Any] | None, seconds: int = TIMEOUT) -> dict[str, Any]:
        result = ActionBase.run(self, tmp, task_vars)
        try:
            result.update(self._with_packages(self._task.args, task_vars or {}, seconds))
        except NpuError as exc:
            result.update(exc.details, failed=True, msg=exc.message)
        return self._data(result)

    def _with_packages(self, options: dict[str, Any], variables: dict[str, Any], seconds: int) -> dict[str, Any]:
        given = dict(options, registry_plain_http=boolean(options.get("registry_plain_http"), strict=False))
        first = next(iter(self.PACKAGES))
        sources = {
            name: PackageSource.of(given, setting) for name, setting in self.PACKAGES.items() if name == first or options.get(name)
        }
        # What the host is not told: it reads a package that the controller sends to it.
        of_controller = {*OF_REGISTRY, *(name + part for name in self.PACKAGES for part in ("_username", "_password"))}
        arguments = {name: value for name, value in options.items() if name not in of_controller}
        for name, source in sources.items():
            arguments.update({name: source.name, name + "_sha256": source.digest.rpartition(":")[2]})
        result = self._execute_module(module_args=arguments, task_vars=variables)
        wanted = [name for name in sources if result.get("needs_" + name) is True]
        if not wanted or self._task.check_mode:
            return result
        # All of them, before the first one is on its way.
        paths = {name: Store().file(sources[name], seconds) for name in wanted}
        with contextlib.ExitStack() as on_host:
            for name, path in paths.items():
                arguments[name + "_file"] = on_host.enter_context(package_sending.sent(self, path, sources[name], seconds))
            result = self._execute_module(module_args=arguments, task_vars=variables)
        if any(result.get("needs_" + name) is True for name in sources):
            raise NpuError("Another run has changed what this host has while a package was on the way. Run again")
        return result
