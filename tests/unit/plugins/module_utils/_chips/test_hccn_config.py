# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_config
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


def test_a_file_as_the_tool_writes_it():
    config = hccn_config.parse(
        "address_0=29.1.137.205\nnetmask_0=255.255.0.0\nnetdetect_0=29.1.0.1\ngateway_0=29.1.0.1\nsend_arp_status_0=1\n"
        "tls_enable_0=0\nmtu_0=4200\naddress_7=29.1.170.143\nnetmask_7=255.255.0.0\nudhcpc_enable_3=1\n# address_5=1.2.3.4\n"
    )
    assert config.exists and config.problems == [] and sorted(config.chips) == [0, 3, 7]
    assert config.of(0) == {
        "address": "29.1.137.205", "netmask": "255.255.0.0", "gateway": "29.1.0.1", "mtu": 4200, "tls": False, "dhcp": False
    }  # fmt: skip
    assert config.of(3)["dhcp"] and config.of(3)["address"] is None
    assert config.of(5) is None


def test_the_first_of_two_lines_counts():
    """As for the tool."""
    assert hccn_config.parse("address_0=10.0.0.1\naddress_0=10.0.0.2\n").of(0)["address"] == "10.0.0.1"


@pytest.mark.parametrize(
    "line",
    ["address_0=10.0.0.1\r", "address_0= 10.0.0.1", "address_0=::1", "netmask_0=255.0.255.0", "tls_enable_0=yes", "mtu_0=-1"],
)
def test_a_value_that_is_none_is_a_problem(line):
    config = hccn_config.parse(line + "\n")
    assert len(config.problems) == 1 and config.problems[0].startswith(line.partition("=")[0] + " in /etc/hccn.conf is ")
    assert config.problems[0].isprintable()


def test_lines_that_the_tool_does_not_read():
    config = hccn_config.parse(
        "\n=\naddress=1\naddress_x=1\naddress_0000000000000001=1.2.3.4\nother_0=1\naddress_1=%s\n" % ("1" * 400)
    )
    assert config.chips == {} and config.problems == []


def test_thousands_of_bad_lines_are_twenty_problems():
    assert len(hccn_config.parse("".join("address_%d=x\n" % number for number in range(1000))).problems) == 20


def test_there_is_no_file(tmp_path):
    config = hccn_config.read(str(tmp_path))
    assert not config.exists and config.chips == {}


def test_a_file_that_is_too_large(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/hccn.conf").write_bytes(b"#" * (hccn_config.MOST_BYTES + 1))
    with pytest.raises(NpuError, match="larger than 1000 KiB"):
        hccn_config.read(str(tmp_path))


def test_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / "etc").mkdir()
    os.mkfifo(tmp_path / "etc/hccn.conf")
    with pytest.raises(NpuError, match="is not a file"):
        hccn_config.read(str(tmp_path))
