# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_layout
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu

HALVES = {"vir04": 1, "vir04_3c": 1}
ALL = [{"chips": None, "templates": HALVES}]


@pytest.mark.parametrize(
    ("value", "layout"),
    [
        ([], []),
        ({}, []),
        ("[]", []),
        (HALVES, ALL),
        ([{"templates": HALVES}], ALL),
        ([{"templates": {"vir04": "1", "vir04_3c": 1}}], ALL),
        ('{"vir04": 1, "vir04_3c": 1}', ALL),
        ([{"chips": [0, "1"], "templates": {}}], [{"chips": [0, 1], "templates": {}}]),
    ],
)
def test_forms(value, layout):
    assert vnpu_layout.parse(value) == layout
    assert vnpu_layout.parse(layout) == layout


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("vir04", "vir04 is no layout: it must be a mapping of templates, such as {vir04: 1, vir04_3c: 1}, or a list"),
        ("", " is no layout"),
        (None, "None is no layout"),
        (True, "True is no layout"),
        ([HALVES], "entry 1: {'vir04': 1, 'vir04_3c': 1} is not a mapping with templates and chips"),
        ([{"templates": HALVES, "chip": 1}], "entry 1: "),
        ({"vir99": 1}, "there is no template vir99; there are vir01, vir02"),
        ({"chips": [0], "templates": HALVES}, "there is no template chips"),
        ({"vir04": True}, "the number of vir04 is True; it must be a number"),
        ({"vir04": 1.5}, "the number of vir04 is 1.5"),
        ([{"templates": HALVES, "chips": 0}], "entry 1: chips is 0; it must be a list of numbers"),
        ([{"templates": HALVES, "chips": ["a\nb"]}], "entry 1: chip is a?b; it must be a number"),
        ([{"templates": HALVES}] * 1025, "is no layout"),
    ],
)
def test_mistakes(value, told):
    with pytest.raises(NpuError) as caught:
        vnpu_layout.parse(value)
    assert told in caught.value.message and len(caught.value.message) < 600


def test_of_what_is_there():
    there = [Vnpu(1, 117, "vir04"), Vnpu(0, 100, "vir02"), Vnpu(0, 101, "vir02")]
    layout = [{"chips": [0], "templates": {"vir02": 2}}, {"chips": [1], "templates": {"vir04": 1}}]
    assert vnpu_layout.of_vnpus(there) == vnpu_layout.parse(layout) == layout
    assert vnpu_layout.counts(there) == {0: {"vir02": 2}, 1: {"vir04": 1}}
