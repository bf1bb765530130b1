# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether another run lives that changes an object every few seconds as long as it does.

What counts is how often this run saw no change, not for how many seconds: while the API server is away, no run can show anything,
and where each answer takes long, a sign of life comes as late as a look. The clocks of two machines are never compared.
"""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

POLL_SECONDS = 2.0
# Looks in a row without a change after which the run is dead. It has to show itself in a third of that time.
_DEAD_LOOKS = 15
# At least so long, if the API server is not away meanwhile.
DEAD_SECONDS = _DEAD_LOOKS * POLL_SECONDS
# However often the API server was away.
_MOST_LOOKS = 4 * _DEAD_LOOKS


class SignOfLife:
    """``path``: the object that the run changes. ``look()`` every POLL_SECONDS, then ``is_dead``."""

    def __init__(self, cluster: AnyCluster, path: str, sign: object) -> None:
        """``sign``: what was seen of it so far."""
        self._cluster, self._path, self._sign = cluster, path, sign
        self._looks, self._enough = 0, _DEAD_LOOKS

    def look(self) -> Object | None:
        try:
            return self._cluster.without_retries.get(self._path)
        except (kube_client.Unreachable, kube_client.TooManyRequests):
            found = self._cluster.get(self._path)
            # From now on, the run has as long as without the outage to show that it lives.
            self._enough = min(self._looks + _DEAD_LOOKS, _MOST_LOOKS)
            return found

    def is_dead(self, sign: object) -> bool:
        """``sign``: what the last look saw; it changes as long as the run lives."""
        if sign != self._sign:
            self._sign, self._looks, self._enough = sign, 0, _DEAD_LOOKS
            return False
        self._looks += 1
        return self._looks >= self._enough
