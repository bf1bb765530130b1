# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device nodes of chips and of virtual NPUs."""

from __future__ import annotations

import os
import re


def numbers(fs="", prefix="davinci"):
    """The numbers N of the nodes /dev/davinciN, sorted. With the prefix vdavinci those of virtual NPUs, which start at 100."""
    try:
        names = os.listdir(fs + "/dev")
    except OSError:
        return []
    found = (re.match(prefix + r"([0-9]+)\Z", name) for name in names)
    return sorted(int(match.group(1)) for match in found if match)
