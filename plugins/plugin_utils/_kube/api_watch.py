# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a change of objects, with a watch where the account may use one.

A watch is a hint here: it says when to look again, and the look decides. Without the permission, during an outage, or with a proxy
that holds events back, the caller looks as often as it would have without a watch, or at the latest after the limit that it sets.
It does so, too, after a watch that reported at once, and where another one would.
"""

from __future__ import annotations

import random
from typing import Any, Unpack

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.stream import Stream
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Objects, Selectors

_MOST_FAILURES = 3  # in a row, after which there is no watch: each may have taken seconds


class Watch:
    """The objects of one collection that a caller waits for. One connection at most, which lasts from one wait to the next."""

    def __init__(self, cluster: AnyCluster, clock: Clock, path: str, **selectors: Unpack[Selectors]) -> None:
        """``path``: of the collection; ``selectors``: which of its objects, as for a list."""
        self._cluster, self._clock, self._path, self._selectors = cluster, clock, path, selectors
        self._version: str | None = None  # of the objects when they were last read
        self._stream: Stream | None = None
        self._since: str | None = None  # the version from which the stream reports changes
        self._reported: str | None = None  # the version from which a stream has reported something, if only that it is too old
        self._hasty = False  # whether the last stream has reported at once
        self._failures = 0  # in a row

    def list(self) -> Objects:
        """The objects now. The next wait is for a change after this."""
        self._version = None
        return list(kube_client.Cluster.each(self, self._path, **self._selectors))

    def request(self, method: str, path: str, **arguments: Any) -> Any:
        """As of the cluster; notes the version of what is listed."""
        answer = self._cluster.request(method, path, **arguments)
        self._version = self._version or answer.get("metadata", {}).get("resourceVersion")
        return answer

    def read(self, version: str | None) -> None:
        """The caller read the one object of the collection that it waits for, which had the resource ``version``."""
        self._version = version

    def wait(self, pause: float, least: float, most: float, spread: float = 0.0) -> bool:
        """Sleep until the objects change, but for ``least`` seconds, and for ``most`` seconds at most.

        ``spread``: seconds over which those that wait for the same change go on. Without a watch, sleep for ``pause`` seconds.
        Return whether the objects may have changed.
        """
        hasty, self._hasty = self._hasty, False
        stream = None if hasty else self._opened()
        if stream is None:
            self._clock.sleep(pause)
            return True
        least = min(least, most)
        self._clock.sleep(least)
        self._hasty = stream.arrived(0)
        if not self._hasty and not stream.arrived(most - least):
            return False
        self._reported = self._since
        self.end()
        self._clock.sleep(random.uniform(0, spread))
        return True

    def end(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _opened(self) -> Stream | None:
        if self._stream is not None and self._since == self._version:
            return self._stream
        self.end()
        # What a stream has reported from a version, the next one would report at once: that the history is shorter, for example.
        if self._failures >= _MOST_FAILURES or self._version in (None, self._reported):
            return None
        try:
            self._stream = self._cluster.stream(self._path, self._version, **self._selectors)
            self._failures = 0 if self._stream is not None else _MOST_FAILURES
        except NpuError as exc:
            # An outage is for the next look to report. A permission that is missing now will be missing then.
            self._failures = _MOST_FAILURES if "missing" in exc.details else self._failures + 1
        self._since = self._version
        return self._stream
