# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet pings itself, with ports that are dead in one way or another: what is said of it."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._network import ping_plan, ping_results
from ansible_collections.npuops.ascend.plugins.plugin_utils._network.ping_results import Ping

from support.fleet.ports import LAYOUTS, as_hosts, fleet


def judged(ports, reaches, most=10000):
    pings = [Ping(source, target, reaches(source, target)) for source, target in ping_plan.plan(ports, most)]
    return ping_results.findings(pings)


def without(*dead):
    """Packets to and from these ports get lost."""
    return lambda source, target: not {(port.host, port.chip) for port in (source, target)} & set(dead)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_reach_each_other(layout):
    assert judged(list(fleet(layout).values()), without()) == []


@pytest.mark.parametrize("layout", ["one network", "rails", "racks", "each port alone"])
@pytest.mark.parametrize("hosts", [4, 32])
def test_one_dead_port_is_named_and_no_other(layout, hosts):
    (finding,) = judged(list(fleet(layout, hosts).values()), without(("npu-02", 5)))
    assert finding.kind == "unreachable" and finding.hosts == ("npu-02",)
    assert (
        finding.text.startswith("Chip 5 of npu-02 (10.")
        and "reaches no other chip, and is not reached: 2 of 2 pings" in finding.text
    )


def test_a_dead_host():
    found = judged(list(fleet("rails").values()), without(*[("npu-02", chip) for chip in range(8)]))
    assert [finding.kind for finding in found] == ["unreachable"] * 8 and {finding.hosts for finding in found} == {("npu-02",)}


def test_a_dead_rail():
    (finding,) = judged(list(fleet("rails").values()), lambda source, target: source.chip != 3)
    assert finding.kind == "network" and finding.text.startswith(
        "No chip in 10.3.0.0/24 reaches another: 32 pings between npu-00, "
    )


def test_with_two_hosts_it_may_be_either():
    found = judged(list(fleet("rails", 2).values()), without(("npu-01", 5)))
    assert {finding.kind for finding in found} == {"ping"} and all(finding.hosts == ("npu-00", "npu-01") for finding in found)
    assert all("Chip 5 of " in finding.text and "does not reach chip 5 of " in finding.text for finding in found)


def test_one_direction():
    (finding,) = judged(list(fleet("rails").values()), lambda source, target: (source.host, source.chip) != ("npu-02", 5))
    assert finding.kind == "ping" and finding.text.startswith("Chip 5 of npu-02 (10.5.0.12) does not reach chip 5 of npu-03")


def test_a_sample_names_the_pair():
    (finding,) = judged(list(fleet("rails").values()), without(("npu-02", 2)), most=32)
    assert finding.kind == "ping" and "chip 2 of npu-02" in finding.text.lower()


def test_one_ping_is_not_enough_to_blame_a_port():
    ports = fleet("rails", 3)
    pings = [Ping(ports[0, 0], ports[1, 0], False), Ping(ports[1, 0], ports[2, 0], True)]
    (finding,) = ping_results.findings(pings)
    assert finding.kind == "ping" and finding.hosts == ("npu-00", "npu-01")


def test_what_hosts_answer():
    ports = list(fleet("rails", 4).values())
    results = [
        {"chip": 0, "address": "10.0.0.11", "sent": 3, "received": 2, "problem": None},  # the first one waited for ARP
        {"chip": 1, "address": "10.1.0.11", "sent": 3, "received": 0, "problem": None},
        {"chip": 2, "address": "10.2.0.11", "sent": None, "received": None, "problem": "no time was left"},
        {"chip": 3, "address": "10.99.0.11", "sent": 3, "received": 0, "problem": None},  # of no chip
        {"chip": 99, "address": "10.0.0.11", "sent": 3, "received": 0, "problem": None},
    ]
    pings = ping_results.pings_of(as_hosts(ports, answers={"npu-00": results}), ports)
    assert [(str(ping.source), str(ping.target), ping.reached) for ping in pings] == [
        ("chip 0 of npu-00", "chip 0 of npu-01", True),
        ("chip 1 of npu-00", "chip 1 of npu-01", False),
    ]
