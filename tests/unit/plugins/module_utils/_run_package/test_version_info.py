# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info

from support.paths import UNIT

FIXTURES = str(UNIT / "fixtures" / "driver")


def sample(name):
    with open(os.path.join(FIXTURES, name), encoding="utf-8") as stream:
        return version_info.parse(stream.read())


def test_real_samples():
    info = sample("driver_version.info_25.0.rc1.1")
    assert info["Version"] == "25.0.rc1.1"
    assert version_info.firmware_range(info) == ("7.0.0", "7.7.99")
    assert version_info.firmware_range(sample("driver_version.info_24.1.rc2.2")) == ("7.0.0", "7.2.99")
    assert sample("firmware_version.info_25.0.rc1.1")["Version"] == "7.7.0.1.231"
    assert version_info.firmware_range(sample("firmware_version.info_25.0.rc1.1")) is None


def test_pairs_seen_on_hosts():
    lowest, highest = version_info.firmware_range(sample("driver_version.info_25.0.rc1.1"))
    assert version_info.in_range("7.7.0.1.231", lowest, highest)
    assert version_info.in_range("7.7.99.1", lowest, highest)
    assert not version_info.in_range("7.8.0.6.201", lowest, highest)
    assert not version_info.in_range("6.9", lowest, highest)
    assert version_info.in_range("7.8.0.6.201", "7.0.0", "8.9.9")


@pytest.mark.parametrize(
    "older, newer",
    [
        ("25.5.0", "25.5.1"),
        ("9.5.0", "25.5.0"),
        ("25.3.rc1", "25.3.0"),
        ("25.3.rc1", "25.3"),
        ("25.3.rc1", "25.3.rc2"),
        ("24.1.rc2", "24.1.rc2.2"),
        ("24.1.rc2.2", "24.1.rc3"),
        ("25.2.3", "25.3.rc1"),
        ("24.1.rc2.b080", "24.1.rc2.b081"),
        ("25.5.0.beta1", "25.5.0"),
        ("25.5\n.0", "25.6"),
        ("9" * 5000, "1" + "0" * 5000),
        ("25." + "0" * 5000 + "9", "25.10"),
    ],
)
def test_order(older, newer):
    assert version_info.compare(older, newer) == -1
    assert version_info.compare(newer, older) == 1


def test_equal_versions():
    assert version_info.compare("25.5", "25.5.0") == 0
    assert version_info.compare("25.5.RC1", "25.5.rc1") == 0


def test_read(tmp_path):
    with pytest.raises(NpuError, match="is missing"):
        version_info.read(str(tmp_path))
    (tmp_path / "version.info").write_text("package_version=1\n")
    with pytest.raises(NpuError, match="no line Version="):
        version_info.read(str(tmp_path))
    (tmp_path / "version.info").write_text("version=1.2.3\n")
    assert version_info.read(str(tmp_path))["Version"] == "1.2.3"


@pytest.mark.parametrize("value", ["", "7.0.0,7.2.99", "[7.0.0]", "[7.0.0,7.2.99],[8,9]"])
def test_no_range_is_made_up(value):
    assert version_info.firmware_range({"compatible_version_fw": value}) is None
