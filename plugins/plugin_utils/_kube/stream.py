# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the API server to a watch: a connection over which it reports changes."""

from __future__ import annotations

import select
from typing import Any

_MILLISECONDS = 1000


class Stream:
    """Reports only that something arrived. What arrived is never read, so its size and content do not matter."""

    def __init__(self, answer: Any) -> None:
        """``answer``: a urllib3.HTTPResponse whose body was not read. Raises OSError if it has no connection to wait on."""
        self._answer = answer
        self._ready = select.poll()
        self._ready.register(answer.fileno(), select.POLLIN)
        self._came_with_headers = _is_buffered(answer)

    def arrived(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for an event, or the end of the connection. Return whether one has come."""
        return self._came_with_headers or bool(self._ready.poll(seconds * _MILLISECONDS))

    def close(self) -> None:
        self._answer.close()
        self._answer.release_conn()


def _is_buffered(answer: Any) -> bool:
    """Whether more than the headers was received with them. The socket itself would stay silent then."""
    connection, reader = getattr(answer.connection, "sock", None), getattr(getattr(answer, "_fp", None), "fp", None)
    if connection is None or reader is None:
        return False
    limit = connection.gettimeout()
    connection.settimeout(0)
    try:
        return bool(reader.peek(1))
    except OSError:  # TLS has received no whole record
        return False
    finally:
        connection.settimeout(limit)
