# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of a host with eight chips, then one thing after the other wrong with them: which checks fail, and what they say."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import network_checks

NONE = {"address": None, "netmask": None, "gateway": None, "mtu": None, "tls": None, "dhcp": False}


def module(**changes):
    return dict({
        "present": True, "tx_power": [1.2, 1.1], "rx_power": [0.9, 0.8], "host_snr": [None, None], "media_snr": [23.1, 22.6],
        "tx_power_low": 0.28, "tx_power_high": 3.5, "rx_power_low": 0.14, "rx_power_high": 3.5,
    }, **changes)  # fmt: skip


def chip(number):
    address = "10.20.0.%d" % (10 + number)
    return {
        "chip": number, "link": "UP", "speed": 200000, "address": address, "netmask": "255.255.255.0", "gateway": "10.20.0.1",
        "net_health": "Success", "tls": False, "fec": "rs", "mtu": 4096, "optical": module(), "problems": {},
        "configured": dict(NONE, address=address, netmask="255.255.255.0", gateway="10.20.0.1"),
    }  # fmt: skip


@pytest.fixture
def ports():
    config = {"exists": True, "problems": []}
    return {"roce": True, "reason": None, "cabled": True, "chips": [chip(number) for number in range(8)], "config": config}


def wrong(ports, family="910B"):
    """name -> what is wrong."""
    return {finding.name: finding.wrong for finding in network_checks.findings(ports, family) if finding.wrong}


def test_all_is_well(ports):
    assert wrong(ports) == {} and network_checks.notes(ports) == []
    names = [finding.name for finding in network_checks.findings(ports, "910B")]
    assert names == ["network_ports", "network_config", "network_address", "network_link", "network_health", "network_optical"]
    assert all(finding.expected and finding.advice for finding in network_checks.findings(ports, "910B"))


@pytest.mark.parametrize(
    "changes, name, told",
    [
        ({"link": "DOWN", "net_health": "Fault"}, "network_link", "chip 3 is down"),
        ({"link": "DOWN", "optical": {"present": False}}, "network_link", "chip 3 is down, no optical module"),
        ({"address": "10.20.0.99"}, "network_config", "chip 3: address 10.20.0.99, the file has 10.20.0.13"),
        ({"address": None, "netmask": None}, "network_config", "chip 3: address none, the file has 10.20.0.13"),
        ({"netmask": "255.255.0.0"}, "network_config", "chip 3: netmask 255.255.0.0, the file has 255.255.255.0"),
        ({"gateway": None}, "network_config", "chip 3: gateway none, the file has 10.20.0.1"),
        ({"configured": dict(NONE, mtu=1500)}, "network_config", "chip 3: mtu 4096, the file has 1500"),
        ({"configured": dict(NONE, tls=True)}, "network_config", "chip 3: tls off, the file has on"),
        ({"address": None, "configured": None}, "network_address", "chip 3 has none"),
        ({"net_health": "Unreachable"}, "network_health", "chip 3: Unreachable"),
        ({"link": None, "problems": {"link": "Cmd execute failed!"}}, "network_ports", "chip 3: Cmd execute failed!"),
        (
            {"optical": module(rx_power=[0.9, 0.01])},
            "network_optical",
            "chip 3: received power of lane 1: 0.0100 mW, limits 0.1400 to 3.5000 mW",
        ),
        ({"optical": module(media_snr=[23.0, 9.5])}, "network_optical", "chip 3: media SNR of lane 1: 9.5 dB, less than 12 dB"),
    ],
)
def test_one_thing_is_wrong(ports, changes, name, told):
    ports["chips"][3].update(changes)
    found = wrong(ports)
    assert found[name][0] == told
    # A different address has a different netmask with it; nothing else is told.
    assert set(found) == {name} and len(found[name]) <= 2


@pytest.mark.parametrize(
    "changes",
    [
        {"net_health": "Init"},
        {"net_health": "Unknown"},
        {"net_health": "Detect ip set"},
        # By DHCP: the file has no address, or one of before.
        {"address": "10.20.0.99", "configured": dict(NONE, address="10.20.0.13", dhcp=True)},
        # Set by something else than hccn_tool.
        {"configured": None},
        {"configured": dict(NONE)},
        # Nothing uses it.
        {"link": "DOWN", "address": None, "netmask": None, "configured": None, "optical": {"present": False}},
        {"link": "DOWN", "address": None, "netmask": None, "configured": None, "net_health": "Fault"},
        # Unsupported, or not read.
        {"optical": None},
        {"speed": None, "fec": None, "mtu": None, "tls": None, "configured": dict(NONE, mtu=4096, tls=True)},
        {"address": None, "netmask": None, "problems": {"ip": "cannot parse"}},
        {"optical": module(rx_power=[None, None], tx_power=[], media_snr=[0.0, None])},
        {"optical": module(rx_power=[0.0, 0.0], rx_power_low=None)},
        {"optical": module(rx_power=[0.0, 0.0], rx_power_low=0.0, rx_power_high=0.0)},
    ],
)
def test_no_false_alarm(ports, changes):
    ports["chips"][3].update(changes)
    assert wrong(ports) == {}


def test_the_gateway_of_a_910a(ports):
    """Its chips share one, which the file has for one of them."""
    ports["chips"][3]["gateway"] = "10.20.7.1"
    assert wrong(ports, "910A") == {} and "network_config" in wrong(ports, "910B")


def test_a_host_without_ports_and_one_that_does_not_use_them(ports):
    for port in ports["chips"]:
        port.update(link="DOWN", optical={"present": False}, net_health="Fault")
    ports["cabled"] = False
    assert wrong(ports) == {}
    assert network_checks.notes(ports) == ["No network port of the chips has a link or an optical module, so they were not checked"]
    without = {"roce": False, "reason": "310P", "cabled": False, "chips": [], "config": {"exists": False, "problems": []}}
    assert network_checks.findings(without, "310P") == [] and network_checks.notes(without) == []


def test_a_dead_switch(ports):
    for port in ports["chips"]:
        port.update(link="DOWN", net_health="Fault", optical=module(rx_power=[0.0, 0.0]))
    found = wrong(ports)
    assert len(found["network_link"]) == 8 and set(found) == {"network_link", "network_optical"}
    assert found["network_optical"][7] == "chip 7: received power of lanes 0, 1: 0.0000, 0.0000 mW, limits 0.1400 to 3.5000 mW"


def test_a_long_list_is_shortened(ports):
    finding = network_checks.Finding("network_link", "up", ["chip %d is down" % number for number in range(16)], "advice")
    assert network_checks.phrases(finding).endswith("chip 7 is down; and 8 more")


def test_most_chips_have_no_address(ports):
    """A host that uses some of its ports."""
    for port in ports["chips"][2:]:
        port.update(address=None, netmask=None, configured=None)
    assert wrong(ports) == {}


def test_bad_values_in_the_file(ports):
    ports["config"]["problems"] = ["address_3 in /etc/hccn.conf is 'x', which is not an IPv4 address"]
    assert wrong(ports) == {"network_config": ports["config"]["problems"]}


def test_what_is_unknown_is_told_once(ports):
    for port in ports["chips"]:
        port["problems"] = {"fec": "cannot parse"}
    assert wrong(ports) == {}
    assert network_checks.notes(ports) == ["Chip 0, 1, 2, 3, 4, 5, 6, 7: cannot parse"]
