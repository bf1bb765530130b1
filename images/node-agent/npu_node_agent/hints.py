# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons to look at the chips now instead of at the next probe. They decide nothing: what npu-smi then lists does."""

from __future__ import annotations

import logging

from .changed import Changed

log = logging.getLogger(__name__)


class Hints:
    """Counts the hints of all sources; a task that waits for one compares the count."""

    def __init__(self, changed: Changed) -> None:
        self._changed = changed
        self.count = 0

    def tell(self, reason: str) -> None:
        """Something may have happened to a chip."""
        log.warning("%s; probing the chips now", reason)
        self.count += 1
        self._changed.notify()
