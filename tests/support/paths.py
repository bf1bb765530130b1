# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things are in the checkout, for tests."""

from __future__ import annotations

import pathlib

TESTS = pathlib.Path(__file__).resolve().parents[1]  # on the path of every program that imports support
SUPPORT = TESTS / "support"
CHECKOUT = TESTS.parent
UNIT = TESTS / "unit"
FIXTURES = UNIT / "fixtures"
