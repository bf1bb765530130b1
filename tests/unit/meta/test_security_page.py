# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/security.md names a test for each boundary, and each of them exists."""

from __future__ import annotations

import pathlib
import re

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (CHECKOUT / "docs" / "security.md").read_text(encoding="utf-8")


def test_the_tests_that_it_names_are_there():
    named = re.findall(r"`([a-z/_-]+\.py)::(test_\w+)`", PAGE)
    assert len(named) == PAGE.count("::") >= 20
    for path, name in named:
        assert re.search(r"^def %s\(" % name, (CHECKOUT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)


def test_every_part_names_one():
    parts = PAGE.split("\n## ")[2:]
    assert len(parts) == 18
    for part in parts:
        assert "* At worst" in part and "* Tests: `" in part, part.splitlines()[0]
