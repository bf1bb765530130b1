# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of npu-smi that no capture has: every layout, any number of chips, any spacing, and any damage."""

from __future__ import annotations

import os
import re

from ansible_collections.npuops.ascend.plugins.module_utils._chips import npu_smi as chips_npu_smi
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from hypothesis import given
from hypothesis import strategies as st

from support.paths import UNIT
from support.properties import bounded, damaged, few, megabytes

FIXTURES = UNIT / "fixtures" / "npu-smi"
CAPTURES = {name: (FIXTURES / name).read_text(encoding="utf-8") for name in sorted(os.listdir(FIXTURES))}

# layout -> (cells of the first heading, of the second); the cell after those of the chip is for people.
HEADINGS = {
    "hbm": (["NPU   Name", "Health", "Power(W)    Temp(C)"], ["Chip", "Bus-Id", "AICore(%)   Memory-Usage(MB)"]),
    "hbm-phy": (["NPU   Name", "Health", "Power(W)    Temp(C)"], ["Chip  Phy-ID", "Bus-Id", "AICore(%)   Memory-Usage(MB)"]),
    "device": (["NPU     Name", "Health", "Power(W)  Temp(C)"], ["Chip    Device", "Bus-Id", "AICore(%)    Memory-Usage(MB)"]),
    "950": (["NPU ID", "Name", "Health", "Power(W)    Temp(C)"], ["", "", "Bus-Id", "NPU Util(%) Memory-Usage(MB)"]),
}
VERSIONS = st.from_regex(r"[0-9]{2}\.[0-9]{1,2}\.(rc)?[0-9](\.[0-9]{1,3}){0,2}", fullmatch=True)
BLANKS = st.integers(1, 9).map(lambda count: " " * count)
NAMES = st.sampled_from(("910A", "910B3", "310P3", "310", "Ascend910", "xxx", "Ascend 950 PR"))
HEALTH = st.sampled_from(("OK", "Warning", "Alarm", "Critical", "UNKNOWN", "NA"))
BUS_IDS = st.from_regex(r"[0-9A-F]{4}([0-9A-F]{4})?:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]", fullmatch=True)


@st.composite
def chips(draw, layout):
    known = layout in ("hbm-phy", "device")
    return {
        "npu": draw(st.integers(0, 400)),
        "chip": 0 if layout == "950" else draw(st.integers(0, 31)),
        "phy_id": draw(st.integers(0, 255)) if known else None,
        "name": draw(NAMES),
        "health": draw(HEALTH),
        "bus_id": draw(BUS_IDS),
    }


@st.composite
def lines_of(draw, cells):
    """A line of the table; columns need not be in line (see info_docs_8card_busy_23.0.rc3_namexxx.txt)."""
    return "|" + "|".join(" " + cell + draw(BLANKS) for cell in cells) + "|"


@st.composite
def tables(draw):
    """(what was measured, the table)"""
    layout = draw(st.sampled_from(sorted(HEADINGS)))
    model = {
        "npu_smi_version": draw(VERSIONS),
        "version": draw(VERSIONS),
        "layout": layout,
        "chips": draw(st.lists(chips(layout), max_size=4)),
        "warnings": draw(st.lists(st.sampled_from(("[WARNING]The driver package may not be complete.", "dmesg?")), max_size=2)),
    }
    rule = "+" + "-" * draw(st.integers(0, 60)) + "+"
    lines = [*model["warnings"], rule]
    lines.append("| npu-smi %s%sVersion: %s%s|" % (model["npu_smi_version"], draw(BLANKS), model["version"], draw(BLANKS)))
    lines += [rule] + [draw(lines_of(cells)) for cells in HEADINGS[layout]]
    for chip in model["chips"]:
        blanks = draw(BLANKS)
        rest = draw(st.sampled_from(("NA           71                0     / 0", "-", "0  1263 / 44280", "")))
        place = str(chip["chip"]) if chip["phy_id"] is None else "%d%s%d" % (chip["chip"], blanks, chip["phy_id"])
        first, second = [[str(chip["npu"]) + blanks + chip["name"]], [place]]
        if layout == "950":
            first, second = [str(chip["npu"]), chip["name"]], ["", ""]
        lines += [rule, draw(lines_of([*first, chip["health"], rest])), draw(lines_of([*second, chip["bus_id"], rest]))]
    if draw(st.booleans()):
        lines += [rule, rule, "| NPU     Chip   | Process id    | Process name | Process memory(MB) |", rule]
        lines += ["| No running processes found in NPU 4 |", "| 0       0    | 139667        | python       | 30780 |"]
    end = draw(st.sampled_from(("\n", "\r\n", " \n")))
    return model, end.join(lines) + draw(st.sampled_from(("", end, end * 3)))


