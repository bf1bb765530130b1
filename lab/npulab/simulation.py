# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated hardware (lab/sim): what it builds, and which cards each node has."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from .binaries import find_go
from .files import digest, new_directory
from .settings import LAB_SOURCE, Lab, Node
from .tasks import Step

SOURCE = LAB_SOURCE / "sim"


@dataclass(frozen=True)
class Card:
    """A card model: how its PCI function looks, and its chip's word in driver package names and image tags."""

    device: str
    subsystem_device: str
    chip: str


CARDS = {"910B": Card("0xd802", "0x3003", "910b"), "310P-duo": Card("0xd500", "0x0110", "310p")}
HUAWEI = "0x19e5"
FIRST_BUS = 0xC1


def build_simulation(lab: Lab, step: Step) -> None:
    """Build node files, driver packages and images into the cache unless it has them."""
    if not _directory(lab).is_dir():
        with new_directory(_directory(lab)) as target:
            go = find_go(lab, step)
            step.say("compiling")
            step.run(sys.executable, "-B", SOURCE / "build.py", "--out", target, "--go", go)


def root_files(lab: Lab) -> Path:
    """Tree that is copied over every node's root."""
    return _directory(lab) / "rootfs"


def image_archive(lab: Lab, name: str) -> Path:
    """OCI archive of a simulated image."""
    return _directory(lab) / "images" / f"{name}.tar"


def driver_packages(lab: Lab) -> Path:
    """Directory with the driver packages that every lab has."""
    return _directory(lab) / "run"


def more_driver_packages(lab: Lab, step: Step, version: str, fault: str, kernel: str) -> Path:
    """Directory with further packages, built at first use; `fault`: what is wrong with them, or empty."""
    directory = lab.cache / "drivers" / f"{version}-{digest(SOURCE, kernel, fault)}"
    if not directory.is_dir():
        options = ("--driver", version, "--fault", fault, "--kernel", kernel)
        with new_directory(directory) as target:
            step.run(sys.executable, "-B", SOURCE / "build.py", "--out", target, *options)
    return directory


def hardware(node: Node) -> dict:
    """/etc/npusim/hardware.json of a node: its PCI functions."""
    card = CARDS.get(node.card or "")
    return {
        "node": node.name,
        "number": node.host_number,
        "functions": [
            {
                "address": f"0000:{FIRST_BUS + number:02x}:00.0",
                "device": card.device,
                "subsystem_vendor": HUAWEI,
                "subsystem_device": card.subsystem_device,
            }
            for number in range(node.cards)
            if card
        ],
    }


@functools.cache
def _directory(lab: Lab) -> Path:
    return lab.cache / "sim" / digest(SOURCE, os.uname().release)  # driver modules are made for the running kernel
