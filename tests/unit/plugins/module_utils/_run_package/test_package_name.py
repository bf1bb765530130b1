# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import package_name


@pytest.mark.parametrize("kind", ["driver", "firmware"])
@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("Ascend-hdk-910b-npu-%s_25.5.0_linux-aarch64.run", "910b"),
        ("Ascend-hdk-310P-npu-%s_7.8.0.6.201.run", "310p"),
        ("Ascend-hdk-910-npu-%s_7.5.0.1.129.run", "910a"),
        ("Ascend-hdk-A3-npu-%s_7.7.0.1.231.run", "910c"),
        ("A300-3010-npu-%s_1.80.22.2.220.run", None),
        ("Ascend-hdk-1234-npu-%s_7.8.run", None),
        ("%s.run", None),
    ],
)
def test_the_chip_in_the_name_of_a_package(kind, name, chip):
    name = name % kind
    assert package_name.chip_of(name) == chip
    for key in ("910a", "910b", "910c", "310p", "custom"):
        fits = chip is None or key in (chip, "custom")
        assert package_name.other_chip(name, key) == (None if fits else chip)


def test_the_chip_in_a_url():
    package_name.check_chip("https://x.example/d/Ascend-hdk-910b-npu-driver_25.5.0.run", "910b")
    package_name.check_chip("oci://x.example/Ascend-hdk-910b-npu-driver_/a:1", "310p")
    # As mirror names artifacts.
    for name in (
        "https://x.example/d/Ascend-hdk-910b-npu-driver_25.5.0.run",
        "oci://x.example/p:Ascend-hdk-910b-npu-driver_25.5.0-ab",
    ):
        with pytest.raises(NpuError, match="is for 910b chips, not for 310p. Set npu_driver_package to the package for 310p"):
            package_name.check_chip(name, "310p")
