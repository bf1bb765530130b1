# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver and firmware packages (.run) for tests: with makeself, as the real ones, and by hand, as makeself would never make them."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from support.host import driver_images

MACHINE = os.uname().machine
NAME = "Ascend-hdk-910b-npu-driver_25.5.0_linux-%s.run" % MACHINE.replace("_", "-")
FIRMWARE_NAME = "Ascend-hdk-910b-npu-firmware_7.8.0.7.220.run"
FIRMWARE_INFO = "Version=7.8.0.7.220\ncompatible_version_drv=[25.0,25.0.],[25.5,25.5.]\n"
# The package creates this file when it is run.
RAN = Path("/npuops-package-was-run")
SCRIPT = b'#!/bin/sh\ntouch %s\nfilesizes="%d"\nskip="%d"\nexit 0\n'
LINES = 5


def makeself(directory, version="25.5.0", name=NAME, kernels=(), options=(), **more):
    """A package as Huawei makes it, as a Path; ``kernels``: for which it has modules besides driver_images.KERNEL.

    ``more``: as for driver_images.write_tree.
    """
    top = Path(directory) / ("content-" + name)
    tree = driver_images.write_tree(top / "driver", version=version, **more)
    (tree / "version.info").rename(top / "version.info")
    for kernel in kernels:
        for module in driver_images.MODULES:
            content = driver_images.module(kernel, depends=driver_images.MODULES[module])
            driver_images.write(tree / "binary" / kernel / (module + ".ko"), content)
    return _packed(top, Path(directory) / name, "DRIVER", options)


def firmware(directory, info=FIRMWARE_INFO, name=FIRMWARE_NAME, members=()):
    """A firmware package as Huawei makes it, as a Path; ``members``: (path, content) besides its version.info and install.sh."""
    top = Path(directory) / ("content-" + name)
    driver_images.write(top / "firmware" / "version.info", info.encode())
    driver_images.write(top / "firmware" / "image" / "ascend_910b_nve.img", os.urandom(5000))
    for member, content in members:
        driver_images.write(top / member, content)
    return _packed(top, Path(directory) / name, "FIRMWARE")


def _packed(top, path, what, options=()):
    assert shutil.which("makeself"), "makeself is not installed: dev/packages does that"
    driver_images.write(top / "install.sh", b"#!/bin/sh\ntouch %s\n" % bytes(RAN), 0o755)
    command = ["makeself", "--quiet", "--nomd5", "--sha256", *options, str(top), str(path), what, "./install.sh"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(top)
    return path


def sha256(path):
    """The checksum as sha256sum prints it."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def by_hand(path, members, mode="w:gz", script=SCRIPT):
    """A package with these members: (name, content, changes of its TarInfo) each."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode, format=tarfile.GNU_FORMAT) as archive:
        for name, data, *changes in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in (changes[0] if changes else {}).items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data) if info.isreg() else None)
    packed = content.getvalue()
    path.write_bytes(script % (bytes(RAN), len(packed), LINES) + packed)
    return path
