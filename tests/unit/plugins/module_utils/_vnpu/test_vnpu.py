# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Found, Vnpu

from support.paths import UNIT

FIXTURES = UNIT / "fixtures" / "npu-smi-vnpu"
TEMPLATES = (FIXTURES / "template-info_910B4-1_26.0.rc1.txt").read_text(encoding="utf-8")
TWO = (FIXTURES / "info-vnpu_910B4-1_26.0.rc1.txt").read_text(encoding="utf-8")


def test_templates():
    half = {"AICORE": 10, "AICPU": 3, "VPC": 4, "VENC": 0, "VDEC": 1, "JPEGD": 12, "JPEGE": 2}
    quarter = {"AICORE": 5, "AICPU": 1, "VPC": 2, "VENC": 0, "VDEC": 0, "JPEGD": 6, "JPEGE": 1}
    assert chips_vnpu.parse_templates(TEMPLATES) == {"vir10_3c_32g": half, "vir05_1c_16g": quarter}
    # Some releases begin the line with +.
    assert chips_vnpu.parse_templates(TEMPLATES.replace("|====", "+===="))


def test_chip():
    chip = chips_vnpu.parse_chip(
        7, TWO.replace("000000000000  |  0       |  vir10_3c_32g", "ffffffffffff  |  1       |  vir10_3c_32g", 1)
    )
    assert chip.found == [Found(Vnpu(7, 212, "vir10_3c_32g"), True), Found(Vnpu(7, 213, "vir10_3c_32g"), False)]
    assert chip.parts == {"AICORE": 20, "AICPU": 7, "VPC": 9, "VENC": 0, "VDEC": 2, "JPEGD": 24, "JPEGE": 4}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The vnpu is not in docker mode, does not support querying info-vnpu.\n",
        TWO.replace("vnpu: 2", "vnpu: 3"),
        TWO.replace("|  213 ", "|  x   "),
        TWO.replace("vir10_3c_32g", "../../etc", 1),
        TWO.replace("0/20 ", "NA/NA"),
    ],
)
def test_other_answers_about_a_chip(text):
    with pytest.raises(NpuError, match="npu-smi info -t info-vnpu printed something unexpected"):
        chips_vnpu.parse_chip(0, text)


@pytest.mark.parametrize("text", ["", "Failed to get template info.", TEMPLATES.replace("0              1              2", "0")])
def test_other_answers_about_templates(text):
    with pytest.raises(NpuError, match="template-info printed"):
        chips_vnpu.parse_templates(text)


def test_every_template_has_a_resource():
    for family, names in chips_vnpu.TEMPLATES.items():
        for name in names:
            assert chips_vnpu.resource("huawei.com/X", name).startswith("huawei.com/X-"), (family, name)


def test_offered():
    vnpus = [Vnpu(0, 100, "vir04"), Vnpu(0, 101, "vir02_1c"), Vnpu(3, 148, "vir04")]
    assert chips_vnpu.offered("huawei.com/Ascend310P", 4, vnpus) == {
        "huawei.com/Ascend310P": 2,
        "huawei.com/Ascend310P-4c": 2,
        "huawei.com/Ascend310P-2c.1cpu": 1,
    }
    # The record of a host that had more chips.
    assert chips_vnpu.offered("huawei.com/Ascend310P", 1, vnpus)["huawei.com/Ascend310P"] == 0


def test_ids():
    assert chips_vnpu.ids("310P", 1) == range(116, 124)
    assert chips_vnpu.ids("910B", 7) == range(212, 228)
