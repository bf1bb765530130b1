# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chips that a host had when install recorded them, and has no longer."""

from __future__ import annotations

import time

from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory
from ansible_collections.npuops.ascend.plugins.module_utils._host import boot as host_boot


def chips_before(functions, fs=""):
    """What install has recorded of the chips, as {count, gone, boot}: how many there were, 0 if unknown; the PCI addresses of those
    that are missing among ``functions``, as of chip_memory.gone; when the host booted (RFC 3339)."""
    try:
        remembered = chip_memory.read(fs + chip_memory.PATH)
    except OSError:
        remembered = {}
    return {
        "count": sum(remembered.values()),
        "gone": chip_memory.gone(remembered, chip_memory.of(functions)),
        "boot": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - host_boot.uptime(fs))),
    }
