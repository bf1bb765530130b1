# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's own pods on two nodes that work together: whether the chips of one reach those of the other."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Generator

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance.collective_pairs import Pair
from ansible_collections.npuops.ascend.plugins.plugin_utils._data.schema import shown
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain.smoke_pod import SmokeFailed, SmokePod, Steps
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.types import AnyCluster, Object

VARIABLE = "npu_accept_collective_pod"
_PORT = 29500
_OWN_ADDRESS = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
# Seconds until rank 0 must have its address, also without a limit for the pods.
_ADDRESS_LIMIT = 1800
_LONGEST_ADDRESS = 45  # characters
_MOST_TOLD = 600  # characters


def load(path: str) -> Object:
    """The Pod of the manifest in a file of the controller. Raises NpuError."""
    return smoke_pod.load(path, VARIABLE)


class Collective:
    """That of one pair.

    ``manifest``: from ``load``; ``timeout``: seconds from the creation of the first pod until both must have succeeded, 0 = any
    number.
    """

    def __init__(
        self, cluster: AnyCluster, pair: Pair, manifest: Object, timeout: int, say: Callable[[str], None], clock: Clock
    ) -> None:
        self._cluster, self._pair, self._manifest, self._timeout = cluster, pair, manifest, timeout
        self._say, self._clock = say, clock
        self._pods: list[SmokePod] = []

    def steps(self) -> Generator[None, None, str | None]:
        """Run it, as smoke_pod.Steps; returns why it failed, None if it passed. Raises NpuError if the API server does not respond.

        None of its pods is left, unless it is left itself: then ``delete`` is for its user to call.
        """
        why = None
        try:
            yield from self._both()
        except SmokeFailed as exc:
            why = printable(exc.message, _MOST_TOLD)
        yield from _alternately(*(pod.leaving() for pod in self._pods))
        return why

    def delete(self) -> None:
        """Have its pods deleted, without waiting for anything."""
        for pod in self._pods:
            pod.delete()

    def _both(self) -> Steps:
        first = self._pod(0, _OWN_ADDRESS)
        yield from first.beginning()
        since = self._clock.monotonic()
        succeeding = first.succeeding()
        yield from self._address_of(first, succeeding, since)
        second = self._pod(1, {"value": _checked(first)})
        yield from second.beginning(since)
        yield from _alternately(succeeding, second.succeeding())

    def _pod(self, rank: int, address: Object) -> SmokePod:
        node = self._pair[rank]
        variables: list[Object] = [
            {"name": "NNODES", "value": str(len(self._pair))},
            {"name": "NODE_RANK", "value": str(rank)},
            {"name": "MASTER_ADDR", **address},
            {"name": "MASTER_PORT", "value": str(_PORT)},
        ]
        pod = SmokePod(
            self._cluster, node, self._manifest, self._timeout, lambda: None, self._say, self._clock,
            variables=variables, called="rank %d on %s: the pod" % (rank, node),
        )  # fmt: skip
        self._pods.append(pod)
        return pod

    def _address_of(self, first: SmokePod, succeeding: Steps, since: float) -> Steps:
        """Wait until the first pod has an address. The node tells it when it has the image of the pod."""
        limit = min(kube_retry.limit(self._timeout), _ADDRESS_LIMIT)
        while not first.address:
            if self._clock.monotonic() - since >= limit:
                raise first.failure("got no IP address within %d s: it %s" % (limit, first.state()))
            if next(succeeding, self) is self:
                raise first.failure(
                    "succeeded before rank 1 was created, so it has not waited for it. Its program must use NNODES, NODE_RANK, "
                    "MASTER_ADDR and MASTER_PORT"
                )
            if not first.address:
                yield


def _checked(pod: SmokePod) -> str:
    """The IP address of a pod, by which another one is told to find it."""
    told = pod.address
    try:
        # What follows a % can be any text.
        if not isinstance(told, str) or len(told) > _LONGEST_ADDRESS or "%" in told:
            raise ValueError
        address = ipaddress.ip_address(told)
        if address.is_unspecified or address.is_loopback or address.is_multicast:
            raise ValueError
    except ValueError:
        raise pod.failure("has %s as its IP address, by which no pod can find it" % shown(told)) from None
    return str(address)


def _alternately(*several: Steps) -> Steps:
    """All of them at the same time. Raises what the first one does that fails."""
    left = list(several)
    while True:
        left = [one for one in left if next(one, left) is not left]
        if not left:
            return
        yield
