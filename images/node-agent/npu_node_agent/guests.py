# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many connections strangers may hold, and for how long."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter
from typing import Iterator

# A kubelet's probe or a scrape takes milliseconds; a second or third Prometheus still has room.
MOST = 64
# More than every file the agent itself ever needs, and not so many that a program which closes them all takes long.
_FILES = 65536


class Guests:
    """The connections being served, at most ``most``.

    One more is let in, and the oldest one of the address that holds most is thrown out: who keeps connections open is in the
    way of nobody but himself.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._inside: dict[asyncio.WriteTransport, str] = {}  # transport -> address, the oldest first
        self.thrown_out = 0

    @contextlib.contextmanager
    def admit(self, transport: asyncio.WriteTransport) -> Iterator[None]:
        """Count ``transport`` in, and at the end of the block out again; by then its connection is gone."""
        if len(self._inside) >= self._most:
            self._throw_one_out()
        peer = transport.get_extra_info("peername")
        self._inside[transport] = str(peer[0]) if peer else ""
        try:
            yield
        finally:
            self._inside.pop(transport, None)
            transport.abort()

    def _throw_one_out(self) -> None:
        ((address, _),) = Counter(self._inside.values()).most_common(1)
        oldest = next(transport for transport, holder in self._inside.items() if holder == address)
        del self._inside[oldest]
        self.thrown_out += 1
        oldest.abort()


def raise_file_limit() -> None:
    """Let the agent open as many files as it may: the soft limit is a default from times of fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
