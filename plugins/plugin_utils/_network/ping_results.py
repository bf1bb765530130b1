# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pings between chips mean: which port is at fault, as far as the pings of a sample say so."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._network.fleet_ports import Finding, Port, hosts_of, listed

_PORT_ADVICE = (
    "Check its address, the VLAN of its port of the switch, and that no other machine has its address: hccn_tool -i CHIP -arp -g "
    "on a host nearby shows which MAC address answers for it"
)
_NETWORK_ADVICE = (
    "Check the switches of this network, and whether they let ICMP pass. If they do not, set npu_validate_network_pings: 0"
)
_PAIR_ADVICE = "Try again with hccn_tool -i CHIP -ping -g address ADDRESS on the first host; check the switches between the two"
# A network in which nothing answers is told as such from so many pings on.
_MANY = 4


@dataclass(frozen=True)
class Ping:
    """A ping that took place: whether the target answered."""

    source: Port
    target: Port
    reached: bool


def pings_of(hosts: Iterable[AskedHost], ports: Sequence[Port]) -> list[Ping]:
    """What the hosts have pinged. Pings without a result, and of addresses that are not those of one port, are left out."""
    owners: dict[str, list[Port]] = collections.defaultdict(list)
    by_name = {(port.host, port.chip): port for port in ports}
    for port in ports:
        if port.address:
            owners[port.address].append(port)
    found = []
    for host in hosts:
        for result in host.get("pings") or []:
            source, targets = by_name.get((host["name"], result["chip"])), owners.get(result["address"], [])
            received = result.get("received")
            if source and len(targets) == 1 and received is not None:
                # The first packet may get lost while the address is resolved.
                found.append(Ping(source, targets[0], received > 0))
    return found


def findings(pings: Sequence[Ping]) -> list[Finding]:
    """Networks in which nothing answers, ports that reach nothing and are not reached, and other pairs that do not work."""
    dead, left = _dead_networks(pings)
    suspects = _suspects(left)
    alone = [port for port in suspects if not _explained(port, suspects, left)]
    found = list(dead)
    for port in alone:
        text = "%s (%s) reaches no other chip, and is not reached: %s" % (_capital(port), port.address, _partners(port, left))
        found.append(Finding("unreachable", (port.host,), text, _PORT_ADVICE))
    for ping in left:
        if not ping.reached and ping.source not in alone and ping.target not in alone:
            text = "%s (%s) does not reach %s (%s)" % (
                _capital(ping.source), ping.source.address, ping.target, ping.target.address,
            )  # fmt: skip
            found.append(Finding("ping", hosts_of((ping.source, ping.target)), text, _PAIR_ADVICE))
    return found


def _dead_networks(pings: Sequence[Ping]) -> tuple[list[Finding], list[Ping]]:
    """(findings of networks in which no ping was answered, the pings of the others)."""
    networks: dict[object, list[Ping]] = collections.defaultdict(list)
    for ping in pings:
        networks[ping.target.network].append(ping)
    found, left = [], []
    for network, own in networks.items():
        hosts = hosts_of(port for ping in own for port in (ping.source, ping.target))
        # With two hosts, it may be one of them.
        if len(own) >= _MANY and not any(ping.reached for ping in own) and len(hosts) > 2:
            text = "No chip in %s reaches another: %d pings between %s were not answered" % (network, len(own), listed(hosts))
            found.append(Finding("network", hosts, text, _NETWORK_ADVICE))
        else:
            left += own
    return found, left


def _suspects(pings: Sequence[Ping]) -> list[Port]:
    """Ports of which no ping was answered, of two or more."""
    results: dict[Port, list[bool]] = collections.defaultdict(list)
    for ping in pings:
        results[ping.source].append(ping.reached)
        results[ping.target].append(ping.reached)
    return sorted((port for port, own in results.items() if len(own) > 1 and not any(own)), key=lambda port: (port.host, port.chip))


def _explained(port: Port, suspects: Sequence[Port], pings: Sequence[Ping]) -> bool:
    """Whether another suspect is in all of its pings, so that either may be at fault."""
    partners = {ping.target if ping.source == port else ping.source for ping in pings if port in (ping.source, ping.target)}
    return len(partners) == 1 and partners <= set(suspects)


def _partners(port: Port, pings: Sequence[Ping]) -> str:
    own = [ping for ping in pings if port in (ping.source, ping.target)]
    return "%d of %d pings, with %s, were not answered" % (
        len(own), len(own), listed(sorted({str(ping.target if ping.source == port else ping.source) for ping in own})),
    )  # fmt: skip


def _capital(port: Port) -> str:
    return "C" + str(port)[1:]
