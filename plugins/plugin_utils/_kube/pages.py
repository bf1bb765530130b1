# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of a long list, each requested while the one before is decoded and read: the API server takes as long as we do."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import Object

# The metadata of a list come before its items.
_TOKEN = re.compile(r'\{"kind":"\w+","apiVersion":"[\w./]+","metadata":\{(?:"\w+":"?[\w-]*"?,)*"continue":"([\w=-]+)"')


class Ahead:
    """At most one page that was requested and not yet taken. What fails is left to the caller, whose own request has retries."""

    def __init__(self, ask: Callable[[str], str]) -> None:
        """``ask(token)`` returns the text of the page that the token continues with. Raises NpuError. It runs in a thread."""
        self._ask = ask
        self._token: str | None = None
        self._came: tuple[str, str] | None = None  # the last page that came, after its token
        self._thread: threading.Thread | None = None

    def begin(self, token: str) -> None:
        """Request the page, unless it is under way."""
        if token != self._token:
            self._token = token
            self._thread = threading.Thread(target=self._fetch, args=(token,), daemon=True)
            self._thread.start()

    def take(self, token: str | None) -> Object | None:
        """The page, when it has come; None if it was not requested, or without success. The next one is requested meanwhile."""
        if self._thread is None or token is None or token != self._token:
            return None
        self._thread.join()
        came, self._came, self._token = self._came, None, None
        if came is None or came[0] != token:
            return None
        text = came[1]
        following = _TOKEN.match(text)
        if following:
            self.begin(following[1])
        try:
            page = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return page if isinstance(page, dict) else None

    def _fetch(self, token: str) -> None:
        with contextlib.suppress(NpuError):
            self._came = (token, self._ask(token))
