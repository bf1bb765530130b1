# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import collections
import dataclasses

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._network import ping_plan

from support.fleet.ports import LAYOUTS, changed, fleet


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hosts", [2, 4, 32])
def test_each_port_sends_and_receives(layout, hosts):
    ports = list(fleet(layout, hosts).values())
    pairs = ping_plan.plan(ports, 10000)
    # Of filled networks, the last one may have a single host.
    ports = [port for port in ports if layout != "filled networks" or port.address.startswith("10.0.0.")]
    assert sorted(map(str, (source for source, _target in pairs))) == sorted(map(str, ports))
    assert all(source.host != target.host for source, target in pairs)
    # Only within a network, or over gateways.
    assert all(source.network == target.network or (source.gateway and source.chip == target.chip) for source, target in pairs)
    received = collections.Counter(target for _source, target in pairs)
    # Where the networks are filled, and one has few hosts, some receive more.
    assert layout == "filled networks" or set(received.values()) == {1}


@pytest.mark.parametrize("most", [0, 1, 10, 32, 33, 100, 256])
def test_a_sample_is_spread_over_hosts_and_chips(most):
    pairs = ping_plan.plan(list(fleet("rails").values()), most)
    assert len(pairs) == min(most, 256)
    of_hosts = collections.Counter(source.host for source, _target in pairs)
    assert max(of_hosts.values(), default=0) - (min(of_hosts.values()) if len(of_hosts) == 32 else 0) <= 1
    if most >= 32:
        assert len({source.chip for source, _target in pairs}) == 8


def test_what_is_not_pinged():
    ports = fleet("rails", 4)
    wrong = ports[2, 5]
    pairs = ping_plan.plan(changed(ports, (1, 3), link="DOWN"), 10000, [wrong])
    named = {port for pair in pairs for port in pair}
    assert wrong not in named and not [port for port in named if (port.host, port.chip) == ("npu-01", 3)]
    assert len(pairs) == 4 * 8 - 2


def test_chips_of_one_host_are_not_paired():
    """Where a host has fewer chips, the next one in the ring is of the same host."""
    ports = [port for at, port in fleet("one network", 2).items() if at in ((0, 0), (1, 0), (1, 1))]
    pairs = {(str(source), str(target)) for source, target in ping_plan.plan(ports, 100)}
    assert pairs == {
        ("chip 0 of npu-00", "chip 0 of npu-01"),
        ("chip 0 of npu-01", "chip 0 of npu-00"),
        ("chip 1 of npu-01", "chip 0 of npu-00"),
    }


def test_a_host_alone_pings_nothing():
    assert ping_plan.plan(list(fleet("one network", 1).values()), 100) == []


def test_networks_that_nothing_connects_are_not_tried():
    ports = [dataclasses.replace(port, gateway=None) for port in fleet("each port alone", 4).values()]
    assert ping_plan.plan(ports, 100) == []


def test_a_host_with_very_many_ports():
    pairs = ping_plan.plan(list(fleet("one network", 2, 100).values()), 10000)
    assert collections.Counter(source.host for source, _target in pairs) == {"npu-00": 64, "npu-01": 64}
