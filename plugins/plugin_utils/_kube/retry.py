# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose API server may be away for a while."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, Unpack

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.clock import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.stream import Stream
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object, Objects, Selectors

# Seconds without an answer after which a run gives up. What it has begun is finished by the next one.
API_RETRY_SECONDS = 600
# And those for a request that fails while the server answers others.
OBJECT_RETRY_SECONDS = 20
# And those for credentials or rights that are refused in the middle of a maintenance: an API server that has just started may not
# know them yet.
DENIAL_RETRY_SECONDS = 60
_NODES = "/api/v1/nodes"
# What decides whether there is an API server: nothing can go on without Nodes and the Lease, and hardly anything comes between
# it and them.
_DECIDING = (_NODES, "/apis/coordination.k8s.io/", "/version")
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 5.0
_GATHER = 0.2
_SHARE = 20
_LOOKS = 20  # a second
# What an API server that has not read its caches yet says with a 403.
_STARTING = "not yet ready to handle request"


def pause_after(waited: float, longest: float = _LONGEST_PAUSE, at_once: int = 1) -> float:
    """Seconds until the next look at something that has been waited for ``waited`` seconds: a twentieth of it, 1 to ``longest``.

    So what is over soon is seen soon, and what lasts costs few looks and at most a twentieth more time. Where more than twenty wait
    ``at_once``, together they look twenty times a second at most: with 100 of them, each every 5 seconds.
    """
    return min(max(waited / _SHARE, at_once / _LOOKS, _FIRST_PAUSE), longest)


def gather_seconds(at_once: int) -> float:
    """Seconds for which a watch of one object gathers its changes before the next look, where so many wait ``at_once``."""
    return max(_GATHER, at_once / _LOOKS)


def limit(seconds: float) -> float:
    """What a user set as a limit: 0 is none."""
    return seconds or float("inf")


