# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time, by one clock for all runs: that of the API server, which each of its answers tells."""

from __future__ import annotations

import datetime
import email.utils
import time

# Seconds. An answer tells whole seconds, and one that took longer than this does not tell when.
_APART = 5.0

# 2020 and 2200, in seconds since 1970: what any API server takes for the time, and what records can have.
_FIRST, _LAST = 1_577_836_800, 7_258_118_400


class Clock:
    """``now()`` is what records and annotations have: several machines write those, and compare them. A machine whose clock is
    right is believed; one whose clock differs from that of the API server goes by the server's, as soon as it has answered. Tests
    have their own."""

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self._ahead = 0.0  # seconds by which the server's clock is ahead of the machine's

    def now(self) -> float:
        """Seconds since 1970."""
        return self.wall() + self._ahead

    def heard(self, date: str | None, took: float) -> None:
        """An answer of the API server has just come. ``date``: its header Date, None without one; ``took``: seconds."""
        try:
            told = email.utils.parsedate_to_datetime(date or "")
            # HTTP's dates are UTC. Without a zone, Python takes one for the time of this machine's zone.
            server = (told if told.tzinfo else told.replace(tzinfo=datetime.timezone.utc)).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        if not _FIRST <= server < _LAST:
            return
        ahead = server + 0.5 - self.wall()
        # Within that, two looks would differ for no reason.
        if took <= _APART and abs(ahead - self._ahead) > _APART:
            self._ahead = ahead if abs(ahead) > _APART else 0.0
