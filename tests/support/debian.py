# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of packages of this machine's distribution, unpacked beside the virtual environments and not installed."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tempfile


def file(package: str, path: str) -> pathlib.Path:
    """A copy of a file of a package; ``path``: without the leading slash."""
    cache = (
        os.environ.get("NPU_CACHE") or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "npuops"
    )
    place = pathlib.Path(cache) / "debian" / package / path
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as directory:
            pathlib.Path(directory).chmod(0o755)  # apt-get gives up root for the download
            subprocess.run(["apt-get", "-q", "download", package], cwd=directory, check=True, capture_output=True)
            archive = next(pathlib.Path(directory).glob(f"{package}_*.deb"))
            subprocess.run(["dpkg-deb", "-x", archive, f"{directory}/unpacked"], check=True)
            (pathlib.Path(directory) / "unpacked" / path).rename(place)
    return place