def check(text):
    """The value of ``parse_info`` if it has the documented form, or None if it is refused as documented."""
    try:
        with bounded():
            info = chips_npu_smi.parse_info(text)
    except NpuError as exc:
        assert len(exc.message) < 5000, "a message that nobody can read"
        return None
    assert set(info) == {"npu_smi_version", "version", "layout", "chips", "warnings"}
    assert info["layout"] in HEADINGS and all(isinstance(line, str) for line in info["warnings"])
    for chip in info["chips"]:
        assert isinstance(chip["npu"], int) and isinstance(chip["chip"], int)
        assert chip["phy_id"] is None or isinstance(chip["phy_id"], int)
        assert chip["name"] and chip["health"] and chip["bus_id"] == chip["bus_id"].lower()
    return info


@given(tables())
def test_a_table_is_read_as_it_was_measured(table):
    model, text = table
    wanted = dict(model, chips=[dict(chip, bus_id=chip["bus_id"].lower()) for chip in model["chips"]])
    assert check(text) == wanted


@given(
    damaged(
        st.one_of(tables().map(lambda table: table[1]), st.sampled_from(sorted(CAPTURES.values()))), pieces=("|", "+", " Version: ")
    )
)
def test_a_damaged_table_is_read_or_refused(text):
    check(text)
    assert all(isinstance(value, str) for value in chips_npu_smi.parse_fields(text).values())


@given(tables(), st.data())
def test_a_table_that_breaks_off_has_no_other_chips(table, data):
    """Whatever is left of it: chips are missing, or it is refused, but none is invented."""
    model, text = table
    # Within the last bus ID, the table still looks complete.
    info = check(text[: data.draw(st.integers(0, len(text)))])
    found = info["chips"] if info else []
    assert len(found) <= len(model["chips"])
    for chip, measured in zip(found, model["chips"]):
        assert chip == dict(measured, bus_id=measured["bus_id"].lower())


@given(
    st.sampled_from(sorted(text for text in CAPTURES.values() if "Bus-Id" in text)), st.sampled_from((10, 4301, 50000)), st.data()
)
def test_numbers_of_any_length(text, length, data):
    """Python converts no number of more than 4300 digits."""
    numbers = [match.span(1) for match in re.finditer("^[|] ([0-9]+) *([0-9]*)", text, re.MULTILINE)]
    here, there = data.draw(st.sampled_from(numbers))
    check(text[:here] + "9" * length + text[there:])


@few
@given(megabytes({"|", "| ", "+-", "\n", "| 4     910B3 | OK |\n", "9", " Version: ", CAPTURES["info_910B3_1card_23.0.1.txt"]}))
def test_megabytes_are_read_or_refused_in_time(text):
    check(text)
    with bounded():
        chips_npu_smi.parse_fields(text)


@given(
    st.integers(-64, 255),
    st.one_of(
        st.text(max_size=200), damaged(st.sampled_from([text for name, text in CAPTURES.items() if name.startswith("fail_")]))
    ),
)
def test_each_failure_is_explained(status, output):
    error = chips_npu_smi.failure("npu-smi info", status, output)
    assert isinstance(error, NpuError) and error.message.startswith("npu-smi info ")
    details = error.details["npu_smi"]
    assert details["status"] == status and details["output"] == output[:4000]
    assert details["dcmi_code"] is None or -9999 <= details["dcmi_code"] <= -1000
