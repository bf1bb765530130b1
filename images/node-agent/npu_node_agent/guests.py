# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A limit for the number of connections from other pods."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter
from typing import Iterator

# A probe of the kubelet or a scrape takes milliseconds, so this suffices for several Prometheus servers.
MOST = 64
# More than the agent ever needs, but few enough for programs that close all file descriptors.
_FILES = 65536


class Guests:
    """The open connections, at most ``most``.

    When another one arrives, the oldest connection of the address with the most connections is closed, so that a client that keeps
    connections open affects only itself.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._inside: dict[asyncio.WriteTransport, str] = {}  # transport -> address, the oldest first
        self.closed = 0

    @contextlib.contextmanager
    def admit(self, transport: asyncio.WriteTransport) -> Iterator[None]:
        """Register ``transport`` for the duration of the block, and close it at the end."""
        if len(self._inside) >= self._most:
            self._close_oldest()
        peer = transport.get_extra_info("peername")
        self._inside[transport] = str(peer[0]) if peer else ""
        try:
            yield
        finally:
            self._inside.pop(transport, None)
            transport.abort()

    def _close_oldest(self) -> None:
        ((address, _),) = Counter(self._inside.values()).most_common(1)
        oldest = next(transport for transport, holder in self._inside.items() if holder == address)
        del self._inside[oldest]
        self.closed += 1
        oldest.abort()


def raise_file_limit() -> None:
    """Raise the soft limit for open files, whose default is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
