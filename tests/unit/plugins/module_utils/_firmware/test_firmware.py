# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a firmware package declares, and how it gets into an image."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import firmware
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package.version_info import parse

# Of a real package.
REAL = """Version=7.7.0.1.231
firmware_version=1.0
package_version=25.0.rc1.1
compatible_version_drv=[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.],[25.0,25.0.]
"""
NAME = "Ascend-hdk-910b-npu-firmware_7.7.0.1.231.run"


@pytest.mark.parametrize(
    ("driver", "fits"),
    [("25.0.rc1.1", True), ("24.1", True), ("23.0.0", True), ("23.0.1", False), ("25.5.0", False), ("25.01", False), ("2", False)],
)
def test_the_drivers_of_a_real_package(driver, fits):
    drivers = firmware.drivers_of(parse(REAL))
    assert drivers == ["23.0.0", "24.0", "24.1", "25.0"]
    assert firmware.supports(drivers, driver) is fits


@pytest.mark.parametrize("text", ["", "[]", "[;rm -rf /]", "[" * 100, "\0", "[$(id),`id`]", ",".join(["-x"] * 1000)])
def test_what_is_no_version_is_omitted(text):
    assert firmware.prefixes(text) == [] and firmware.supports([], "25.5.0")


def test_the_list_is_bounded():
    assert len(firmware.prefixes(",".join("[%d]" % number for number in range(1000)))) == 64


def package(tmp_path, info=REAL, name=NAME, inside="firmware"):
    file, extracted = tmp_path / name, tmp_path / "extracted"
    file.write_bytes(b"#!/bin/sh\n")
    (extracted / inside).mkdir(parents=True)
    if info is not None:
        (extracted / inside / "version.info").write_text(info)
    return str(file), str(extracted), str(tmp_path / "firmware")


@pytest.mark.parametrize("inside", ["firmware", "."])
def test_a_package_becomes_the_directory_of_an_image(tmp_path, inside):
    found = firmware.arrange(*package(tmp_path, inside=inside))
    assert (found.version, found.package) == ("7.7.0.1.231", NAME) and found.supports("25.0.rc1.1")
    assert sorted(os.listdir(str(tmp_path / "firmware"))) == [NAME, "version.info"]
    again = firmware.find(str(tmp_path))
    assert (again.version, again.drivers, again.package) == (found.version, found.drivers, found.package)


@pytest.mark.parametrize(
    ("change", "text"),
    [({"info": None}, "has no version.info"), ({"info": "Version=a b\n"}, "invalid version"), ({"name": "x.rpm"}, "is not a .run")],
)
def test_what_is_no_firmware_package(tmp_path, change, text):
    with pytest.raises(NpuError, match=text):
        firmware.arrange(*package(tmp_path, **change))


def test_a_driver_package_is_not_taken_for_one(tmp_path):
    file, extracted, target = package(tmp_path, inside=".")
    os.makedirs(os.path.join(extracted, "driver"))
    with pytest.raises(NpuError, match="is a driver package, not a firmware package"):
        firmware.arrange(file, extracted, target)


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("Ascend-hdk-910b-npu-firmware_7.8.0.6.201.run", "910b"),
        ("Ascend-hdk-310p-npu-firmware_7.8.0.6.201.run", "310p"),
        ("Ascend-hdk-310P-npu-firmware_7.8.0.6.201.run", "310p"),
        ("Ascend-hdk-910-npu-firmware_7.5.0.1.129.run", "910a"),
        ("Ascend-hdk-A3-npu-firmware_7.7.0.1.231.run", "910c"),
        ("A300-3010-npu-firmware_1.80.22.2.220.run", None),
        ("Ascend-hdk-1234-npu-firmware_7.8.run", None),
        ("firmware.run", None),
    ],
)
def test_the_chip_in_the_name_of_a_package(name, chip):
    for key in ("910a", "910b", "910c", "310p", "custom"):
        if chip is None or key in (chip, "custom"):
            firmware.check_chip(name, key)
        else:
            with pytest.raises(NpuError, match="is for %s chips, not for %s. Build the driver image with" % (chip, key)):
                firmware.check_chip(name, key)


def test_an_image_without_firmware(tmp_path):
    assert firmware.find(str(tmp_path)) is None


@pytest.mark.parametrize(
    "manifest", [{}, {"firmware": None}, {"firmware": {"version": 7}}, {"firmware": {"version": "7", "drivers": 1}}]
)
def test_a_manifest_without_firmware_or_with_a_damaged_one(manifest):
    assert firmware.of_manifest(manifest) == {}


@pytest.mark.parametrize("text", ["[24.1~25.5]", "(24.1|25.0)", "[>=25]"])
def test_a_declaration_that_nobody_understands_is_not_taken_for_none(text):
    with pytest.raises(NpuError, match="are not a list of versions"):
        firmware.drivers_of({"compatible_version_drv": text})
