# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of npu-smi with any damage, records with any content, and the plan from any state to any layout."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu as chips_vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu import vnpu_plan, vnpu_record
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu import Vnpu
from ansible_collections.npuops.ascend.plugins.module_utils._vnpu.vnpu_record import Record
from hypothesis import given
from hypothesis import strategies as st

from support.paths import UNIT
from support.properties import bounded, damaged

FIXTURES = UNIT / "fixtures" / "npu-smi-vnpu"
CAPTURES = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.iterdir())]
PARSERS = (chips_vnpu.parse_templates, lambda text: chips_vnpu.parse_chip(0, text), chips_npu_smi.parse_place)
NAMES = chips_vnpu.TEMPLATES["310P"]
CHIPS = (0, 1, 2)


@given(damaged(st.sampled_from(CAPTURES)) | st.text(max_size=400))
def test_damaged_answers(text):
    for parser in PARSERS:
        try:
            with bounded():
                parser(text)
        except NpuError:
            pass


@st.composite
def vnpus(draw):
    numbers = draw(st.sets(st.tuples(st.sampled_from(CHIPS), st.integers(0, 7)), max_size=12))
    return sorted(Vnpu(chip, 100 + 16 * chip + offset, draw(st.sampled_from(NAMES))) for chip, offset in numbers)


LAYOUTS = st.dictionaries(
    st.sampled_from(CHIPS), st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2), min_size=1, max_size=3), max_size=3
)


def counted(found):
    counts = {}
    for vnpu in found:
        mine = counts.setdefault(vnpu.chip, {})
        mine[vnpu.template] = mine.get(vnpu.template, 0) + 1
    return counts


@given(LAYOUTS, vnpus(), vnpus(), vnpus())
def test_the_plan_leads_to_the_layout(wanted, target, leaving, present):
    plan = vnpu_plan.plan(wanted, "310P", Record(target, leaving), present)
    if not (wanted or target or leaving):
        assert plan == ([], [], [], present)
        return
    after = sorted((set(present) - set(plan.destroy)) | set(plan.create))
    assert after == plan.target
    assert counted(after) == wanted
    assert len({vnpu.id for vnpu in after}) == len(after)
    assert all(vnpu.id in chips_vnpu.ids("310P", vnpu.chip) for vnpu in after)
    assert set(plan.destroy) <= set(present) and not set(plan.create) & set(present)
    assert set(plan.leftovers) == set(plan.destroy) - set(target) - set(leaving)
    # A second run has nothing to do, whatever of the first one was done.
    assert vnpu_plan.plan(wanted, "310P", Record(plan.target, []), after) == (plan.target, [], [], [])
    halfway = vnpu_plan.plan(wanted, "310P", Record(plan.target, plan.destroy), present)
    assert (halfway.target, halfway.leftovers) == (plan.target, [])


@given(vnpus(), vnpus())
def test_records(tmp_path_factory, target, leaving):
    fs = str(tmp_path_factory.mktemp("host"))
    record = Record(target, leaving)
    vnpu_record.write(record, fs)
    assert vnpu_record.read(fs) == record
    vnpu_record.write(Record([], []), fs)
    assert vnpu_record.read(fs) == Record([], [])


@given(st.text(alphabet="destroy 0123vir_c#\n", max_size=60))
def test_damaged_records(tmp_path_factory, text):
    fs = tmp_path_factory.mktemp("host")
    path = fs / vnpu_record.PATH.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    try:
        assert all(isinstance(vnpu, Vnpu) for part in vnpu_record.read(str(fs)) for vnpu in part)
    except NpuError as exc:
        assert "not a virtual NPU" in exc.message


def test_layouts_that_make_no_sense():
    for layout, told in (
        ([{"templates": {"vir05_1c_8g": 1}}], "entry 1: the 310P has no template vir05_1c_8g"),
        ([{"templates": {"vir04": 0}}], "between 1 and 8, not 0"),
        ([{"templates": {"vir04": True}}], "between 1 and 8, not True"),
        ([{"chips": [4], "templates": {"vir04": 1}}], "no chip 4; its chips: 0, 1"),
        ([{"templates": {"vir04": 1}}, {"chips": [1], "templates": {"vir02": 1}}], "entry 2: chip 1 is in an earlier entry"),
    ):
        with pytest.raises(NpuError, match=told):
            vnpu_plan.expand(layout, "310P", [0, 1])
    with pytest.raises(NpuError, match="The 310 cannot be divided"):
        vnpu_plan.expand([{"templates": {"vir04": 1}}], "310", [0])
    assert vnpu_plan.expand([], "310", [0]) == {}
    assert vnpu_plan.expand([{"chips": [1], "templates": {}}, {"chips": [0], "templates": {"vir04": 2}}], "310P", [0, 1]) == {
        0: {"vir04": 2}
    }
