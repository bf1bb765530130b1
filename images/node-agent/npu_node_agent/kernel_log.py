# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of the kernel log that say that a chip has failed, long before a probe notices.

The words are those of the driver (hicann/driver: ``hb_host.c``, ``ascend_ub_main_adapt.c``) and of Linux (in ``drivers/pci``:
``pcie/aer.c`` and ``hotplug/pciehp_ctrl.c``).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from typing import Optional

from .hints import Hints

log = logging.getLogger(__name__)

_INTERVAL = 1.0  # seconds between two reads; a read without new records is one system call
_MOST_RECORDS = 1000  # for each read: those that a flood adds beyond that are skipped
_RECORD = 16384  # bytes; the kernel refuses to split a record, and none is longer than 8 KiB
_LONGEST = 200  # characters of a line that are shown

_FAILED = re.compile(
    rb"heart ?beat (?:is )?lost"
    rb"|AER:.*\bUncorrect(?:ed|able) \((?:Non-)?Fatal\)"
    rb"|pciehp: .*(?:Link Down|Card not present)"
)


class KernelLog:
    """Follows ``/dev/kmsg`` at ``path`` from its end. A node whose log cannot be read is served without it."""

    def __init__(self, path: str, hints: Hints, interval: float = _INTERVAL) -> None:
        self._path = path
        self._hints = hints
        self._interval = interval

    async def run(self) -> None:
        """Follow it until cancelled."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as exc:
            log.warning("the kernel log is not read: %s: %s", self._path, exc.strerror)
            await asyncio.Event().wait()
            return
        try:
            _to_end(descriptor)
            while True:
                line = _first_failure(descriptor)
                if line is not None:
                    self._hints.tell("kernel: %s" % line)
                await asyncio.sleep(self._interval)
        finally:
            os.close(descriptor)


def _first_failure(descriptor: int) -> Optional[str]:
    """The first new line that names a failure; reads to the end."""
    found: Optional[str] = None
    for _ in range(_MOST_RECORDS):
        try:
            records = os.read(descriptor, _RECORD)
        except BlockingIOError:
            return found
        except OSError as exc:
            if exc.errno != errno.EPIPE:  # older records were overwritten, and the next read returns the oldest one left
                raise
            continue
        if not records:
            return found
        for record in records.splitlines():
            # "priority,number,time,flags;text"; lines with a blank first are properties of the record before.
            text = record.partition(b";")[2]
            if found is None and not record.startswith(b" ") and _FAILED.search(text):
                found = text.decode("ascii", "backslashreplace")[:_LONGEST]
    _to_end(descriptor)
    return found


def _to_end(descriptor: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_END)