class RetryingCluster:
    """A Cluster that repeats what was not answered, and says so once per outage.

    An outage is when Nodes and Leases cannot be had either. Anything else that fails does so alone, for which an admission
    webhook may be to blame: that is _kube.client.Failing, an answer about this one object, after a few tries. For an eviction,
    it is raised at once: a drain has its own pace and limit.

    Who is in the middle of something also waits for credentials and rights that are refused, unless that lasted before.

    A repeated write may find its own effect: with a resourceVersion, or for a POST, that is a Conflict; for a DELETE, it is
    NotFound. Callers have to expect that anyway.
    """

    def __init__(
        self,
        cluster: AnyCluster,
        say: Callable[[str], None],
        clock: Clock,
        retry_seconds: float = API_RETRY_SECONDS,
        object_retry_seconds: float = OBJECT_RETRY_SECONDS,
        denial_retry_seconds: float = 0,
    ) -> None:
        """``say(sentence)``; for how long an outage, what fails alone, and what is denied (401, 403), is retried.
        ``without_retries``: the Cluster itself."""
        self._cluster, self._say, self.clock = cluster, say, clock
        self._retry_seconds, self._object_retry_seconds = retry_seconds, object_retry_seconds
        self._denial_retry_seconds, self._denied = denial_retry_seconds, set[str]()
        self.without_retries = cluster

    @classmethod
    def of(cls, cluster: kube_client.Cluster, say: Callable[[str], None]) -> RetryingCluster:
        """By the clock of the ``cluster``."""
        return cls(cluster, say, cluster.clock)

    @property
    def retrying_outages_only(self) -> RetryingCluster:
        """The same, but what fails alone is raised at once: for callers with many objects."""
        return RetryingCluster(self._cluster, self._say, self.clock, self._retry_seconds, 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def request(self, method: str, path: str, **arguments: Any) -> Any:
        return self._try(method, path, lambda: self._cluster.request(method, path, **arguments))

    def get(self, path: str, **params: Any) -> Object | None:
        return self._try("get", path, lambda: self._cluster.get(path, **params))

    # Page by page, so that an outage costs a page, and the memory of one is all it takes.

    def list(self, path: str, **selectors: Unpack[Selectors]) -> Objects:
        return list(self.each(path, **selectors))

    def each(self, path: str, **selectors: Unpack[Selectors]) -> Iterator[Object]:
        return kube_client.Cluster.each(self, path, **selectors)

    def may(self, verb: str, resource: str, group: str = "", namespace: str | None = None, name: str | None = None) -> bool:
        return kube_client.Cluster.may(self, verb, resource, group, namespace, name)

    def pieces(self, path: str, **params: Any) -> Generator[bytes, None, None]:
        return self._cluster.pieces(path, **params)  # half of an answer cannot be repeated

    def stream(self, path: str, version: str, **selectors: Unpack[Selectors]) -> Stream | None:
        return self._cluster.stream(path, version, **selectors)  # who waits can do without

    def merge_patch(self, path: str, body: Object, **params: Any) -> Object:
        return self._try("patch", path, lambda: self._cluster.merge_patch(path, body, **params))

    def _try(self, method: str, path: str, call: Callable[[], Any]) -> Any:
        started, pause, away, alone_since = self.clock.monotonic(), _FIRST_PAUSE, False, None
        denied_since: float | None = None
        evicts = path.endswith("/eviction")
        while True:
            try:
                answer = call()
            except (kube_client.Unreachable, kube_client.TooManyRequests) as exc:
                busy, now = isinstance(exc, kube_client.TooManyRequests), self.clock.monotonic()
                if busy and evicts:  # a refused eviction is an answer
                    self._is_back(away)
                    raise
                if isinstance(exc, kube_client.Unreachable) and self._fails_alone(path):
                    away = self._is_back(away)
                    alone_since = now if alone_since is None else alone_since
                    if evicts or now - alone_since >= self._object_retry_seconds:
                        raise _failing(method, path, exc)
                else:
                    alone_since = None
                    if now - started >= self._retry_seconds:
                        exc.outage = True
                        raise
                    if not away:
                        self._say("%s Trying again for %d s" % (exc.message, self._retry_seconds))
                    away = True
            except NpuError as exc:
                away, now = self._is_back(away), self.clock.monotonic()
                what = _denied(exc)
                if what is None or what in self._denied or not self._denial_retry_seconds:
                    raise
                if denied_since is None:
                    denied_since = now
                    self._say("%s Trying again for %d s" % (exc.message, self._denial_retry_seconds))
                if now - denied_since >= self._denial_retry_seconds:
                    self._denied.add(what)
                    raise
            else:
                self._is_back(away)
                return answer
            self.clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _fails_alone(self, path: str) -> bool:
        """Whether the server is there for others than ``path``, which has just failed."""
        if path.startswith(_DECIDING):
            return False
        try:
            self._cluster.request("get", _NODES, limit=1)
        except (kube_client.Unreachable, kube_client.TooManyRequests):
            return False
        except NpuError:
            pass  # that this user may not see them is an answer, too
        return True

    def _is_back(self, away: bool) -> bool:
        if away:
            self._say("the Kubernetes API answers again")
        return False


def _denied(exc: NpuError) -> str | None:
    """What the API server denies, if it may be that it only does not know better yet: all, or one permission."""
    if isinstance(exc, kube_client.Unauthorized):
        return ""
    if exc.details.get("missing"):
        return repr(exc.details["missing"])
    return exc.message if _STARTING in exc.message else None


def _failing(method: str, path: str, exc: kube_client.Unreachable) -> kube_client.Failing:
    if exc.cause is None:
        return kube_client.Failing(exc.message)
    return kube_client.Failing(
        "The Kubernetes API answers other requests, but not %s %s: %s. Perhaps an admission webhook does not answer in time:"
        " kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations" % (method.upper(), path, exc.cause)
    )
