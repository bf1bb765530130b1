# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence of a host: the largest generation of a maintenance that has been at it. Older runs are refused."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.files import read_object

FENCE = "/var/lib/npuops/maintenance"


def generation(fs=""):
    """0 if no maintenance has been at the host, or its file is damaged."""
    number = (read_object(fs + FENCE) or {}).get("generation")
    return number if isinstance(number, int) else 0
