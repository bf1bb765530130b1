# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NPU_TEST_SKEW=3600: the clock of the tests' process is so many seconds ahead of the clocks of the programs that they start, as
that of a controller whose clock is wrong."""

from __future__ import annotations

import os
import time

SKEW = float(os.environ.get("NPU_TEST_SKEW") or 0)
_time = time.time


def skew() -> None:
    """For the rest of the process."""
    if SKEW and time.time is _time:
        time.time = lambda: _time() + SKEW
