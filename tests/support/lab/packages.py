# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver packages that the lab has made its driver images of."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

from support.lab.lab import Lab

# On a host: those that are on their way, or were left there.
FIND_PACKAGES = "find /root/.ansible /var/lib/npuops* -name '*.run' 2>/dev/null; true"


def firmware_settings(lab: Lab, chip: str, version: str) -> dict[str, Any]:
    """The variables that add the firmware of that version, one of lab/sim/README.md, to those of `settings`."""
    name = f"Ascend-hdk-{chip}-npu-firmware_{version}.run"
    package = pathlib.Path(_builds(lab)[0]["package"]).with_name(name)
    return {
        "npu_firmware_policy": "match",
        "npu_firmware_package": str(package),
        "npu_firmware_package_sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
    }


def _builds(lab: Lab, version: str = "") -> list[dict[str, Any]]:
    paths = [lab.state / "driver-images.json", lab.state / f"driver-images-{version}.json"]
    return [build for path in paths if path.exists() for build in json.loads(path.read_text())["npu_driver_image_build"]]


def settings(lab: Lab, chip: str, version: str) -> dict[str, Any]:
    """The variables of a host with that chip, for that version: one of every lab, or one of `lab/driver-image`."""
    name = f"Ascend-hdk-{chip}-npu-driver_{version}_"
    package = next(build["package"] for build in _builds(lab, version) if pathlib.Path(build["package"]).name.startswith(name))
    return {
        "npu_driver_source": "package",
        "npu_driver_version": version,
        "npu_driver_package": package,
        "npu_driver_package_sha256": hashlib.sha256(pathlib.Path(package).read_bytes()).hexdigest(),
    }
