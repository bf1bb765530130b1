# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One wrong address among all chips of a fleet is named, and a fleet in order gives no alarm, whatever the layout of its addresses."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._network import addresses

from support.fleet.ports import LAYOUTS, MASK, changed, fleet

RAILS = ("rails", "four rails", "racks")
WHERE = ((0, 0), (17, 3), (31, 7))


def everything(ports):
    return addresses.duplicates(ports) + addresses.stale(ports) + addresses.foreign(ports)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hosts", [1, 2, 3, 4, 32, 200])
@pytest.mark.parametrize("chips", [1, 2, 4, 8])
def test_no_false_alarm_in_a_fleet_that_is_in_order(layout, hosts, chips):
    assert everything(list(fleet(layout, hosts, chips).values())) == []


@pytest.mark.parametrize("layout", ["one network", *RAILS, "racks without rails"])
@pytest.mark.parametrize("at", WHERE)
@pytest.mark.parametrize("hosts", [4, 32])
def test_one_address_of_a_foreign_network_is_named(layout, at, hosts):
    at = (at[0] % hosts, at[1])
    (finding,) = everything(changed(fleet(layout, hosts), at, address="192.168.77.5", configured=None, netmask=MASK))
    assert finding.kind == "foreign" and finding.hosts == ("npu-%02d" % at[0],)
    assert finding.text.startswith("The address of chip %d of npu-%02d, 192.168.77.5, is not in 10." % (at[1], at[0]))
    assert "hccn_tool" in finding.advice


def test_one_wrong_address_among_32_chips():
    """Four hosts with eight chips each."""
    (finding,) = everything(changed(fleet("one network", 4), (2, 5), address="10.9.0.5", configured=None))
    assert finding.hosts == ("npu-02",) and "chip 5 of npu-02" in finding.text


def test_two_hosts_in_one_network():
    (finding,) = everything(changed(fleet("one network", 2), (1, 5), address="10.9.0.5", configured=None))
    assert finding.hosts == ("npu-01",)


def test_two_hosts_with_rails_prove_nothing():
    assert everything(changed(fleet("rails", 2), (1, 5), address="10.9.0.5", configured=None)) == []


@pytest.mark.parametrize("layout", ["rails", "racks"])
def test_an_address_of_another_rail_is_named(layout):
    ports = fleet(layout)
    other = ports[17, 6].network.network_address + 99
    (finding,) = everything(changed(ports, (17, 3), address=str(other), configured=None))
    assert finding.kind == "foreign" and finding.hosts == ("npu-17",)


def test_a_host_of_another_rack_is_no_stranger():
    """All of its ports differ, as they may."""
    ports = fleet("rails")
    moved = {at: port for at, port in fleet("racks", 170).items() if at[0] == 169}
    assert everything([port for at, port in ports.items() if at[0] != 31] + list(moved.values())) == []


def test_peers_that_do_not_agree():
    """One rail is being moved to another network."""
    ports = fleet("rails")
    for host in range(16):
        ports[host, 3] = dataclasses.replace(ports[host, 3], address="10.203.0.%d" % (host + 10), configured=None)
    assert everything(list(ports.values())) == []


@pytest.mark.parametrize("layout", ["one network", *RAILS])
def test_a_wrong_netmask_is_named(layout):
    ports = fleet(layout)
    netmask = "255.255.255.128" if ports[0, 0].netmask == MASK else MASK
    (finding,) = everything(changed(ports, (0, 2), netmask=netmask))
    assert finding.kind == "netmask" and finding.hosts == ("npu-00",)
    assert "is %s, that of the same chip on other hosts is %s" % (netmask, ports[0, 0].netmask) in finding.text


def test_two_wrong_addresses_on_different_hosts():
    ports = fleet("rails")
    wrong = {at: changed(ports, at, address="192.168.77.%d" % at[0], configured=None)[at[0] * 8 + at[1]] for at in ((3, 2), (9, 6))}
    assert [finding.hosts for finding in everything(list({**ports, **wrong}.values()))] == [("npu-03",), ("npu-09",)]


def test_two_wrong_addresses_on_one_host():
    ports = fleet("rails", chips=16)
    for chip in (2, 6):
        ports[3, chip] = next(
            port for port in changed(ports, (3, chip), address="192.168.77.%d" % chip, configured=None) if "192" in port.address
            and port.chip == chip
        )  # fmt: skip
    assert [finding.hosts for finding in everything(list(ports.values()))] == [("npu-03",), ("npu-03",)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_duplicate_is_named_with_both_chips(layout):
    ports = fleet(layout)
    found = everything(changed(ports, (17, 3), address=ports[4, 3].address, netmask=ports[4, 3].netmask))
    duplicate = found[0]
    assert duplicate.kind == "duplicate" and duplicate.hosts == ("npu-04", "npu-17")
    assert (
        "is the address of 2 chips: chip 3 of npu-04, chip 3 of npu-17. /etc/hccn.conf has another address for chip 3 of npu-17"
        in (duplicate.text)
    )
    # In a layout with racks, it is one of another rack, too.
    assert {finding.kind for finding in found[1:]} <= {"foreign"} and all(finding.hosts == ("npu-17",) for finding in found[1:])


def test_a_file_with_the_address_of_another_chip():
    ports = fleet("one network", 4)
    (finding,) = everything(changed(ports, (2, 5), configured=ports[0, 1].address))
    assert finding.kind == "stale" and finding.hosts == ("npu-02",)
    assert (
        finding.text == "/etc/hccn.conf of npu-02 has %s for chip 5, which is the address of chip 1 of npu-00" % ports[0, 1].address
    )


def test_a_thousand_hosts_with_a_network_for_each_port_are_compared_in_time():
    ports = fleet("each port alone", 250, 8)
    assert everything(list(ports.values())) == []
