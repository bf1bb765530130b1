# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which chips serve, what is worse than before, and how many devices a node may offer then."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_health, npu_smi

from support.paths import UNIT


def chips(*words):
    return [{"npu": number, "chip": 0, "bus_id": "0000:0%d:00.0" % number, "health": word} for number, word in enumerate(words)]


def listed(name):
    text = (UNIT / "fixtures" / "npu-smi" / name).read_text(encoding="utf-8")
    return chip_health.view(npu_smi.parse_info(text)["chips"])


def test_one_critical_chip_of_two_on_a_card():
    found = listed("info_310P3_8chip_25.0.rc1_one_critical.txt")
    assert chip_health.told(found) == "NPU 4 chip 0 (0000:81:00.0): Critical"
    assert sum(map(chip_health.serves, found)) == 7
    before = chip_health.by_key(found)
    # Two chips have the same PCI address.
    assert len(before) == 8 and chip_health.worse(before, found) == []
    found[4]["health"], found[5]["health"] = "OK", "Alarm"
    assert chip_health.worse(before, found) == ["NPU 4 chip 1 (0000:81:00.0) is Alarm, and was OK before"]
    assert chip_health.worse(before, found[1:]) == [
        "NPU 4 chip 1 (0000:81:00.0) is Alarm, and was OK before",
        "the chip 0000:01:00.0 is missing",
    ]


def test_cards_that_show_alarm_for_months_serve():
    found = listed("info_310B1_2card_23.0.5_alarm.txt")
    assert all(map(chip_health.serves, found)) and len(chip_health.ill(found)) == 2


@pytest.mark.parametrize(
    "before, now, is_worse",
    [
        ("OK", "OK", False),
        ("OK", "Warning", True),
        ("Warning", "Alarm", True),
        ("Alarm", "Critical", True),
        ("Critical", "UNKNOWN", True),
        ("Critical", "Critical", False),
        ("Alarm", "Warning", False),
        ("UNKNOWN", "Critical", False),
        ("Warning", "some new word", True),
    ],
)
def test_worse(before, now, is_worse):
    assert bool(chip_health.worse(chip_health.by_key(chips(before)), chips(now))) is is_worse


@pytest.mark.parametrize("before", [None, {}, chip_health.by_key(chips("OK"))])
def test_what_is_not_known_to_have_been_ok_is_not_worse(before):
    """npu-smi did not answer before the reboot, or did not list that chip."""
    now = chips("OK", "Critical")
    assert chip_health.worse(before, now) == []
    assert chip_health.unknown(before, now) == (now[1:] if before else now), before


def test_what_was_unknown_is_nothing_that_is_known():
    assert chip_health.unknown(chip_health.by_key(chips("UNKNOWN", "OK")), chips("OK", "OK")) == []


@pytest.mark.parametrize("word", ["\x1b[31mOK", "x" * 33, "{{ lookup('pipe', 'id') }}"])
def test_a_word_that_none_of_the_driver_prints_counts_as_unknown(word):
    (found,) = chip_health.view(chips(word))
    assert found["health"] == "UNKNOWN" and not chip_health.serves(found)


def test_the_fewest_devices():
    offers = {"huawei.com/Ascend910": 6, "huawei.com/Ascend910-10c.3cpu.32g": 4}
    assert chip_health.fewest(offers, chips(*["OK"] * 8)) == offers
    # Which chips the virtual NPUs are of is not known.
    assert chip_health.fewest(offers, chips("Warning", "Critical")) == {
        "huawei.com/Ascend910": 4,
        "huawei.com/Ascend910-10c.3cpu.32g": 0,
    }
    assert chip_health.fewest({}, chips("Critical")) == {}
