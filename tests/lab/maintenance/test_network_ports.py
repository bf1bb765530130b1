# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network ports of the chips around a reboot: they get the addresses of /etc/hccn.conf again, or the node is not given back."""

from __future__ import annotations

import json

import pytest

from support.lab.observer import LAST
from support.lab.rollout import OTHER, TAKEOVER, proof, upgrade, version_of, watch

NODE, CHIPS, BROKEN = "npu-a", 8, 3
STRICT = {"npu_validate_network": "strict"}


@pytest.fixture
def configured(idle):
    """The node with a file of its addresses. With one, the chips have none after a boot until the file is applied."""
    lines = [f"address_{chip}={address(chip)}\\nnetmask_{chip}=255.255.0.0\\n" for chip in range(CHIPS)]
    idle.ssh(NODE, f"printf '{''.join(lines)}' >/etc/hccn.conf")
    yield idle
    idle.fault(NODE, "clear")
    idle.ssh(NODE, "rm /etc/hccn.conf")


def address(chip: int) -> str:
    return f"10.64.11.{10 + chip}"


def addresses(lab) -> list[str | None]:
    return [chip["address"] for chip in lab.module(NODE, "npu_hccn_info")["chips"]]


def test_addresses_come_back_or_the_node_does_not(configured):
    old = version_of(configured, NODE)
    with watch(configured) as observer:
        upgrade(configured, f"--limit={NODE}", npu_driver_version=OTHER[old], **STRICT)
    assert proof(configured, observer, {NODE: 1}, OTHER[old]) == []
    assert addresses(configured) == [address(chip) for chip in range(CHIPS)]

    configured.fault(NODE, "recovery-fails", str(BROKEN))
    text = upgrade(configured, f"--limit={NODE}", expect=1, npu_driver_version=old, **STRICT)
    node = configured.node(NODE)
    told = json.loads(node["metadata"]["annotations"][LAST])
    assert f"the address of chip {BROKEN} is gone, and was {address(BROKEN)}" in told["failure"], text[-6000:]
    assert node["spec"].get("unschedulable"), "a node whose ports are worse was given back"
    told = f"The port of chip {BROKEN} may have no address"
    # On a busy machine, journald writes it some time after it was said.
    configured.wait_for(lambda: told in configured.ssh(NODE, "journalctl -b -u npu-driver").stdout, 60, "the journal has it")
    assert addresses(configured).count(None) == 1

    # What docs/network.md says to do then.
    configured.fault(NODE, "clear")
    configured.ssh(NODE, f"/usr/local/bin/hccn_tool -i {BROKEN} -cfg recovery")
    upgrade(
        configured,
        f"--limit={NODE}",
        npu_driver_version=old,
        npu_upgrade_clear_halt=True,
        npu_upgrade_retry=True,
        **STRICT,
        **TAKEOVER,
    )
    assert version_of(configured, NODE) == old
    assert not configured.node(NODE)["spec"].get("unschedulable")
    assert addresses(configured) == [address(chip) for chip in range(CHIPS)]
