# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver that is no good, for three nodes that are alike and may all be upgraded at once: it is tried on one of them."""

from __future__ import annotations

import json
import os

import pytest

from support.lab.observer import LAST, STATE
from support.lab.rollout import NPU_NODES, make_driver, proof, reboot, reset, slots, untouched, upgrade, version_of, watch
from support.paths import CHECKOUT
from support.patience import PATIENCE

MODEL, DISGUISED = "npu-a", ("npu-b", "npu-c")
CHIPS, RESOURCE = "8", "huawei.com/Ascend910"
# What makes a node of the lab what it is (lab/sim/README.md). npu-c has the other one already, and cannot be written there.
HARDWARE, SYSTEM = "/etc/npusim/hardware.json", "/usr/lib/os-release"


def as_new(lab) -> None:
    for node in DISGUISED:
        lab.kubectl("delete", "node", node)  # with the resources of other chips; the new kubelet registers
        (lab.state / "nodes" / node / "made").unlink(missing_ok=True)
    lab._run([str(CHECKOUT / "lab" / "lab"), "up"])


@pytest.fixture(scope="module")
def alike(lab, installed):
    """The other nodes have the chips and the OS of npu-a."""
    reset(lab)
    hardware = json.loads(lab.ssh(MODEL, f"cat {HARDWARE}").stdout)
    system = lab.ssh(MODEL, f"cat {SYSTEM}").stdout
    try:
        as_new(lab)
        for node in DISGUISED:
            text = json.dumps({**hardware, "node": node})
            lab.ssh(node, f"cat > {HARDWARE} <<'EOF'\n{text}\nEOF")
            if lab.ssh(node, f"cat {SYSTEM}").stdout != system:
                lab.ssh(node, f"cat > {SYSTEM} <<'EOF'\n{system}EOF")
            reboot(lab, node)
        lab.playbook("install")
        yield lab
    finally:
        if not os.environ.get("NPU_LAB_GOES"):
            as_new(lab)
            reset(lab)
            lab.playbook("install")


def test_a_bad_driver_is_tried_on_one_node_of_three(alike):
    reset(alike)
    upgrade(alike, npu_upgrade_max_parallel=0)
    make_driver(alike, "25.5.3", "load-fails")
    old = version_of(alike, MODEL)
    with watch(alike) as observer:
        text = upgrade(alike, expect=1, npu_driver_version="25.5.3", npu_upgrade_max_parallel=3)
    (failed,) = (name for name, node in observer.now().items() if node.labels.get(STATE) == "upgrade-failed")
    others = [name for name in NPU_NODES if name != failed]
    # Into the bad driver and back again, and no other node was so much as cordoned.
    assert proof(alike, observer, {failed: 2}, old, 3, halted=True) == []
    assert untouched(observer, *others) == []
    assert {observer.now()[name].labels.get(STATE) for name in others} == {"upgrade-required"}
    assert {version_of(alike, name) for name in others} == {old}
    told = json.loads(observer.now()[failed].annotations[LAST])
    assert told["outcome"] == "rolled-back" and "drv_pcie_host" in told["failure"]
    why = slots(alike)["halted"]["why"]
    assert f"The upgrade of {failed} to 25.5.3 failed" in why and why in text, text[-4000:]
    alike.wait_for(
        lambda: alike.node(failed)["status"]["allocatable"].get(RESOURCE) == CHIPS, PATIENCE, "all chips are allocatable again"
    )
