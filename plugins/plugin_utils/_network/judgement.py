# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that is wrong with the network ports of the fleet: what hosts say of themselves, what several of them show, and the pings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.npuops.ascend.plugins.plugin_utils._data.host_answers import AskedHost
from ansible_collections.npuops.ascend.plugins.plugin_utils._network import (
    addresses,
    fleet_ports,
    ping_plan,
    ping_results,
    port_settings,
)
from ansible_collections.npuops.ascend.plugins.plugin_utils._network.fleet_ports import Finding

_MOST_LINES = 60


@dataclass(frozen=True)
class Judgement:
    """``pings``: the arguments of npu_hccn_ping by host; ``strict``: the hosts for which a finding is a failure."""

    findings: list[Finding]
    pings: dict[str, dict[str, Any]]
    strict: frozenset[str]

    @property
    def lines(self) -> list[str]:
        """For people; empty if nothing is wrong."""
        if not self.findings:
            return []
        lines = ["Network ports of the chips:"] + ["  " + line for finding in self.findings for line in finding.lines]
        left = len(lines) - _MOST_LINES
        return lines if left <= 0 else lines[:_MOST_LINES] + ["  ... and %d more lines" % left]

    @property
    def problems(self) -> list[str]:
        """One line for each finding that is a failure."""
        return [finding.text for finding in self.findings if self.strict.intersection(finding.hosts)]


def judge(hosts: Sequence[AskedHost], most_pings: int) -> Judgement:
    """The judgement of ``hosts``, as the filter npu_hosts makes them; with what they have pinged, if they have."""
    ports = fleet_ports.ports_of(hosts)
    wrong = addresses.duplicates(ports) + addresses.stale(ports) + addresses.foreign(ports)
    pairs = ping_plan.plan(ports, most_pings, {port for finding in wrong for port in finding.ports})
    trees = {host["name"]: ((host.get("facts") or {}).get("driver") or {}).get("tree") for host in hosts}
    pings: dict[str, dict[str, Any]] = {}
    for source, target in pairs:
        own = pings.setdefault(source.host, {"tree": trees[source.host], "pings": []})
        own["pings"].append({"chip": source.chip, "address": target.address})
    found = _of_hosts(hosts) + wrong + port_settings.outliers(ports)
    found += ping_results.findings(ping_results.pings_of(hosts, ports))
    strict = frozenset(host["name"] for host, network in fleet_ports.looked_at(hosts) if network.get("mode") == "strict")
    return Judgement(found, pings, strict)


def _of_hosts(hosts: Sequence[AskedHost]) -> list[Finding]:
    """What hosts say of themselves, where it does not make them invalid."""
    return [
        Finding(check["name"], (host["name"],), "%s: %s: %s" % (host["name"], check["name"], check["seen"]), str(check["message"]))
        for host, network in fleet_ports.looked_at(hosts)
        for check in network.get("checks") or []
        if not check["ok"]
    ]
