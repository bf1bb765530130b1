# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import hccn_tool
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._host.files import take_lock

from support.host.hccn import Hccn


@pytest.fixture
def hccn(tmp_path):
    return Hccn(tmp_path / "driver")


def tool(hccn, **limits):
    """With limits that no machine is too slow for."""
    limits = dict({"timeout": 300, "lock_wait": 300, "busy_wait": 300}, **limits)
    return hccn_tool.HccnTool(str(hccn.tree), lock=str(hccn.tree.parent / "lock"), **limits)


def test_it_finds_its_libraries_and_only_asks(hccn):
    assert tool(hccn).get(1, "link") == "UP"
    assert tool(hccn).get(1, "ip") == ("10.20.0.11", "255.255.255.0")
    assert hccn.calls == ["-i 1 -link -g", "-i 1 -ip -g"]


@pytest.mark.parametrize(
    "item, text, kind",
    [
        ("gateway", "Get gateway failed, because no gateway was preset there!\n", hccn_tool.Absent),
        ("ip", "Get ipconf failed, because no ip was preset there!\n", hccn_tool.Absent),
        ("optical", "Optical module is not present.\n", hccn_tool.Absent),
        ("optical", "The command is not supported on this product.\n", hccn_tool.Unsupported),
        ("optical", "Command unsupported on this optical module.\n", hccn_tool.Unsupported),
    ],
)
@pytest.mark.parametrize("fails", [True, False])
def test_what_a_chip_does_not_have(hccn, item, text, kind, fails):
    hccn.answer(0, item, text, fails)
    with pytest.raises(kind, match=item):
        tool(hccn).get(0, item)


def test_a_failure_is_passed_on(hccn):
    hccn.answer(0, "link", "The device is not exist!\n\x1b[31m" + "x" * 10000, fails=True)
    with pytest.raises(NpuError, match="hccn_tool -i 0 -link -g failed with status 1: The device is not exist!") as caught:
        tool(hccn).get(0, "link")
    assert len(caught.value.message) < 400 and caught.value.message.isprintable()


def test_a_call_that_another_client_keeps_out_is_repeated(hccn):
    hccn.mark(0, "link", "busy")
    assert tool(hccn).get(0, "link") == "UP"
    assert len(hccn.calls) == 2


def test_a_tool_that_is_always_busy_is_no_verdict(hccn):
    hccn.answer(0, "link", "hccn_tool is busy, please try again.\n")
    with pytest.raises(NoVerdict, match="was busy for 0 s"):
        tool(hccn, busy_wait=0).get(0, "link")


def test_a_hang_ends_at_the_limit(hccn):
    hccn.mark(0, "link", "hangs")
    with pytest.raises(hccn_tool.Hangs, match="-i 0 -link -g did not end within 1 s"):
        tool(hccn, timeout=1).get(0, "link")


def test_no_second_one_beside_one_that_cannot_be_killed(hccn):
    held = take_lock(str(hccn.tree.parent / "lock"))
    try:
        with pytest.raises(NoVerdict, match="no second one is started"):
            tool(hccn, lock_wait=0).get(0, "link")
    finally:
        os.close(held)
    assert hccn.calls == []


def test_more_than_it_ever_prints_is_not_read(hccn):
    hccn.answer(0, "link", "link status: UP\n" * 2**20)
    with pytest.raises(NpuError, match="printed more than 64 KiB"):
        tool(hccn).get(0, "link")


def test_a_program_of_another_machine(hccn):
    (hccn.tree / "tools/hccn_tool").write_text("\x7fELF not really")
    with pytest.raises(NpuError, match="cannot be started"):
        tool(hccn).get(0, "link")


def test_pings(hccn):
    hccn.ping(0, "10.20.0.12")
    hccn.ping(0, "10.20.0.13", received=0)
    assert tool(hccn).ping(0, "10.20.0.12") == (3, 3)
    assert tool(hccn).ping(0, "10.20.0.13") == (3, 0)
    assert hccn.calls == ["-i 0 -ping -g address 10.20.0.12", "-i 0 -ping -g address 10.20.0.13"]
    with pytest.raises(NpuError, match="printed no result: Cmd execute failed!"):
        tool(hccn).ping(0, "10.20.0.14")


@pytest.mark.parametrize("address", ["", "-s", "10.0.0.1; reboot", "10.0.0", "::1", "224.0.0.1", "{{ 1 }}", None])
def test_what_is_no_address_is_not_passed_on(hccn, address):
    with pytest.raises(NpuError, match="is not an IPv4 address"):
        tool(hccn).ping(0, address)
    assert hccn.calls == []
