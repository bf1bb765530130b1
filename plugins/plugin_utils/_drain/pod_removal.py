# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod that is to go, and how long that is waited for."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

_LIMIT = 60  # seconds
_LONGEST_GRACE = 30  # seconds, the default of Kubernetes


class PodRemoval:
    """Look by look. ``why``: what keeps the pod, as a phrase, when it is over; None when there is no such pod any more."""

    def __init__(self, cluster: AnyCluster, path: str, clock: Clock) -> None:
        self._cluster, self._path, self._clock = cluster, path, clock
        self._deadline = clock.monotonic() + _LIMIT
        self._asked = False
        self.why: str | None = None

    def over(self) -> bool:
        """Look, ask for its deletion the first time, and return whether there is nothing left to wait for."""
        if self.why is not None and self._clock.monotonic() >= self._deadline:
            return True
        try:
            pod = self._cluster.get(self._path)
            if pod is None:
                return self._gone()
            if not self._asked:
                self._cluster.request("delete", self._path, body=_options(pod))
                self._asked = True
            self.why = "still exists %d s after it was deleted" % _LIMIT
        except kube_client.NotFound:
            return self._gone()
        except kube_client.Failing as exc:
            self.why = "cannot be removed: " + exc.message
        except (kube_client.Refused, kube_client.Forbidden) as exc:
            self.why = "cannot be removed: " + exc.message
            return True
        return False

    def _gone(self) -> bool:
        self.why = None
        return True


def _options(pod: Object) -> Object | None:
    """A pod that has run its test, or never will, holds its chips and its name no longer than it is waited for."""
    period = pod["spec"].get("terminationGracePeriodSeconds")
    if not isinstance(period, int) or period <= _LONGEST_GRACE:
        return None
    return {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": _LONGEST_GRACE}
