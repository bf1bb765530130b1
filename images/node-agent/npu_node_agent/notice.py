# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Informational Events about problems that prevent the agent from working."""

from __future__ import annotations

import functools
import hashlib
import logging
from typing import Optional

from .background import Background
from .changed import Changed
from .kube import Api, ApiError
from .report import EVENTS, new_event, rfc3339_now

log = logging.getLogger(__name__)

_RETRY = 30.0  # seconds
_LIMIT = 60  # seconds for one round of calls


class Notices:
    """Sends the newest notice to the API server. Does nothing without ``api`` or ``node``."""

    def __init__(self, api: Optional[Api], node: str, changed: Changed) -> None:
        self._api = api
        self._node = node
        self._changed = changed
        self._pending: Optional[tuple[str, str, str]] = None
        self._background = Background("notice")

    def tell(self, reason: str, message: str) -> None:
        """Create an Event with ``reason`` (a word) and ``message``. Replaces one that has not been sent yet."""
        self._pending = (reason, message, rfc3339_now())
        self._changed.notify()

    async def run(self) -> None:
        """Send notices until cancelled."""
        while True:
            await self._changed.until(lambda: bool(self._api and self._node and self._pending))
            api, told = self._api, self._pending
            assert api is not None and told is not None  # that was waited for
            try:
                await self._background.call(functools.partial(self._post, api, *told), _LIMIT)
            except (OSError, ApiError, ValueError, KeyError, RuntimeError) as exc:
                log.warning("cannot create an Event, retrying: %s", exc)
                await self._changed.until(lambda: self._pending != told, _RETRY)
                continue
            if self._pending == told:
                self._pending = None

    def _post(self, api: Api, reason: str, message: str, since: str) -> None:
        node = api.request("GET", "/api/v1/nodes/" + self._node)
        name = "%s.npu-agent.%s" % (self._node[:200], hashlib.sha256((reason + since).encode()).hexdigest()[:12])
        try:
            api.request("POST", EVENTS, new_event(node, name, reason, message, since))
        except ApiError as exc:
            if exc.status != 409:  # it already exists: only the response was lost
                raise
