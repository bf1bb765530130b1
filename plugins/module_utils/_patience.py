# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time, and a cluster whose API server may be away for a while.

Runs on the controller. Private to npuops.ascend: no API, may change without notice.
"""

from __future__ import annotations

import time

from ansible_collections.npuops.ascend.plugins.module_utils import _cluster
from ansible_collections.npuops.ascend.plugins.module_utils._errors import NpuError

# Seconds without an answer after which a run gives up. What it has begun is finished by the next one.
API_PATIENCE = 600
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 5.0
_SHARE = 20


def pause_after(waited):
    """Seconds until the next look at something that has been waited for ``waited`` seconds: a twentieth of it, 1 to 5.

    So what is over soon is seen soon, and what lasts costs few looks and at most a twentieth more time.
    """
    return min(max(waited / _SHARE, _FIRST_PAUSE), _LONGEST_PAUSE)


class Clock:
    """The time; tests have their own."""

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class PatientCluster:
    """A Cluster that repeats what was not answered, and says so once per outage.

    A repeated write may find its own effect: with a resourceVersion that is a Conflict, a POST ends in one as well, a
    DELETE in NotFound. Whoever writes has to expect that anyway.
    """

    def __init__(self, cluster, say, clock, patience=API_PATIENCE):
        """``say(sentence)``; ``patience`` in seconds. ``impatient``: the Cluster itself."""
        self._cluster, self._say, self._clock, self._patience = cluster, say, clock, patience
        self.impatient = cluster

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def request(self, method, path, **arguments):
        return self._try(path, lambda: self._cluster.request(method, path, **arguments))

    def get(self, path, **params):
        return self._try(path, lambda: self._cluster.get(path, **params))

    # Page by page, so that an outage costs a page, and the memory of one is all it takes.

    def list(self, path, **selectors):
        return list(self.each(path, **selectors))

    def each(self, path, **selectors):
        return _cluster.Cluster.each(self, path, **selectors)

    def may(self, verb, resource, group="", namespace=None, name=None):
        return _cluster.Cluster.may(self, verb, resource, group, namespace, name)

    def merge_patch(self, path, body, **params):
        return self._try(path, lambda: self._cluster.merge_patch(path, body, **params))

    def _try(self, path, call):
        started, pause, away = self._clock.monotonic(), _FIRST_PAUSE, False
        while True:
            try:
                answer = call()
            except (_cluster.Unreachable, _cluster.TooManyRequests) as exc:
                # A refused eviction is an answer.
                refused = isinstance(exc, _cluster.TooManyRequests) and path.endswith("/eviction")
                if refused or self._clock.monotonic() - started >= self._patience:
                    raise
                if not away:
                    self._say("%s Trying again for %d s" % (exc.message, self._patience))
                away = True
            except NpuError:
                self._is_back(away)
                raise
            else:
                self._is_back(away)
                return answer
            self._clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _is_back(self, away):
        if away:
            self._say("the Kubernetes API answers again")
