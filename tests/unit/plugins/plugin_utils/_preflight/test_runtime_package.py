# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a package of the Ascend Docker Runtime in preflight: what does not fit together, before anything is changed."""

from __future__ import annotations

import pytest

from support.fleet.preflight import host, only

PACKAGE = "https://files.example.com/Ascend-docker-runtime_26.1.0_linux-aarch64.run"
FITS = {"runtime_mode": "ascend", "runtime_package": PACKAGE, "runtime_package_sha256": "ab" * 32}


def reasons(version_line="26.1", **config):
    return only(host("a", **{**FITS, **config}), version_line=version_line).reasons


def test_one_that_fits():
    assert reasons() == [] and reasons(version_line=None, runtime_package=PACKAGE.replace("26.1.0", "7.3.0")) == []


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"runtime_mode": "cdi"}, "set npu_runtime_mode: ascend, or unset npu_runtime_package"),
        ({"runtime_package_sha256": None}, "npu_runtime_package_sha256 is not set"),
        ({"runtime_package_sha256": "12"}, "it must be 64 hexadecimal digits"),
        ({"runtime_package": "relative.run"}, "npu_runtime_package is 'relative.run'; it must be"),
        ({"runtime_package": PACKAGE.replace("26.1.0", "7.3.0")}, "npu_mindcluster_version_line is 26.1"),
    ],
    ids=["cdi", "no-checksum", "checksum", "relative", "version_line"],
)
def test_one_that_does_not(config, told):
    (reason,) = reasons(**config)
    assert told in reason
