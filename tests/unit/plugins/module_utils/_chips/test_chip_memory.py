# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered of the chips of a host, and which of them are missing."""

from __future__ import annotations

import json
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory

EIGHT = {"0000:%02x:00.0" % bus: 1 for bus in range(0xC0, 0xC8)}
SEVEN = {address: count for address, count in EIGHT.items() if address != "0000:c4:00.0"}
BOOT = "2026-11-25T22:00:00Z"


def test_what_is_written_is_read(tmp_path):
    path = str(tmp_path / "new" / "chips.json")
    assert chip_memory.read(path) == {}
    chip_memory.write(EIGHT, path)
    assert chip_memory.read(path) == EIGHT


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "1",
        '{"0000:c4:00.0": true}',
        '{"0000:c4:00.0": 1.0}',
        '{"0000:c4:00.0": %s}' % ("1" * 5000),
        '{"../0000:c4:00.0": 1}',
        "\x1b",
        '{"0000:c4:00.0\\n": 1}',
        '{"0000:c4:00.0": [1]}',
        json.dumps({"0000:%02x:%02x.0" % (a, b): 1 for a in range(9) for b in range(256)}),
        "",
        "[]",
        "{",
        '"x"',
        '{"0000:c4:00.0": 3}',
        '{"0000:c4:00.0": "1"}',
        '{"{{ x }}": 1}',
        "[" * 100000,
        '{"a": 1}' * 100000,
    ],
)
def test_what_is_no_such_list_is_no_memory(tmp_path, content):
    (tmp_path / "chips.json").write_text(content, encoding="utf-8")
    assert chip_memory.read(str(tmp_path / "chips.json")) == {}


def test_pods_can_write_beside_it(tmp_path):
    """Neither a link nor a pipe is followed."""
    (tmp_path / "other").write_text(json.dumps(EIGHT), encoding="utf-8")
    os.symlink(tmp_path / "other", tmp_path / "link")
    with pytest.raises(OSError):
        chip_memory.read(str(tmp_path / "link"))
    os.mkfifo(tmp_path / "pipe")
    assert chip_memory.read(str(tmp_path / "pipe")) == {}


def test_missing_chips():
    assert chip_memory.gone(EIGHT, SEVEN) == ["0000:c4:00.0"]
    assert chip_memory.gone({}, SEVEN) == chip_memory.gone(EIGHT, EIGHT) == chip_memory.gone(SEVEN, EIGHT) == []
    # The bus was renumbered: none is missing.
    assert chip_memory.gone(EIGHT, {"0000:%02x:00.0" % bus: 1 for bus in range(0x10, 0x18)}) == []
    # A card with two chips.
    assert chip_memory.gone({"0000:01:00.0": 2, "0000:02:00.0": 2}, {"0000:02:00.0": 2}) == ["0000:01:00.0"]
    assert chip_memory.gone(EIGHT, {}) == sorted(EIGHT)


def _at(*buses):
    return {"0000:%s:00.0" % bus: 1 for bus in buses}


@pytest.mark.parametrize(
    "before, now",
    [
        (_at("01", "02", "41", "42", "81", "82", "c1", "c2"), _at("01", "02", "41", "80", "81", "c0", "c1")),
        (_at("01", "02", "03"), _at("04", "05")),
    ],
)
def test_on_a_renumbered_bus_no_chip_that_is_there_is_called_missing(before, now):
    count, expected = sum(now.values()), sum(before.values())
    told = chip_memory.told(count, expected, chip_memory.gone(before, now), BOOT)
    assert told == "%d of %d chips are on the PCI bus" % (count, expected)


@pytest.mark.parametrize(
    "count, wanted, remembered, gone, words",
    [
        (8, None, 8, [], None),
        (8, 0, 0, [], None),
        (8, None, 7, [], None),
        (7, 7, 8, ["0000:c4:00.0"], None),
        (7, None, 8, ["0000:c4:00.0"], "only 7 of 8 chips: 0000:c4:00.0 is missing from the PCI bus since the boot of " + BOOT),
        (6, None, 8, ["0000:c4:00.0", "0000:c5:00.0"], "0000:c4:00.0, 0000:c5:00.0 are missing"),
        (7, 8, 0, [], "only 7 of 8 chips on the PCI bus. Check its cards, power and dmesg. To accept that it has 7 chips from"),
        (8, 7, 8, [], "has 8 chips, but npu_chips is 7"),
        (0, None, 0, [], None),
        (
            0,
            None,
            2,
            ["0000:c4:00.0", "0000:c5:00.0"],
            "only 0 of 2 chips: 0000:c4:00.0, 0000:c5:00.0 are missing from the PCI bus",
        ),
        # What accepts that: npu_chips: 0 is the same as none.
        (0, None, 8, [], "accept that it has 0 chips from now on, run npuops.ascend.uninstall for this host"),
        (0, 8, 8, [], "from now on, run npuops.ascend.uninstall and set npu_chips: 0 for this host"),
        (0, 8, 0, [], "from now on, set npu_chips: 0 for this host"),
    ],
)
def test_what_install_must_not_take_for_granted(count, wanted, remembered, gone, words):
    problem = chip_memory.problem(count, wanted, remembered, gone, BOOT)
    assert problem is None if words is None else words in problem
