# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts that boot into another kernel: with a driver for it, without one, and together with an upgrade."""

from __future__ import annotations

import json
import os
import uuid

import pytest

from support.lab.observer import LAST
from support.lab.rollout import ROOT, make_driver, proof, reboot, reset, upgrade, version_of, watch
from support.paths import CHECKOUT

NODE = "npu-a"
OLD, NEW, BAD = "25.5.0", "25.5.1", "25.5.8"
MACHINE, KERNEL = os.uname().release, "9.9.9-lab"
# No earlier run on this lab has put a driver for it into the registry.
BARE = f"9.9.{uuid.uuid4().int % 10**9}"
# No earlier test has staged a driver for it, which stays as the previous one.
LATER = f"9.8.{uuid.uuid4().int % 10**9}"
ONLY = f"--limit={NODE}"
CONDITION = "npuops.ascend/DriverReady"


@pytest.fixture(scope="module")
def images(lab, installed):
    make_driver(lab, OLD, kernel=KERNEL)


@pytest.fixture
def node(idle, images):
    """A node on the machine's kernel and on the old driver, on which nothing else is staged."""
    if version_of(idle, NODE) != OLD:
        upgrade(idle, ONLY, npu_driver_version=OLD)
    idle.module(NODE, "npu_driver_stage", state="absent")
    yield idle
    idle.kernel(NODE, "remove")
    if idle.ssh(NODE, "uname -r").stdout.strip() != MACHINE:
        reboot(idle, NODE)
    reset(idle)


def link(lab, name: str = "driver") -> str:
    return lab.ssh(NODE, f"readlink {ROOT}/{name}").stdout.strip().split("/")[1]


def facts(lab) -> dict:
    return lab.module(NODE, "npu_facts")["npu"]


def boot(lab) -> None:
    """Reboot the host, and wait until its boot unit knows whether the driver works."""
    reboot(lab, NODE)
    decided = "ls /run/npuops/driver-ready /run/npuops/driver-failed 2>/dev/null"
    lab.wait_for(lambda: lab.ssh(NODE, decided, check=False).stdout, 60, "the driver's boot unit has ended")


def condition(lab) -> tuple[str, str]:
    found = {one["type"]: one for one in lab.node(NODE)["status"]["conditions"]}.get(CONDITION, {})
    return found.get("reason", ""), found.get("message", "")


def plan(lab, **variables: object) -> str:
    return lab.playbook("plan", ONLY, **variables).stdout


def test_a_host_has_its_driver_in_a_new_kernel_and_back_in_the_old_one(node):
    good = link(node)
    node.kernel(NODE, "install", KERNEL)
    assert facts(node)["next_kernel"] == {"kernel": KERNEL, "release": None, "symvers": None}
    told = plan(node, npu_driver_version=OLD)
    assert f"its next boot is into kernel {KERNEL}, and driver {OLD} is not staged for that yet" in told, told
    node.playbook("install", ONLY)
    staged = facts(node)["next_kernel"]["release"]
    assert staged.startswith(f"{OLD}-{KERNEL}-") and link(node) == link(node, "good") == good
    again = node.playbook("install", ONLY).stdout
    assert "changed=0" in again.split("PLAY RECAP")[1], again
    # Pruning knows what the next boot needs.
    assert node.module(NODE, "npu_driver_stage", state="absent")["removed"] == []

    boot(node)
    assert node.ssh(NODE, "uname -r").stdout.strip() == KERNEL
    assert (link(node), link(node, "good")) == (staged, good)
    node.playbook("validate", ONLY)
    assert "1 node" in (told := plan(node, npu_driver_version=OLD)) and "up-to-date" in told, told

    node.kernel(NODE, "remove")
    boot(node)
    assert link(node) == good
    node.playbook("validate", ONLY)


