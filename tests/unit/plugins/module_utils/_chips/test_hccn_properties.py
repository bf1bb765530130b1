# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever hccn_tool prints and /etc/hccn.conf contains: values of the documented form, or a sentence, in time."""

from __future__ import annotations

import ipaddress

from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_config, hccn_output
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from hypothesis import given
from hypothesis import strategies as st

from support.host.hccn import TLS, optical
from support.properties import bounded, damaged, few, megabytes

TEXTS = [
    "link status: UP\n",
    "Speed: 200000 Mb/s\n",
    "ipaddr:10.0.0.3\nnetmask:255.255.255.0\n",
    "default gateway:10.0.0.1, Iface:eth0\n",
    "net health status: Success\n",
    TLS % (0, 1),
    "fec mode: rs FEC mode\n",
    "mtu:4096\n",
    optical(),
    "3 packets transmitted, 2 received, 33.33% packet loss\n",
]
CONFIG = "address_0=10.0.0.3\nnetmask_0=255.255.255.0\ngateway_0=10.0.0.1\nmtu_0=4096\ntls_enable_0=1\nudhcpc_enable_1=1\n"
ITEMS = st.sampled_from(sorted(hccn_output.PARSERS))


def check(item, text):
    try:
        with bounded():
            value = hccn_output.PARSERS[item](text)
    except NpuError as exc:
        assert len(exc.message) < 400 and exc.message.isprintable()
        return
    if item == "ip":
        assert all(ipaddress.IPv4Address(part) for part in value)
    if item == "optical":
        numbers = [number for known in value.values() if isinstance(known, list) for number in known if number is not None]
        assert all(0 <= number < 1e8 for number in numbers)
        assert all(len(known) <= 10 for known in value.values() if isinstance(known, list))


@given(ITEMS, damaged(st.sampled_from(TEXTS), pieces=(":", " : ", "NA", "[1]", " mW")))
def test_a_damaged_answer_is_read_or_refused(item, text):
    check(item, text)
    hccn_output.ping(text)


@few
@given(ITEMS, megabytes({"link status: UP\n", "Rx Power0 : 1.0 mW\n", "optical info:\n", " ", "9", "a" * 31 + " "}))
def test_megabytes_are_read_or_refused_in_time(item, text):
    check(item, text)
    with bounded():
        hccn_output.ping(text)
        hccn_config.parse(text)


@given(damaged(st.just(CONFIG), pieces=("=", "_", "#", "address_0=", "999")))
def test_a_damaged_file_is_read(text):
    with bounded():
        config = hccn_config.parse(text)
    assert all(problem.isprintable() and len(problem) < 300 for problem in config.problems)
    for chip, known in config.chips.items():
        assert 0 <= chip <= 999 and set(known) == {"address", "netmask", "gateway", "mtu", "tls", "dhcp"}
        assert all(known[name] is None or ipaddress.IPv4Address(known[name]) for name in ("address", "netmask", "gateway"))


@given(st.integers(0, 63), st.integers(0x01000000, 0x7EFFFFFF).map(lambda number: str(ipaddress.IPv4Address(number))))
def test_an_address_is_read_as_it_was_written(chip, address):
    assert hccn_config.parse("address_%d=%s\n" % (chip, address)).of(chip)["address"] == address
