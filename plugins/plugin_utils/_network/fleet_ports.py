# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network ports of all chips of the fleet, and what is wrong with them, as the checks across hosts see it."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost, Network, PortOfChip


@dataclass(frozen=True)
class Port:
    """The port of one chip; None for what is unknown."""

    host: str
    chip: int  # N of /dev/davinciN
    family: str | None = None
    link: str | None = None  # UP or DOWN
    speed: int | None = None  # Mb/s
    address: str | None = None
    netmask: str | None = None
    gateway: str | None = None
    tls: bool | None = None
    mtu: int | None = None
    configured: str | None = None  # the address that /etc/hccn.conf has

    @functools.cached_property
    def network(self) -> ipaddress.IPv4Network | None:
        """The network that the port is in."""
        return _network(self.address, self.netmask)

    def __str__(self) -> str:
        return "chip %d of %s" % (self.chip, self.host)


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    kind: str  # one word for programs
    hosts: tuple[str, ...]  # of which it is wrong
    text: str  # what is wrong, as a sentence without its period
    advice: str  # what to do
    ports: tuple[Port, ...] = ()  # that are wrong, where it is certain which

    @property
    def lines(self) -> list[str]:
        return [self.text, "  -> %s" % self.advice]


def looked_at(hosts: Iterable[AskedHost]) -> list[tuple[AskedHost, Network]]:
    """The hosts whose ports were looked at, with what they said."""
    found = []
    for host in hosts:
        network = (host.get("validation") or {}).get("network")
        if network and not host.get("unreachable"):
            found.append((host, network))
    return found


def ports_of(hosts: Iterable[AskedHost]) -> list[Port]:
    """The ports of all hosts that use theirs, sorted by host and chip."""
    found = []
    for host, network in looked_at(hosts):
        if network.get("roce") and network.get("cabled"):
            family = ((host.get("facts") or {}).get("family") or {}).get("name")
            found += [_port(host["name"], family, chip) for chip in network.get("chips") or []]
    return sorted(found, key=lambda port: (port.host, port.chip))


def hosts_of(ports: Iterable[Port]) -> tuple[str, ...]:
    """Their hosts, each once."""
    return tuple(sorted({port.host for port in ports}))


def listed(names: Sequence[object], most: int = 8) -> str:
    """The first of them for a sentence, and how many more there are."""
    told = ", ".join(map(str, names[:most]))
    return told if len(names) <= most else "%s and %d more" % (told, len(names) - most)


def _port(host: str, family: str | None, chip: PortOfChip) -> Port:
    configured = chip.get("configured") or {}
    # A host may say anything that looks like an address.
    valid = _network(chip.get("address"), chip.get("netmask")) is not None
    return Port(
        host=host,
        chip=chip.get("chip", 0),
        family=family,
        link=chip.get("link"),
        speed=chip.get("speed"),
        address=chip.get("address") if valid else None,
        netmask=chip.get("netmask") if valid else None,
        gateway=chip.get("gateway"),
        tls=chip.get("tls"),
        mtu=chip.get("mtu"),
        configured=None if configured.get("dhcp") else configured.get("address"),
    )


def _network(address: str | None, netmask: str | None) -> ipaddress.IPv4Network | None:
    if address is None or netmask is None:
        return None
    try:
        return ipaddress.IPv4Network("%s/%s" % (address, netmask), strict=False)
    except ValueError:
        return None
