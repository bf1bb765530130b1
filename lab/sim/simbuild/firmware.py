# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated firmware of chips: the content of Huawei's package, as far as any program reads it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .tools import SOURCE, digest

PACKAGE = SOURCE / "firmware" / "package"
COMPONENTS = ("nve", "uefi", "imu", "imp")


@dataclass(frozen=True)
class Release:
    """One firmware: of which HDK it is a part, and for which drivers it is made."""

    version: str
    hdk: str
    drivers: tuple[str, ...]


_SEVEN = ("24.1", "25.0", "25.2", "25.3", "25.5", "26.0", "26.1")
RELEASES = (
    Release("7.8.0.6.201", "25.5.1", _SEVEN),  # what chips have until their flash is written
    Release("7.8.0.7.220", "25.5.2", _SEVEN),
    Release("8.2.0.1.220", "26.1.0", ("25.5", "26.0", "26.1")),
)


def key() -> str:
    """Changes when a firmware would come out differently."""
    return digest(PACKAGE, Path(__file__))


def make_tree(chip: str, release: Release, target: Path) -> None:
    """Write what is in a package to the directory `target`; `chip` as in the package's name."""
    shutil.copytree(PACKAGE, target)
    drivers = ",".join(f"[{version_line},{version_line}.]" for version_line in release.drivers)
    (target / "firmware" / "version.info").write_text(
        f"Version={release.version}\nfirmware_version=1.0\npackage_version={release.hdk}\ncompatible_version_drv={drivers}\n",
        encoding="ascii",
    )
    image = target / "firmware" / "image"
    image.mkdir()
    for component in COMPONENTS:
        line = f"simulated {chip} {component} {release.version}\n"  # upgrade-tool reads it
        (image / f"ascend_{chip}_{component}.img").write_bytes(line.encode() * 64)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o550 if path.suffix == ".sh" else 0o444)
