# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of ports that must be alike where they talk to each other: TLS, the MTU, and the speed within a host."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._network.fleet_ports import Finding, Port, hosts_of, listed

# More than this part of the ports is no outlier: hosts may be set up for different purposes.
_FEW = 0.25
_TLS_ADVICE = "A chip with TLS and one without cannot connect. Make it equal with hccn_tool -i CHIP -tls -s enable 0, or 1"
_MTU_ADVICE = "Make it equal with hccn_tool -i CHIP -mtu -s size MTU"
_SPEED_ADVICE = "Check the optical module, and the port of the switch and its settings"


def outliers(ports: Sequence[Port]) -> list[Finding]:
    """Ports with another TLS or MTU than those that they share a network with, or another speed than those of their host."""
    found = []
    for site in _sites(ports):
        found += _tls(site)
        found += _mtu(site)
    for host in _by_host(ports).values():
        found += _speed(host)
    return found


def _tls(ports: Sequence[Port]) -> list[Finding]:
    """Named in any case: such chips cannot connect."""
    values = _by_value(ports, "tls")
    if len(values) < 2:
        return []
    least, most = sorted(values.values(), key=len)
    mode = "on" if least[0].tls else "off"
    if len(least) == len(most):
        text = "TLS is on for %s, and off for %s, in the same network" % (_told(values[True]), _told(values[False]))
    else:
        text = "TLS is %s for %s, and not for the %d other chips in the same network" % (mode, _told(least), len(most))
    return [Finding("tls", hosts_of(least if len(least) < len(most) else [*least, *most]), text, _TLS_ADVICE)]


def _mtu(ports: Sequence[Port]) -> list[Finding]:
    values = _by_value(ports, "mtu")
    if len(values) < 2:
        return []
    usual = max(values, key=lambda value: len(values[value]))
    odd = [port for value, owners in values.items() if value != usual for port in owners]
    if len(odd) > _FEW * (len(odd) + len(values[usual])):
        return []
    told = ", ".join("%d bytes for %s" % (value, _told(owners)) for value, owners in sorted(values.items()) if value != usual)
    text = "The MTU is %s, and %d bytes for the %d other chips in the same network" % (told, usual, len(values[usual]))
    return [Finding("mtu", hosts_of(odd), text, _MTU_ADVICE)]


def _speed(ports: Sequence[Port]) -> list[Finding]:
    values = _by_value([port for port in ports if port.link == "UP"], "speed")
    if len(values) != 2:
        return []
    (speed, odd), (usual, others) = sorted(values.items(), key=lambda value: len(value[1]))
    if len(odd) > 1 or len(others) < 3:
        return []
    text = "The link of %s runs at %d Mb/s, those of the %d other chips of the host at %d Mb/s" % (
        odd[0],
        speed,
        len(others),
        usual,
    )
    return [Finding("speed", (odd[0].host,), text, _SPEED_ADVICE)]


def _by_value(ports: Sequence[Port], field: str) -> dict[Any, list[Port]]:
    found: dict[Any, list[Port]] = collections.defaultdict(list)
    for port in ports:
        if getattr(port, field) is not None:
            found[getattr(port, field)].append(port)
    return found


def _sites(ports: Sequence[Port]) -> Iterator[list[Port]]:
    """The ports of hosts of one family that share networks, directly or through others."""
    hosts = _by_host(ports)
    neighbours: dict[Any, set[str]] = collections.defaultdict(set)
    for port in ports:
        if port.network is not None:
            neighbours[port.family, port.network].add(port.host)
    networks: dict[str, set[Any]] = collections.defaultdict(set)
    for key, names in neighbours.items():
        for name in names:
            networks[name].add(key)
    left = set(hosts)
    while left:
        site, todo = set(), [min(left)]
        while todo:
            name = todo.pop()
            if name in left:
                left.remove(name)
                site.add(name)
                todo += [other for key in networks[name] for other in neighbours[key]]
        yield [port for name in sorted(site) for port in hosts[name] if port.network is not None]


def _by_host(ports: Sequence[Port]) -> dict[str, list[Port]]:
    found: dict[str, list[Port]] = collections.defaultdict(list)
    for port in ports:
        found[port.host].append(port)
    return found


def _told(ports: Sequence[Port]) -> str:
    """Whole hosts where many chips are meant."""
    return listed(ports) if len(ports) <= 4 else "%d chips of %s" % (len(ports), listed(hosts_of(ports)))
