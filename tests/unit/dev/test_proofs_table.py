# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CONTRIBUTING.md says in which suite the proof of each promise is, and each is in one."""

from __future__ import annotations

import sys

import pytest

from support.paths import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "dev"))

import proofs_table  # noqa: E402


def test_the_table_is_up_to_date():
    guide = proofs_table.GUIDE.read_text(encoding="utf-8")
    assert proofs_table.page(guide) == guide, "run make proofs"


UNIT, LAB, VERIFIED = ("tests/unit/test_a.py", "test_a"), ("tests/lab/test_a.py", "test_a"), ("tests/lab/test_b.py", "test_b")


@pytest.mark.parametrize(
    "proofs, marked, scenario, expected",
    [
        ([UNIT], set(), "heal", "`make test`"),
        ([LAB], {LAB}, "heal", "`make test`"),
        ([VERIFIED], set(), "default", "`make test`"),
        ([VERIFIED], set(), "heal", "`make test-all`"),
        ([LAB, VERIFIED], {LAB}, "heal", "`make test`; more of it `make test-all`"),
    ],
)
def test_a_suite(proofs, marked, scenario, expected):
    assert proofs_table.suite(proofs, marked, {VERIFIED[0]: {scenario}}) == expected
