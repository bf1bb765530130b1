# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sample of the pings between all chips: a few for each port, and not more than a number for the fleet.

The ports of a network form a ring, in which each pings the next one that is on another host, mostly the same chip of the next host.
So each port sends and receives, and one that does not work fails both ways, while its neighbours fail one way each. Ports that
share their network with no other host are in a ring by chip number, if they have a gateway. Chips of the same host are not paired:
they talk over HCCS, and the two dies of a 910C do not reach each other over RoCE at all.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._network.fleet_ports import Port

# What the module npu_hccn_ping takes for one host.
MOST_OF_HOST = 64


def plan(ports: Sequence[Port], most: int, left_out: Iterable[Port] = ()) -> list[tuple[Port, Port]]:
    """At most ``most`` pairs of ports, the first of which is to ping the second. ``left_out``: ports whose address is wrong."""
    skipped = set(left_out)
    usable = [port for port in ports if port.link == "UP" and port.network is not None and port not in skipped]
    pairs = [pair for ring in _rings(usable) for pair in _pairs(ring)]
    ranks = {host: rank for rank, host in enumerate(sorted({port.host for port in usable}))}
    # If not all fit: another chip on each host, and each host before any gets a second one.
    count = 1 + max((port.chip for port in usable), default=0)
    pairs.sort(key=lambda pair: ((pair[0].chip - ranks[pair[0].host]) % count, ranks[pair[0].host]))
    return list(_limited(pairs, most))


def _limited(pairs: Iterable[tuple[Port, Port]], most: int) -> Iterator[tuple[Port, Port]]:
    of_host: dict[str, int] = collections.Counter()
    for number, (source, target) in enumerate(pairs):
        if number >= most:
            return
        if of_host[source.host] < MOST_OF_HOST:
            of_host[source.host] += 1
            yield source, target


def _rings(ports: Sequence[Port]) -> Iterator[list[Port]]:
    """Ports that must reach each other."""
    groups: dict[Any, list[Port]] = collections.defaultdict(list)
    for port in ports:
        groups[port.network].append(port)
    alone: dict[Any, list[Port]] = collections.defaultdict(list)
    for group in groups.values():
        if len({port.host for port in group}) > 1:
            yield group
        else:
            for port in group:
                if port.gateway:
                    alone[port.family, port.chip].append(port)
    yield from alone.values()


def _pairs(ring: Sequence[Port]) -> Iterator[tuple[Port, Port]]:
    """Each port with the next one of another host; none if all are of one host."""
    ordered = sorted(ring, key=lambda port: (port.chip, port.host))
    for number, source in enumerate(ordered):
        following = ordered[number + 1 :] + ordered[:number]
        target = next((port for port in following if port.host != source.host), None)
        if target is not None:
            yield source, target
