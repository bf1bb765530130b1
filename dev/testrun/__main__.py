# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a suite: python dev/testrun test-all; main.py has the order."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testrun import CHECKOUT  # noqa: E402
from testrun.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(CHECKOUT, sys.argv[1:], dict(os.environ)))
