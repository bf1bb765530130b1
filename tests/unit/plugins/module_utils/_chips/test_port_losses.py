# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import port_losses


def test_what_is_remembered():
    chips = [
        {"chip": 0, "link": "UP", "address": "10.64.11.10"},
        {"chip": 1, "link": None, "address": None},
        {"chip": 12, "link": "DOWN", "address": "10.64.11.22"},
    ]
    assert port_losses.by_chip({"chips": chips}) == {"0": "UP 10.64.11.10", "1": "- -", "12": "DOWN 10.64.11.22"}
    assert port_losses.by_chip({"chips": []}) == {}


@pytest.mark.parametrize(
    "before, now, told",
    [
        ("UP 10.0.0.1", "UP 10.0.0.1", []),
        ("UP 10.0.0.1", "DOWN 10.0.0.1", ["the link of chip 3 is down"]),
        ("UP 10.0.0.1", "- 10.0.0.1", ["the link of chip 3 is unknown"]),
        ("UP 10.0.0.1", "UP 10.0.0.2", ["the address of chip 3 is 10.0.0.2, and was 10.0.0.1"]),
        ("UP 10.0.0.1", "UP -", ["the address of chip 3 is gone, and was 10.0.0.1"]),
        ("UP 10.0.0.1", None, ["the link of chip 3 is unknown", "the address of chip 3 is gone, and was 10.0.0.1"]),
        ("DOWN 10.0.0.1", "DOWN 10.0.0.1", []),
        ("DOWN -", "- -", []),
        ("- -", "DOWN -", []),
        ("- -", "UP 10.0.0.1", []),
    ],
)
def test_worse(before, now, told):
    assert port_losses.worse({"3": before}, {} if now is None else {"3": now}) == told


def test_chips_in_their_order():
    before = {str(chip): "UP -" for chip in (10, 9, 100, 1)}
    assert port_losses.worse(before, {}) == ["the link of chip %d is unknown" % chip for chip in (1, 9, 10, 100)]
