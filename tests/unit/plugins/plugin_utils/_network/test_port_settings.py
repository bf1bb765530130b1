# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._network.port_settings import outliers

from support.fleet.ports import LAYOUTS, changed, fleet


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("hosts", [1, 2, 32])
def test_no_false_alarm(layout, hosts):
    assert outliers(list(fleet(layout, hosts).values())) == []


@pytest.mark.parametrize("layout", ["one network", "rails", "racks"])
def test_a_chip_with_tls(layout):
    (finding,) = outliers(changed(fleet(layout), (5, 3), tls=True))
    assert finding.kind == "tls" and finding.hosts == ("npu-05",)
    assert finding.text.startswith("TLS is on for chip 3 of npu-05, and not for the ")


def test_a_host_with_tls():
    ports = [dataclasses.replace(port, tls=port.host == "npu-05") for port in fleet("rails").values()]
    (finding,) = outliers(ports)
    assert finding.text == "TLS is on for 8 chips of npu-05, and not for the 248 other chips in the same network"


def test_two_hosts_that_differ():
    ports = [dataclasses.replace(port, tls=port.host == "npu-01") for port in fleet("rails", 2).values()]
    (finding,) = outliers(ports)
    assert finding.hosts == ("npu-00", "npu-01")
    assert finding.text == "TLS is on for 8 chips of npu-01, and off for 8 chips of npu-00, in the same network"


@pytest.mark.parametrize("field, values", [("tls", (True, False)), ("mtu", (1500, 4096))])
def test_sites_that_share_no_network_may_differ(field, values):
    ports = [dataclasses.replace(port, **{field: values[int(port.host[4:]) < 8]}) for port in fleet("racks", 16).values()]
    assert outliers(ports) == []


def test_an_mtu():
    (finding,) = outliers(changed(fleet("rails"), (5, 3), mtu=1500))
    assert finding.kind == "mtu" and finding.hosts == ("npu-05",)
    assert finding.text == "The MTU is 1500 bytes for chip 3 of npu-05, and 4096 bytes for the 255 other chips in the same network"


def test_half_of_the_hosts_may_have_another_mtu():
    ports = [dataclasses.replace(port, mtu=1500 if port.host < "npu-16" else 4096) for port in fleet("rails").values()]
    assert outliers(ports) == []


def test_a_slow_link():
    (finding,) = outliers(changed(fleet("rails"), (5, 3), speed=100000))
    assert finding.text == "The link of chip 3 of npu-05 runs at 100000 Mb/s, those of the 7 other chips of the host at 200000 Mb/s"


@pytest.mark.parametrize("changes", [{"link": "DOWN", "speed": 0}, {"speed": None}, {"tls": None, "mtu": None}])
def test_what_is_unknown_is_no_outlier(changes):
    assert outliers(changed(fleet("rails"), (5, 3), **changes)) == []


def test_hosts_with_other_links_may_be_slower():
    ports = [dataclasses.replace(port, speed=100000 if port.host < "npu-03" else 200000) for port in fleet("rails").values()]
    assert outliers(ports) == []