def test_a_kernel_without_a_driver_says_so_everywhere(node):
    node.playbook("install", ONLY, npu_driver_kernels=["next", KERNEL])
    node.kernel(NODE, "install", BARE)
    blocked = plan(node, npu_driver_version=NEW)
    assert f"its next boot is into kernel {BARE}, and driver {NEW} cannot be staged for that" in blocked, blocked
    refused = node.playbook("upgrade", ONLY, npu_driver_version=NEW, npu_upgrade_auto=True, check=False)
    assert refused.returncode != 0 and "the plan is not green" in refused.stdout

    boot(node)
    failed = node.playbook("status", ONLY, check=False).stdout
    assert f"but this host runs {BARE}, and no release of driver {OLD} is staged for that kernel" in failed, failed
    node.wait_for(lambda: condition(node)[0] == "NoDriverForKernel", 60, "the Node says why it has no driver")
    assert BARE in condition(node)[1]

    # The image comes later: no reboot is needed.
    make_driver(node, OLD, kernel=BARE)
    node.playbook("install", ONLY)
    assert link(node).startswith(f"{OLD}-{BARE}-")
    node.wait_for(lambda: condition(node)[0] == "DriverResponds", 120, "the Node says that the driver works")


def test_a_new_kernel_and_a_new_driver_share_one_reboot(node):
    make_driver(node, NEW, kernel=KERNEL)
    node.kernel(NODE, "install", KERNEL)
    with watch(node) as observer:
        told = upgrade(node, ONLY, npu_driver_version=NEW)
        assert f"its reboot is into kernel {KERNEL}" in told
        assert proof(node, observer, {NODE: 1}, NEW, only=NODE) == []
    assert link(node).startswith(f"{NEW}-{KERNEL}-") and node.ssh(NODE, "uname -r").stdout.strip() == KERNEL
    record = json.loads(node.node(NODE)["metadata"]["annotations"][LAST])
    assert record["to"]["release"] == link(node)


def test_the_upgrade_updates_the_os_as_well(node, tmp_path):
    make_driver(node, NEW, kernel=LATER)
    update = {"ansible.builtin.command": {"argv": [str(CHECKOUT / "lab" / "kernel"), NODE, "install", LATER]}}
    tasks = tmp_path / "os.yml"
    tasks.write_text(json.dumps([{"name": "Update the OS", "delegate_to": "localhost", **update}]), encoding="utf-8")
    variables = {"npu_driver_version": NEW, "npu_upgrade_with_os": str(tasks)}
    boot_id = node.node(NODE)["status"]["nodeInfo"]["bootID"]
    told = upgrade(node, ONLY, expect=2, **variables)
    assert f"the next boot of the host loads kernel {LATER}, for which driver {NEW} is not staged" in told, told
    assert node.node(NODE)["status"]["nodeInfo"]["bootID"] == boot_id and not node.node(NODE)["spec"].get("unschedulable")
    node.kernel(NODE, "remove")

    with watch(node) as observer:
        upgrade(node, ONLY, **variables, npu_driver_kernels=["next", LATER], npu_upgrade_clear_halt=True, npu_upgrade_retry=True)
        assert proof(node, observer, {NODE: 1}, NEW, only=NODE) == []
    assert link(node).startswith(f"{NEW}-{LATER}-") and node.ssh(NODE, "uname -r").stdout.strip() == LATER


def test_a_driver_that_fails_in_a_new_kernel_goes_back_within_that_kernel(node):
    make_driver(node, BAD)
    make_driver(node, BAD, "load-fails", kernel=KERNEL)
    node.kernel(NODE, "install", KERNEL)
    upgrade(node, ONLY, expect=2, npu_driver_version=BAD)
    assert node.ssh(NODE, "uname -r").stdout.strip() == KERNEL
    assert link(node).startswith(f"{OLD}-{KERNEL}-")
    assert not node.node(NODE)["spec"].get("unschedulable")
    node.playbook("validate", ONLY)
    upgrade(node, ONLY, npu_driver_version=OLD, npu_upgrade_clear_halt=True, npu_upgrade_retry=True)
