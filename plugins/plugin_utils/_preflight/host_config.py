# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of a host, as its variables and their defaults make it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What a host's configuration is when its variables do not say otherwise; the keys are the variables without "npu_".
CONFIG_DEFAULTS: dict[str, Any] = {
    "node_name": None,
    "driver_source": "image",
    "driver_version": "25.5.0",
    "driver_repository": None,
    "driver_image": None,
    "driver_image_path": None,
    "driver_profile": None,
    "driver_digest": None,
    "driver_signature_policy": "off",
    "driver_signature_keys": None,
    "driver_root": "/var/lib/Ascend",
    "registry_username": None,
    "registry_password": None,
    "registry_plain_http": False,
    "registry_ca_file": None,
}


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` with the defaults for what it leaves out."""
    return dict(CONFIG_DEFAULTS, **{key: value for key, value in config.items() if value is not None})
