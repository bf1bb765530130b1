# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages that a host is to have: of the driver, of the firmware, and of the Ascend Docker Runtime."""

from __future__ import annotations

from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._package.source import PackageSource
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import driver_package, firmware_package, runtime_package
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight.checked_host import PACKAGE


def sources_of(config: dict[str, Any]) -> list[PackageSource]:
    """Where they come from. Raises NpuError.

    ``config``: complete as _settings.host_config makes it.
    """
    found = [runtime_package.source_of(config)]
    if config["driver_source"] == PACKAGE:
        found += [driver_package.source_of(config), firmware_package.source_of(config)]
    return [source for source in found if source]
