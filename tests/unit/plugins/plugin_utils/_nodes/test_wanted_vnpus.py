# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import wanted_vnpus

from support.fleet.preflight import facts

ONE = [{"chips": [1], "templates": {"vir04": 1}}]


def there(*vnpus):
    return facts("d500", vnpus=[{"chip": chip, "id": number, "template": template} for chip, number, template in vnpus])


@pytest.mark.parametrize(
    ("given", "fact", "told"),
    [
        (None, there((1, 116, "vir04")), None),
        (ONE, there((1, 118, "vir04")), None),
        ([], there(), None),
        ({}, there(), None),
        (ONE, there(), "npu_vnpu asks for 1 vir04 on chip 1 instead of whole chips: see npuops.ascend.install"),
        ([], there((1, 116, "vir04")), "npu_vnpu asks for whole chips instead of 1 vir04 on chip 1: see npuops.ascend.install"),
        (ONE, there((0, 100, "vir04")), "npu_vnpu asks for 1 vir04 on chip 1 instead of 1 vir04 on chip 0: see"),
        ({"vir06_1c_16g": 1}, there(), "npu_vnpu: layout, entry 1: the 310P has no template vir06_1c_16g"),
        ("half", there(), "npu_vnpu: half is no layout"),
        (ONE, {}, None),
        (ONE, facts("d500", chip_count=0, family=None), None),
    ],
)
def test_what_differs(given, fact, told):
    found = wanted_vnpus.difference(given, fact)
    assert found is None if told is None else found.startswith(told)
