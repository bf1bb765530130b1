# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package of the Ascend Docker Runtime that a host is to get: whether its settings fit together."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import package as runtime_package
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError, one_line
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import RUNTIME, PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import CheckedHost

_ASCEND = "ascend"
_OPTIONS = ("package", "package_sha256", "package_username", "package_password")


def source_of(config: dict[str, Any]) -> PackageSource | None:
    """Where the host's package comes from, None if it is to have none. Raises NpuError.

    ``config``: complete as _settings.host_config makes it.
    """
    if config["runtime_mode"] != _ASCEND or not config["runtime_package"]:
        return None
    options = {name: config[name] for name in config if name.startswith("registry_")}
    options.update({name: config["runtime_" + name] for name in _OPTIONS})
    return PackageSource.of(options, RUNTIME)


def check(verdict: CheckedHost, version_line: str | None) -> None:
    """Add to the reasons of the host. ``version_line``: of MindCluster that is to be deployed; None if none is."""
    config = verdict.config
    if not config["runtime_package"]:
        return
    if config["runtime_mode"] != _ASCEND:
        verdict.reasons.append(
            "npu_runtime_package is set, and npu_runtime_mode is %s: set npu_runtime_mode: ascend, or unset npu_runtime_package"
            % config["runtime_mode"]
        )
        return
    try:
        source = source_of(config)
        version = source and runtime_package.version_in(source.name)
        if source and version:
            runtime_package.check_version_line(source.name, version, version_line)
    except NpuError as exc:
        verdict.reasons.append(one_line(exc.message))
