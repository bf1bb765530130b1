# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the Ascend Docker Runtime (.run) for tests: with the files of the real ones, and with anything else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from support.host import driver_packages

MACHINE = os.uname().machine
PROGRAMS = ("ascend-docker-runtime", "ascend-docker-hook", "ascend-docker-cli", "ascend-docker-destroy")
LIST = (
    "/usr/local/Ascend/driver/lib64\n/usr/local/Ascend/driver/include\n/usr/local/dcmi\n/usr/local/bin/npu-smi\n/var/queue_schedule"
)


def name_of(version: str) -> str:
    """The name that Huawei gives the package of that version for this machine."""
    return f"Ascend-docker-runtime_{version}_linux-{MACHINE}.run"


def members(version: str = "26.1.0", program: bytes = b"#!/bin/sh\nexit 0\n") -> dict[str, Any]:
    """Name -> content of the files in a package; ``program``: that of each program."""
    found: dict[str, Any] = dict.fromkeys(PROGRAMS, program)
    found["ascend-docker-plugin-install-helper"] = program
    found["base.list"] = LIST.encode()
    found["base.list_A500"] = b"/usr/local/Ascend/driver/lib64\n/usr/local/sbin/npu-smi\n"
    found["run_main.sh"] = b"#!/bin/bash\ntouch %s\nreadonly PACKAGE_VERSION=%s\n" % (
        bytes(driver_packages.RAN),
        version.encode(),
    )
    found["uninstall.sh"] = b"#!/bin/bash\ntouch %s\n" % bytes(driver_packages.RAN)
    return found


def write(directory: Path, version: str = "26.1.0", files: dict[str, Any] | None = None, extra: tuple = (), **more: Any) -> Path:
    """A package in ``directory``; ``files``: instead of ``members``; ``extra``, ``more``: as for driver_packages.by_hand."""
    listed = [(f"./{name}", content, {"mode": 0o550}) for name, content in (files or members(version)).items()]
    return driver_packages.by_hand(Path(directory) / name_of(version), [*listed, *extra], **more)
