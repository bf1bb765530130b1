# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When maintenances may begin: npu_upgrade_window.

An entry opens on each of its days at ``from``, and closes at ``to``, or at ``to`` of the next day if that is not later than
``from``. Both are times of its time zone. One that the change to daylight saving time skips is the moment of the change; of one
that comes twice when that ends, the first one counts.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\Z")
_MIDNIGHT = "24:00"  # the end of a day
# Days. More than a week: daylight saving time may skip the only hour of it.
_AHEAD = 16
_NEVER = 14 * 86400.0  # seconds; what is open for so long does not close


@dataclasses.dataclass(frozen=True)
class Moment:
    """A time, as the entry tells it that it is of. ``seconds``: since 1970."""

    seconds: float
    zone: datetime.tzinfo

    def __str__(self) -> str:
        there = datetime.datetime.fromtimestamp(self.seconds, self.zone)
        # Not by the locale of the controller.
        return "%s %s %s" % (DAYS[there.weekday()].capitalize(), there.strftime("%Y-%m-%d %H:%M"), self.zone)


@dataclasses.dataclass(frozen=True)
class WindowState:
    """``opens``: when it does next; ``closes``: when it does, or will after that. None: not within two weeks."""

    open: bool
    opens: Moment | None
    closes: Moment | None

    @property
    def refusal(self) -> str:
        """The sentences with which a node is given back while it is closed."""
        when = "it opens at %s" % self.opens if self.opens else "it does not open within two weeks"
        return "The maintenance window (npu_upgrade_window) is closed: %s. Run again then." % when

    def told(self, ends: float | None = None) -> str:
        """A clause for a plan. ``ends``: when the rollout is estimated to."""
        if self.open and self.closes is None:
            return "the maintenance window is open, and does not close within two weeks"
        if self.open:
            text = "the maintenance window is open until %s" % self.closes
            text += ", and opens again at %s" % self.opens if self.opens else ""
            if self.closes and ends is not None and ends > self.closes.seconds:
                text += "; the rollout is estimated to take longer, and nodes that have not begun by then are deferred"
            return text
        if self.opens is None:
            return "the maintenance window is closed, and does not open within two weeks: no maintenance begins"
        until = " and closes at %s" % self.closes if self.closes else ""
        return "the maintenance window is closed: it opens at %s%s. No maintenance begins before" % (self.opens, until)

    def result(self) -> dict[str, Any]:
        times = {"opens": self.opens, "closes": self.closes}
        return {"open": self.open, **{name: when and maintenance_record.rfc3339(when.seconds) for name, when in times.items()}}


class Entry(NamedTuple):
    """``days``: of the week, 0 = Monday, on which it opens; ``begin`` and ``end``: minutes of the day."""

    days: frozenset[int]
    begin: int
    end: int
    zone: datetime.tzinfo

    def around(self, now: float) -> Iterator[tuple[Moment, Moment]]:
        """Each time that it is open, from the one that may have begun yesterday."""
        today = datetime.datetime.fromtimestamp(now, self.zone).date()
        for number in range(-1, _AHEAD):
            day = today + datetime.timedelta(number)
            if day.weekday() in self.days:
                last = day if self.begin < self.end else day + datetime.timedelta(1)
                begin, end = _at(day, self.begin, self.zone), _at(last, self.end, self.zone)
                # Daylight saving time may skip all of it.
                if begin < end:
                    yield Moment(begin, self.zone), Moment(end, self.zone)


@dataclasses.dataclass(frozen=True)
class Window:
    """It is open while any of its ``entries`` is; without one, always."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, setting: Sequence[Mapping[str, Any]]) -> Window:
        """From the complete settings. Raises NpuError for what is no time, or no time zone."""
        return cls(tuple(_entry("npu_upgrade_window[%d]" % number, given) for number, given in enumerate(setting)))

    def state(self, now: float) -> WindowState | None:
        """How it is ``now``, in seconds since 1970; None where it is always open."""
        if not self.entries:
            return None
        times = self._times(now)
        opens = next((begin for begin, _end in times if begin.seconds > now), None)
        for begin, end in times:
            if begin.seconds <= now < end.seconds:
                return WindowState(True, opens, end if end.seconds - now < _NEVER else None)
        return WindowState(False, opens, next((end for begin, end in times if begin == opens), None))

    def refusal(self, now: float) -> str | None:
        """Why no maintenance may begin ``now``, or None."""
        state = self.state(now)
        return None if state is None or state.open else state.refusal

    def _times(self, now: float) -> list[tuple[Moment, Moment]]:
        """When it is open, in their order: what overlaps, or follows without a pause, is one."""
        times: list[tuple[Moment, Moment]] = []
        for begin, end in sorted((pair for entry in self.entries for pair in entry.around(now)), key=_seconds):
            if times and begin.seconds <= times[-1][1].seconds:
                begin, end = times[-1][0], max(times.pop()[1], end, key=lambda moment: moment.seconds)
            times.append((begin, end))
        return times


def _seconds(pair: tuple[Moment, Moment]) -> tuple[float, float]:
    return pair[0].seconds, pair[1].seconds


def _at(day: datetime.date, minutes: int, zone: datetime.tzinfo) -> float:
    """Seconds since 1970 of that time of the ``day``. ``minutes``: up to 24 hours."""
    if minutes == 24 * 60:
        day, minutes = day + datetime.timedelta(1), 0
    there = datetime.datetime.combine(day, datetime.time(*divmod(minutes, 60)), zone)
    first, second = int(there.timestamp()), int(there.replace(fold=1).timestamp())
    if first <= second:
        return first
    # No clock there shows it. With fold=1 it is taken by the offset after the change, so before that.
    while first - second > 1:
        middle = (first + second) // 2
        if _offset(middle, zone) == _offset(second, zone):
            second = middle
        else:
            first = middle
    return first


def _offset(seconds: float, zone: datetime.tzinfo) -> datetime.timedelta | None:
    return datetime.datetime.fromtimestamp(seconds, zone).utcoffset()


def _entry(name: str, given: Mapping[str, Any]) -> Entry:
    begin, end = (_minutes("%s.%s" % (name, key), given[key]) for key in ("from", "to"))
    if begin == end:
        raise NpuError("%s.from and %s.to are both %s: for the whole day, give neither of them." % (name, name, given["to"]))
    if begin == 24 * 60:
        raise NpuError("%s.from is '24:00', the end of a day: it must be a time from 00:00 to 23:59." % name)
    return Entry(frozenset(map(DAYS.index, given["days"] or DAYS)), begin, end, _zone(name, given["timezone"]))


def _minutes(name: str, text: str) -> int:
    """Minutes since midnight."""
    if text == _MIDNIGHT:
        return 24 * 60
    found = _TIME.match(text)
    if found:
        return int(found[1]) * 60 + int(found[2])
    # YAML has a notation for numbers to the base of 60.
    hint = ', in quotes: YAML takes 22:00 for the number 1320. Write "22:00"' if text.isdigit() else ""
    raise NpuError("%s is %r; it must be a time from 00:00 to 24:00 with two digits each%s." % (name, text[:64], hint))


def _zone(name: str, text: str) -> datetime.tzinfo:
    if text == "UTC":
        return datetime.timezone.utc
    try:
        return zoneinfo.ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise NpuError(
            "%s.timezone is %r, which this machine does not know: it must be a name of the IANA time zone database, such as"
            " Asia/Shanghai or UTC. If it is one, install the package tzdata on the control machine, or in the execution"
            " environment." % (name, text[:64])
        ) from None
