# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_ports, hccn_tool

from support.host.hccn import Hccn, chips_of_host, optical


def gather(hccn, tmp_path, total=3000, **limits):
    limits = dict({"timeout": 300, "lock_wait": 300, "busy_wait": 300}, **limits)
    tool = hccn_tool.HccnTool(str(hccn.tree), lock=str(tmp_path / "lock"), **limits)
    ports = hccn_ports.gather(str(hccn.tree), str(tmp_path), total=total, tool=tool)
    json.dumps(ports)  # what a module can return
    return ports


@pytest.fixture
def hccn(tmp_path):
    chips_of_host(tmp_path)
    hccn = Hccn(tmp_path / "driver")
    hccn.config(tmp_path)
    return hccn


def test_all_is_well(hccn, tmp_path):
    ports = gather(hccn, tmp_path)
    assert ports["roce"] and ports["cabled"] and ports["reason"] is None
    assert ports["config"] == {"exists": True, "problems": []}
    first, second = ports["chips"]
    assert first["optical"].pop("present") is True and first["optical"].pop("rx_power_low") == 0.1445
    assert {name: value for name, value in first.items() if name != "optical"} == {
        "chip": 0, "link": "UP", "speed": 200000, "address": "10.20.0.10", "netmask": "255.255.255.0", "gateway": "10.20.0.1",
        "net_health": "Success", "tls": False, "fec": "rs", "mtu": 4096, "problems": {},
        "configured": {"address": "10.20.0.10", "netmask": "255.255.255.0", "gateway": "10.20.0.1", "mtu": None, "tls": None,
                       "dhcp": False},
    }  # fmt: skip
    assert second["address"] == "10.20.0.11"
    assert all(call.endswith(" -g") for call in hccn.calls), "nothing is changed"


@pytest.mark.parametrize("device, told", [("d500", "310P"), ("d100", "310"), ("d806", "950")])
def test_families_without_such_ports_are_not_asked(tmp_path, device, told):
    chips_of_host(tmp_path, device=device)
    hccn = Hccn(tmp_path / "driver")
    ports = gather(hccn, tmp_path)
    assert not ports["roce"] and ports["chips"] == [] and told in ports["reason"]
    assert hccn.calls == []


def test_a_host_without_chips_and_one_without_the_tool(tmp_path):
    hccn = Hccn(tmp_path / "driver")
    assert gather(hccn, tmp_path)["reason"] == "this host has no chips"
    chips_of_host(tmp_path)
    (hccn.tree / "tools/hccn_tool").unlink()
    assert "has no %s/tools/hccn_tool" % hccn.tree in gather(hccn, tmp_path)["reason"]


def test_a_product_that_the_tool_does_not_support(hccn, tmp_path):
    for chip in (0, 1):
        hccn.answer(chip, "link", "The command is not supported on this product.\n")
    ports = gather(hccn, tmp_path)
    assert not ports["roce"] and "no such ports" in ports["reason"]


def test_ports_that_nobody_uses_are_told_from_dead_ones(hccn, tmp_path):
    """A host without optical modules serves by itself; one with modules whose ports are all down has lost its switch."""
    for chip in (0, 1):
        hccn.answer(chip, "link", "link status: DOWN\n")
    assert gather(hccn, tmp_path)["cabled"]
    for chip in (0, 1):
        hccn.answer(chip, "optical", optical("not present"))
    assert not gather(hccn, tmp_path)["cabled"]
    hccn.answer(1, "optical", "Optical module is not present.\n")
    ports = gather(hccn, tmp_path)
    assert not ports["cabled"] and ports["chips"][1]["optical"] == {"present": False}
    hccn.answer(1, "optical", "what?\n")
    assert gather(hccn, tmp_path)["cabled"], "what cannot be read may be there"


def test_what_cannot_be_read_of_one_chip_is_no_more_than_that(hccn, tmp_path):
    hccn.answer(1, "speed", "garbage\n")
    hccn.answer(1, "gateway", "Get gateway failed, because no gateway was preset there!\n", fails=True)
    first, second = gather(hccn, tmp_path)["chips"]
    assert first["problems"] == {} and list(second["problems"]) == ["speed"]
    assert second["speed"] is None and second["gateway"] is None and second["mtu"] == 4096


def test_nothing_is_asked_after_a_hang(hccn, tmp_path):
    hccn.mark(0, "ip", "hangs")
    first, second = gather(hccn, tmp_path, timeout=1)["chips"]
    assert hccn.calls[-1] == "-i 0 -ip -g"
    assert first["link"] == "UP" and "did not end within 1 s" in first["problems"]["mtu"]
    assert second["link"] is None and "did not end within 1 s" in second["problems"]["link"]


def test_the_time_for_all_is_limited(hccn, tmp_path):
    chips = gather(hccn, tmp_path, total=0)["chips"]
    assert hccn.calls == [] and all("took too long" in chip["problems"]["link"] for chip in chips)


def test_a_file_that_cannot_be_read_is_a_problem(hccn, tmp_path):
    (tmp_path / "etc/hccn.conf").unlink()
    (tmp_path / "etc/hccn.conf").mkdir()
    ports = gather(hccn, tmp_path)
    assert "/etc/hccn.conf" in ports["config"]["problems"][0]
    assert ports["chips"][0]["configured"] is None and ports["chips"][0]["address"] == "10.20.0.10"
