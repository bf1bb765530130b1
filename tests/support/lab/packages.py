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


def settings(lab: Lab, chip: str, version: str) -> dict[str, Any]:
    """The variables of a host with that chip, for that version: one of every lab, or one of `lab/driver-image`."""
    paths = [lab.state / "driver-images.json", lab.state / f"driver-images-{version}.json"]
    builds = [build for path in paths if path.exists() for build in json.loads(path.read_text())["npu_driver_image_build"]]
    name = f"Ascend-hdk-{chip}-npu-driver_{version}_"
    package = next(build["package"] for build in builds if pathlib.Path(build["package"]).name.startswith(name))
    return {
        "npu_driver_source": "package",
        "npu_driver_version": version,
        "npu_driver_package": package,
        "npu_driver_package_sha256": hashlib.sha256(pathlib.Path(package).read_bytes()).hexdigest(),
    }
