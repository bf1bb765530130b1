# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import tempfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._package import contents

from support.host import driver_images, driver_packages

OTHER = "5.10.0-60.18.0.50.oe2203.x86_64"
INFO = ("version.info", b"Version=25.5.0\n")
LIBRARY = ("driver/lib64/driver/libdcmi.so", driver_images.elf(machine="aarch64"))
MODULE = ("driver/host/a.ko", driver_images.module())


def test_what_a_package_has(tmp_path):
    path = driver_packages.makeself(tmp_path, kernels=[OTHER])
    found = contents.read(str(path), "p.run")
    assert (found.version, found.machine) == ("25.5.0", driver_packages.MACHINE)
    assert found.kernels == (OTHER, driver_images.KERNEL)
    assert found.size == path.stat().st_size and found.unpacked > 1000
    assert not driver_packages.RAN.exists()


def test_modules_are_optional(tmp_path):
    path = driver_packages.by_hand(tmp_path / "x.run", [INFO, LIBRARY])
    assert contents.read(str(path), "p.run") == contents.PackageContents(
        path.stat().st_size, len(INFO[1]) + len(LIBRARY[1]), "25.5.0", "aarch64", ()
    )


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([LIBRARY, MODULE], "p.run has no version.info: it is not a driver package"),
        ([("version.info", b"x=1\n"), LIBRARY], "no valid version: None"),
        ([("version.info", b"Version=a b\n"), LIBRARY], "no valid version: a b"),
        ([INFO, MODULE], "p.run has no libraries in driver/lib64"),
        ([INFO, ("driver/lib64/a.so", b"text"), MODULE], "no libraries"),
        ([INFO, LIBRARY, ("driver/lib64/b.so", driver_images.elf(machine="x86_64"))], "has programs for aarch64 and x86_64"),
        ([INFO, LIBRARY, ("driver/host/a.ko", b"text")], "p.run has a module that cannot be read: .*a.ko is damaged"),
        ([INFO, LIBRARY, ("driver/host/a.ko", driver_images.module(kernel=None))], "does not state the kernel"),
        ([INFO, LIBRARY, ("../a.ko", driver_images.module())], "leads out of the package"),
    ],
)
def test_what_is_no_driver_package(tmp_path, members, text):
    path = driver_packages.by_hand(tmp_path / "x.run", members)
    with pytest.raises(NpuError, match=text) as caught:
        contents.read(str(path), "p.run")
    assert "/tmp" not in caught.value.message


def test_a_package_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(contents.image_files, "MAX_BYTES", 1000)
    path = driver_packages.by_hand(tmp_path / "x.run", [INFO, ("zeros", b"\0" * 1000)])
    with pytest.raises(NpuError, match="content has more than 0 MiB"):
        contents.read(str(path), "p.run")


@pytest.mark.parametrize("place", ["none", "full"])
def test_where_kernel_modules_cannot_be_kept(tmp_path, monkeypatch, place):
    path = driver_packages.by_hand(tmp_path / "x.run", [INFO, LIBRARY, MODULE])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    if place == "full":
        (tmp_path / "none").mkdir()
        make = tempfile.TemporaryDirectory.__enter__

        def enter(directory):
            os.symlink("/dev/full", os.path.join(directory.name, "a.ko"))
            return make(directory)

        monkeypatch.setattr(tempfile.TemporaryDirectory, "__enter__", enter)
    said = "No space left on device" if place == "full" else "No such file or directory"
    with pytest.raises(NpuError, match="p.run cannot be examined in %s/none on the controller: %s.*set TMPDIR" % (tmp_path, said)):
        contents.read(str(path), "p.run")
