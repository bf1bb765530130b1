# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices that Huawei's driver for Dynamic Resource Allocation (DRA) publishes of this node."""

from __future__ import annotations

import re
from typing import Dict, Iterable, List

DRIVER = "npu.huawei.com"
PHYSICAL_ID = "physicId"
_DEVICE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def devices(slices: Iterable[dict], node: str) -> Dict[int, List[str]]:
    """The names of the devices by the physical ID of their chip, from the ResourceSlices of the driver on ``node``.

    How the driver makes names is its own affair. Its pool is named after the node; those of an older generation are out of date.
    """
    specs = [item["spec"] for item in slices if item["spec"]["pool"]["name"] == node and item["spec"]["driver"] == DRIVER]
    newest = max((spec["pool"]["generation"] for spec in specs), default=0)
    found: Dict[int, List[str]] = {}
    for spec in specs:
        for device in spec.get("devices") or () if spec["pool"]["generation"] == newest else ():
            number = ((device.get("attributes") or {}).get(PHYSICAL_ID) or {}).get("int")
            if isinstance(number, int) and _DEVICE.fullmatch(device["name"]):
                found.setdefault(number, []).append(device["name"])
    return found
