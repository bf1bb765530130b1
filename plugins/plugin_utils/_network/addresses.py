# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that are wrong, as only several hosts together show: the same one twice, another chip's, one of a foreign network.

Networks of RoCE ports differ between sites: one for all ports, one for each chip number (a rail), one for each rack, one for each
port. So a port is compared with that of the same chip on its host's peers, which are in the same networks with their other chips.
Where there are no peers, or they do not agree, nothing is said; the pings find what does not work.
"""

from __future__ import annotations

import collections
import functools
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.npuops.ascend.plugins.plugin_utils._network.fleet_ports import Finding, Port, hosts_of, listed

_CORRECT = (
    "Set the right address with hccn_tool -i CHIP -ip -s address ADDRESS netmask NETMASK, which also writes /etc/hccn.conf. It "
    "interrupts jobs on the chip"
)
# Of the other chips of two hosts that are peers, one in so many may be in different networks, rounded down.
_TOLERANCE = 5
# Of the peers, so many must agree.
_QUORUM = 0.75


def duplicates(ports: Sequence[Port]) -> list[Finding]:
    """Addresses that several chips have."""
    by_address = _by_address(ports)
    found = []
    for address, owners in sorted(by_address.items()):
        if len(owners) > 1:
            found.append(Finding("duplicate", hosts_of(owners), _told_of_duplicate(address, owners), _CORRECT, tuple(owners)))
    return found


def _told_of_duplicate(address: str, owners: Sequence[Port]) -> str:
    text = "%s is the address of %d chips: %s" % (address, len(owners), listed(owners))
    wrong = [port for port in owners if port.configured not in (None, address)]
    if wrong:
        text += ". /etc/hccn.conf has another address for %s" % listed(wrong)
    return text


def stale(ports: Sequence[Port]) -> list[Finding]:
    """Chips for which /etc/hccn.conf has the address of another chip: programs in containers give that to their peers."""
    by_address = _by_address(ports)
    found = []
    for port in ports:
        owners = [owner for owner in by_address.get(port.configured or "", ()) if owner != port]
        if owners and port.configured != port.address:
            text = "/etc/hccn.conf of %s has %s for chip %d, which is the address of %s" % (
                port.host, port.configured, port.chip, listed(owners),
            )  # fmt: skip
            found.append(Finding("stale", (port.host,), text, _CORRECT))
    return found


def foreign(ports: Sequence[Port]) -> list[Finding]:
    """Ports that are in another network than that of the same chip on their host's peers."""
    hosts: dict[str, list[Port]] = collections.defaultdict(list)
    for port in ports:
        if port.network is not None:
            hosts[port.host].append(port)
    # Most hosts of a fleet have the same layout, or one of a few.
    layouts = collections.Counter(map(_layout, hosts.values()))
    known = _Known(layouts)
    found = []
    for own in hosts.values():
        layout = _layout(own)
        for port in own:
            expected = known.expected(layout, port.chip)
            if expected and port.network != expected and not known.may_belong(layout, port.network):
                found.append(_foreign(port, expected))
    return found


@dataclass(frozen=True)
class _Layout:
    """The networks of a host by chip, without anything else of it."""

    family: str | None
    networks: tuple[tuple[int, ipaddress.IPv4Network], ...]

    @functools.cached_property
    def by_chip(self) -> Mapping[int, ipaddress.IPv4Network]:
        return dict(self.networks)

    def is_peer(self, other: _Layout, chip: int) -> bool:
        """Whether two hosts are in the same networks with their chips but this one."""
        common = [number for number in self.by_chip if number != chip and number in other.by_chip]
        different = sum(self.by_chip[number] != other.by_chip[number] for number in common)
        return self.family == other.family and bool(common) and different <= len(common) // _TOLERANCE


def _layout(ports: Sequence[Port]) -> _Layout:
    return _Layout(ports[0].family, tuple((port.chip, port.network) for port in ports if port.network is not None))


class _Known:
    """The layouts of the fleet, with how many hosts have each."""

    def __init__(self, layouts: Mapping[_Layout, int]) -> None:
        self._layouts = layouts
        self._used = collections.Counter(network for layout in layouts for _chip, network in layout.networks)
        self._by_network: dict[ipaddress.IPv4Network, set[_Layout]] = collections.defaultdict(set)
        for layout in layouts:
            for _chip, network in layout.networks:
                self._by_network[network].add(layout)
        self._answers: dict[tuple[_Layout, int], ipaddress.IPv4Network | None] = {}

    def expected(self, layout: _Layout, chip: int) -> ipaddress.IPv4Network | None:
        """The network of this chip on the peers of a host; None if there are too few, or they do not agree."""
        if (layout, chip) not in self._answers:
            self._answers[layout, chip] = self._vote(layout, chip)
        return self._answers[layout, chip]

    def _vote(self, layout: _Layout, chip: int) -> ipaddress.IPv4Network | None:
        votes: collections.Counter[ipaddress.IPv4Network] = collections.Counter()
        # A peer shares a network.
        for other in set().union(*(self._by_network[network] for network in set(layout.by_chip.values()))):
            if chip in other.by_chip and layout.is_peer(other, chip):
                votes[other.by_chip[chip]] += self._layouts[other] - (other == layout)
        total = sum(votes.values())
        if total == 0:
            return None
        network, count = votes.most_common(1)[0]
        if total == 1:
            # One other host proves nothing, unless all other ports of the fleet are in one network.
            rest = {other for own in self._layouts for number, other in own.networks if (own, number) != (layout, chip)}
            return network if rest == {network} and len(layout.networks) > 2 else None
        return network if count >= _QUORUM * total else None

    def may_belong(self, layout: _Layout, network: ipaddress.IPv4Network | None) -> bool:
        """Whether a port may be where the addresses of a network without rails ran out, and the next network begins."""
        rest = [other for _chip, other in layout.networks if other != network]
        return network is not None and len(set(rest)) == 1 and self._used[network] > len(layout.networks) - len(rest)


def _foreign(port: Port, expected: ipaddress.IPv4Network) -> Finding:
    if port.address and ipaddress.IPv4Address(port.address) in expected:
        text = "The netmask of %s (%s) is %s, that of the same chip on other hosts is %s" % (
            port, port.address, port.netmask, expected.netmask,
        )  # fmt: skip
        return Finding("netmask", (port.host,), text, _CORRECT, (port,))
    text = "The address of %s, %s, is not in %s, the network of the same chip on other hosts" % (port, port.address, expected)
    return Finding("foreign", (port.host,), text, _CORRECT, (port,))


def _by_address(ports: Sequence[Port]) -> dict[str, list[Port]]:
    found: dict[str, list[Port]] = collections.defaultdict(list)
    for port in ports:
        if port.address:
            found[port.address].append(port)
    return found
