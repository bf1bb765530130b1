# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that start Ansible stand in tests/unit/ansible: what a new ansible-core can break, and what takes long, is seen there."""

from __future__ import annotations

import re

from support.paths import CHECKOUT

UNIT = CHECKOUT / "tests" / "unit"
STARTS = re.compile(
    r"^from support(\.(canned_hosts|controller|preloaded|scripted) import |.* import .*\b(canned_hosts|controller|preloaded|scripted)\b)",
    re.MULTILINE,
)


def test_they_stand_in_a_folder_of_their_own():
    starting = {path for path in UNIT.rglob("test_*.py") if STARTS.search(path.read_text(encoding="utf-8"))}
    # The helpers themselves are tested with the others.
    assert starting - set((UNIT / "support").iterdir()) == set((UNIT / "ansible").glob("test_*.py"))
