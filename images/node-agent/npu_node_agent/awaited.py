# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device plugins that a newly started agent waits for before it reports itself ready."""

from __future__ import annotations

import json
import logging
import os
import stat
import time

from .files import write_json

log = logging.getLogger(__name__)

# In the directory of the plugins' sockets, like the kubelet's checkpoint.
MEMORY = "npuops-offered.json"
_WAIT_SECONDS = 60.0  # seconds; a plugin may never come back


class Awaited:
    """The plugins whose devices the previous agent offered to the kubelet.

    They are known from their sockets, and from a file in the same directory, because a plugin that restarts at the same time as the
    agent has no socket. Until the kubelet has their devices again, it rejects pods, although the Node's status, which is updated
    every 10 s, may still count the devices.
    """

    def __init__(self, directory: str, own: str) -> None:
        """``directory``: that of the plugins; ``own``: the name of the agent's own socket in it."""
        self._directory = directory
        self._own = own
        self._missing: set[str] = set()
        self._offered: set[str] = set()
        self._until = 0.0

    def begin(self) -> None:
        """Determine the plugins to wait for. The time limit starts now."""
        self._missing = (self._sockets() | self._remembered()) - {self._own}
        self._until = time.monotonic() + _WAIT_SECONDS
        if self._missing:
            log.info("waiting for device plugins that were registered before: %s", ", ".join(sorted(self._missing)))

    @property
    def settled(self) -> bool:
        """Whether the kubelet has the devices of all of them, or the time limit has passed."""
        return not self._missing or time.monotonic() > self._until

    def offered(self, endpoint: str) -> None:
        """The kubelet has got the devices of the plugin that listens on ``endpoint``."""
        self._missing.discard(endpoint)
        if endpoint not in self._offered:
            self._offered.add(endpoint)
            self._remember()

    def _remember(self) -> None:
        """Write the plugins to the file. After the time limit, missing plugins are dropped from it."""
        names = self._offered | (set() if time.monotonic() > self._until else self._missing)
        try:
            write_json(os.path.join(self._directory, MEMORY), sorted(names))
        except OSError as exc:
            log.warning("cannot save the list of device plugins, so the agent may be ready too early after a restart: %s", exc)

    def _remembered(self) -> set[str]:
        try:
            with open(os.path.join(self._directory, MEMORY), encoding="utf-8") as stream:
                names = json.load(stream)
        except (OSError, ValueError):
            return set()
        return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()

    def _sockets(self) -> set[str]:
        """The names of the sockets in the directory, which may not exist."""
        try:
            with os.scandir(self._directory) as entries:
                return {entry.name for entry in entries if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)}
        except OSError:
            return set()
