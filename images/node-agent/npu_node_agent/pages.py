# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP server for Prometheus and for the kubelet's probes."""

from __future__ import annotations

import asyncio
from typing import Callable

from .guests import Guests
from .metrics import Metrics

_LONGEST_REQUEST = 16384
_TIMEOUT = 5  # seconds for receiving a request and sending the response


async def serve(address: tuple, metrics: Metrics, settled: Callable[[], bool]) -> None:
    """Serve GET /metrics, /healthz (the process is alive) and /readyz (``settled``) on ``address`` (host, port) until cancelled.

    All pods of the cluster may be able to connect, so the number and the duration of connections are limited. Raises OSError if it
    cannot listen.
    """
    guests = Guests()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with guests.admit(writer.transport):
            metrics.connections_refused.set(guests.closed)
            try:
                async with asyncio.timeout(_TIMEOUT):
                    request = await reader.readuntil(b"\r\n\r\n")
                    # Waits until the last byte is sent, so that the time limit also applies to clients that do not read.
                    writer.transport.set_write_buffer_limits(0)
                    writer.write(_answer(request, metrics, settled))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
            except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                pass

    server = await asyncio.start_server(handle, *address, limit=_LONGEST_REQUEST)
    async with server:
        await server.serve_forever()


def _answer(request: bytes, metrics: Metrics, settled: Callable[[], bool]) -> bytes:
    method, _, rest = request.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method != b"GET":
        status, body = "405 Method Not Allowed", "only GET is supported\n"
    elif path == b"/metrics":
        status, body = "200 OK", metrics.render()
    elif path == b"/healthz":
        status, body = "200 OK", "ok\n"
    elif path == b"/readyz" and settled():
        status, body = "200 OK", "ok\n"
    elif path == b"/readyz":
        status, body = "503 Service Unavailable", "waiting for device plugins to register again\n"
    else:
        status, body = "404 Not Found", "not found; use /metrics, /healthz or /readyz\n"
    content = body.encode("utf-8")
    head = (
        "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    )
    return (head % (status, len(content))).encode("ascii") + content
