# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outputs of hccn_tool, after its source and captures in public guides."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_output
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host.hccn import TLS, optical


@pytest.mark.parametrize(
    "item, text, value",
    [
        ("link", "link status: UP\n", "UP"),
        ("link", "link status: DOWN\n", "DOWN"),
        ("speed", "Speed: 100000 Mb/s\n", 100000),
        ("speed", "Speed: Unknown!\n", None),
        ("ip", "ipaddr:29.1.137.205\nnetmask:255.255.0.0\n", ("29.1.137.205", "255.255.0.0")),
        # As often as the chip has links.
        ("ip", "ipaddr:10.0.0.3\nnetmask:255.255.255.0\n" * 2, ("10.0.0.3", "255.255.255.0")),
        ("gateway", "default gateway:11.12.165.1, Iface:eth0\n", "11.12.165.1"),
        ("gateway", "default gateway:11.12.165.1\n", "11.12.165.1"),
        ("net_health", "net health status: Success\n", "Success"),
        ("net_health", "net health status: Receive timeout\n", "Receive timeout"),
        ("net_health", "net health status: Socket failed\n", "Socket fail"),
        ("tls", TLS % (3, 0), False),
        ("tls", TLS % (3, 1) + "issuer: hccn_tool is busy, tls switch[0]\n", True),
        ("fec", "fec mode: rs FEC mode\n", "rs"),
        ("mtu", "mtu:1500\n", 1500),
    ],
)
def test_what_each_item_prints(item, text, value):
    assert hccn_output.PARSERS[item](text) == value


def test_an_optical_module():
    info = hccn_output.optical(optical())
    assert info == {
        "present": True,
        "tx_power": [1.201, 1.1904, None],
        "rx_power": [0.9187, 0.992, None],
        "host_snr": [None, None],
        "media_snr": [23.1211, 22.6289],
        "tx_power_high": 3.5481,
        "tx_power_low": 0.2818,
        "rx_power_high": 3.5481,
        "rx_power_low": 0.1445,
    }


def test_a_module_of_one_lane():
    info = hccn_output.optical("optical info:\npresent              : present\nRx Power             : 1.0189 mW\n")
    assert info["rx_power"] == [1.0189] and info["tx_power"] == [] and info["rx_power_low"] is None


@pytest.mark.parametrize("item", sorted(hccn_output.PARSERS))
@pytest.mark.parametrize(
    "text", ["", "\n", "Usage: hccn_tool -i <device>", "\x00\x1b[31mlink status: UP", "{{ 7 * 7 }}", "UP", "9" * 5000]
)
def test_garbage_is_refused(item, text):
    with pytest.raises(NpuError, match="hccn_tool -%s -g printed something that .* cannot parse" % item) as caught:
        hccn_output.PARSERS[item](text)
    assert len(caught.value.message) < 400 and caught.value.message.isprintable()


@pytest.mark.parametrize(
    "item, text",
    [
        ("link", "link status: UP\nlink status: DOWN\n"),
        ("link", "link status: SIDEWAYS\n"),
        ("speed", "Speed: 200 Gb/s\n"),
        ("speed", "Speed: %s Mb/s\n" % ("9" * 4301)),
        ("ip", "ipaddr:10.0.0.300\nnetmask:255.255.255.0\n"),
        ("ip", "ipaddr:010.0.0.3\nnetmask:255.255.255.0\n"),
        ("ip", "ipaddr:10.0.0.3\nnetmask:0.0.0.255\n"),
        ("ip", "ipaddr:10.0.0.3\nnetmask:255.0.255.0\n"),
        ("ip", "ipaddr:10.0.0.3; reboot\nnetmask:255.255.255.0\n"),
        ("ip", "ipaddr:127.0.0.1\nnetmask:255.255.255.0\n"),
        ("ip", "ipaddr:224.0.0.1\nnetmask:255.255.255.0\n"),
        ("ip", "ipaddr:10.0.0.3\n"),
        ("gateway", "default gateway:10.0.0.1 $(reboot)\n"),
        ("net_health", "net health status: Splendid\n"),
        ("tls", "dev_id:0, tls switch[2](0:disable)\n"),
        ("mtu", "mtu:123456\n"),
        ("optical", "optical info:\npresent              : perhaps\n"),
        ("optical", optical(rx_power="-3.1 dBm")),
        ("optical", optical(rx_power="1e400 mW")),
        ("optical", optical(snr="nan dB")),
        ("optical", optical() + "Rx Power0            : 1.0 mW\n" * 300),
    ],
)
def test_a_value_of_another_form_is_no_value(item, text):
    with pytest.raises(NpuError, match="cannot parse"):
        hccn_output.PARSERS[item](text)


@pytest.mark.parametrize(
    "text, counted",
    [
        ("device 0 PING 10.0.0.4\nrecv seq=0,time=0.114000ms\n3 packets transmitted, 3 received, 0.00% packet loss\n", (3, 3)),
        ("recv time out seq=0\n3 packets transmitted, 2 received, 33.33% packet loss\n", (3, 2)),
        ("This pkt ping success!\n1 packets transmitted, 1 received, 0.00% packets loss\n", (1, 1)),
        ("device 0 PING 10.0.0.4\nDestination Host Unreachable\n", (1, 0)),
        ("device 0 PING 10.0.0.4\nrecv time out seq=0\nrecv seq=1,time=0.1ms\n", (2, 1)),
        ("device 0 PING 10.0.0.4\nMessage too long\n", None),
        ("", None),
    ],
)
def test_a_ping(text, counted):
    assert hccn_output.ping(text) == counted
