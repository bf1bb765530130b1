# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated hardware (lab/sim): what it builds, and which cards each node has."""

from __future__ import annotations

import functools
from pathlib import Path

from .files import digest, new_directory
from .settings import LAB_SOURCE, Lab, Node
from .tasks import Step

SOURCE = Path(__import__("os").environ.get("SIMSTUB") or LAB_SOURCE / "sim")
# PCI device and subsystem of the card models, as lspci shows them on real hosts
CARDS = {
    "910B": {"device": "0xd802", "subsystem_vendor": "0x19e5", "subsystem_device": "0x3003"},
    "310P-duo": {"device": "0xd500", "subsystem_vendor": "0x19e5", "subsystem_device": "0x0110"},
}
FIRST_BUS = 0xC1


def build_simulation(lab: Lab, step: Step) -> None:
    """Build node files, driver packages and images into the cache unless they are there."""
    if not _directory(lab).is_dir():
        with new_directory(_directory(lab)) as target:
            step.run("/usr/bin/python3", SOURCE / "build.py", "--out", target)


def root_files(lab: Lab) -> Path:
    """Tree that is copied over every node's root."""
    return _directory(lab) / "rootfs"


def image_archive(lab: Lab, name: str) -> Path:
    """OCI archive of a simulated image."""
    return _directory(lab) / "images" / f"{name}.tar"


def driver_packages(lab: Lab) -> list[Path]:
    return sorted((_directory(lab) / "run").glob("*.run"))


def hardware(node: Node) -> dict:
    """/etc/npusim/hardware.json of a node: its PCI functions."""
    return {"node": node.name, "functions": [
        {"address": f"0000:{FIRST_BUS + card:02x}:00.0", **CARDS[node.chips or ""]} for card in range(node.cards)]}


@functools.cache
def _directory(lab: Lab) -> Path:
    return lab.cache / f"sim-{digest(SOURCE)}"
