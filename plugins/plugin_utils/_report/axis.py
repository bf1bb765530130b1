# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time axis of a report, and how times and durations are written. Times are seconds since 1970, texts are UTC."""

from __future__ import annotations

import time
from collections.abc import Iterator

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MOST_INTERVALS = 8
_INTERVALS = (
    (1, 2, 5, 10, 15, 30)
    + tuple(number * _MINUTE for number in (1, 2, 5, 10, 15, 30))
    + tuple(number * _HOUR for number in (1, 2, 3, 6, 12))
)
# Not strftime's, which depend on the locale of the user that runs Ansible.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Axis:
    """From ``begin`` to ``end``, both on a tick, ``intervals`` equal intervals between them."""

    def __init__(self, first: int, last: int) -> None:
        """An axis on which all from ``first`` to ``last`` has its place."""
        self.interval = next((step for step in _steps() if _intervals(first, last, step) <= _MOST_INTERVALS))
        self.intervals = _intervals(first, last, self.interval)
        self.begin = first // self.interval * self.interval
        self.end = self.begin + self.intervals * self.interval

    def percent(self, seconds: float) -> float:
        """How much of the axis so many seconds are."""
        return 100.0 * seconds / (self.end - self.begin)

    def place(self, when: int) -> float:
        return self.percent(when - self.begin)

    def ticks(self) -> list[tuple[int, str]]:
        """[(when, label)]."""
        marks = [self.begin + number * self.interval for number in range(self.intervals + 1)]
        return [(when, self._label(when)) for when in marks]

    def _label(self, when: int) -> str:
        if when % _DAY == 0:
            return day(when)
        return clock(when)[: 8 if self.interval < _MINUTE else 5]


def _steps() -> Iterator[int]:
    """Sensible intervals, small ones first, without end."""
    yield from _INTERVALS
    step = _DAY
    while True:
        yield step
        step *= 2


def _intervals(first: int, last: int, step: int) -> int:
    return max(1, -(-last // step) - first // step)


def clock(when: int) -> str:
    """10:04:59"""
    return time.strftime("%H:%M:%S", time.gmtime(when))


def day(when: int) -> str:
    """21 Nov"""
    moment = time.gmtime(when)
    return "%d %s" % (moment.tm_mday, _MONTHS[moment.tm_mon - 1])


def date(when: int) -> str:
    """21 Nov 2026"""
    return "%s %d" % (day(when), time.gmtime(when).tm_year)


def short(seconds: int) -> str:
    """0:42, 5:09 or 1:05:09."""
    minutes, rest = divmod(seconds, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return "%d:%02d:%02d" % (hours, minutes, rest) if hours else "%d:%02d" % (minutes, rest)


def words(seconds: int) -> str:
    """42 s, 5 min 9 s or 1 h 5 min."""
    minutes, rest = divmod(seconds, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    if hours:
        return "%d h %d min" % (hours, minutes) if minutes else "%d h" % hours
    if minutes:
        return "%d min %d s" % (minutes, rest) if rest else "%d min" % minutes
    return "%d s" % rest
