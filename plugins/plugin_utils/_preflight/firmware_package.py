# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The firmware package of a host whose driver is from a package: where it comes from, and what is in it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware_package as package_contents
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.package_name import FIRMWARE
from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_package

# look(source, config) -> FirmwareContents; raises NpuError
Look = Callable[[PackageSource, "dict[str, Any]"], "FirmwareContents"]

_OPTIONS = ("firmware_package", "firmware_package_sha256", "firmware_package_username", "firmware_package_password")


@dataclasses.dataclass(frozen=True)
class FirmwareContents:
    """``size``: of the package in bytes; ``drivers``: what the versions of the drivers that it works with begin with."""

    size: int
    version: str
    drivers: tuple[str, ...]


def source_of(config: dict[str, Any]) -> PackageSource | None:
    """Where the host's firmware package comes from, None if none is set. Raises NpuError.

    ``config``: complete as _settings.host_config makes it.
    """
    if not config["firmware_package"]:
        return None
    options = {name: config[name] for name in config if name.startswith("registry_") or name in _OPTIONS}
    return PackageSource.of(options, FIRMWARE)


def look(source: PackageSource, config: dict[str, Any]) -> FirmwareContents:
    """Download the package, verify it as driver packages are verified, and read it. Raises NpuError."""
    path = driver_package.fetch(source, config)
    found, _info = package_contents.read(path, source.name)
    return FirmwareContents(os.path.getsize(path), found.version, tuple(found.drivers))
