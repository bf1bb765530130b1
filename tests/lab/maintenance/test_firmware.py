# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware that comes with a driver: in the same drain and reboot, written once, and what becomes of a write that goes wrong."""

from __future__ import annotations

import json
import pathlib

import pytest

from support.host.file_server import FileServer
from support.lab.observer import LAST, STATE
from support.lab.packages import FIND_PACKAGES, firmware_settings, settings
from support.lab.rollout import ROOT, TAKEOVER, make_driver, proof, reset, run, upgrade, version_of, watch
from support.paths import CHECKOUT
from support.patience import PATIENCE, RUN_PATIENCE

NODE, CHIPS = "npu-a", 8
FACTORY, FIRMWARE = "7.8.0.6.201", "7.8.0.7.220"
DRIVER = "25.5.7"
WANTED = {"npu_driver_version": DRIVER, "npu_firmware_policy": "match", "npu_firmware_version": FIRMWARE}
AGAIN = {**WANTED, "npu_upgrade_clear_halt": True, "npu_upgrade_retry": True, **TAKEOVER}
STATE_FILES = "/var/lib/npuops/firmware /var/lib/npuops/firmware.log"


@pytest.fixture(scope="module")
def images(lab, installed):
    make_driver(lab, DRIVER, firmware=FIRMWARE)
    yield
    # Other tests choose between the drivers that the lab has from the start.
    reset(lab)
    as_new(lab)
    upgrade(lab, f"--limit={NODE}", npu_driver_version="25.5.0")


@pytest.fixture
def node(idle, images):
    """A node with another driver, and chips as they come from the factory."""
    as_new(idle)
    if version_of(idle, NODE) == DRIVER:
        upgrade(idle, f"--limit={NODE}", npu_driver_version="25.5.0")
    return idle


def as_new(lab) -> None:
    lab.flash(NODE, "factory")
    lab.ssh(
        NODE, f"rm -f {STATE_FILES}; systemctl stop npuops-firmware.service; systemctl reset-failed npuops-firmware.service; true"
    )


def running(lab) -> list[str]:
    return [chip["running"] for chip in lab.flash(NODE)]


def writes(lab) -> list[int]:
    return [chip["writes"] for chip in lab.flash(NODE)]


def told(lab) -> dict:
    return json.loads(lab.node(NODE)["metadata"]["annotations"][LAST])


def test_the_controller_dies_while_firmware_is_written(node):
    """The host goes on writing, refuses to be rebooted meanwhile, and the next run goes on where the first one was."""
    # Longer than the test: it ends when the fault is cleared.
    node.fault(NODE, "slow-flash", str(RUN_PATIENCE))
    with watch(node) as observer:
        with run(node, f"--limit={NODE}", **WANTED) as one:
            node.wait_for(lambda: f"writes the firmware {FIRMWARE}" in one.text, PATIENCE, "the write begins")
            one.controller.kill()
        refused = node.module(
            NODE, "npu_trial_boot", state="rebooted", generation=10**6, boot_id=observer.now()[NODE].boot_id, refuse_held=False
        )
        assert refused.get("failed") and "is being written into the chips of this host" in refused["msg"], refused
        node.fault(NODE, "clear")
        text = upgrade(node, f"--limit={NODE}", **WANTED, **TAKEOVER)
        assert proof(node, observer, {NODE: 1}, DRIVER, only=NODE) == []
    assert f"firmware {FIRMWARE} written; the reboot activates it" in text
    assert (running(node), writes(node)) == ([FIRMWARE] * CHIPS, [1] * CHIPS)
    assert told(node)["to"]["firmware"] == FIRMWARE
    # Nothing is left to do, and nothing is written again.
    with watch(node) as observer:
        upgrade(node, f"--limit={NODE}", **WANTED)
        assert proof(node, observer, {NODE: 0}, DRIVER, only=NODE) == []
    assert writes(node) == [1] * CHIPS


def test_a_write_that_fails_is_told_and_repeated_only_on_request(node):
    old = version_of(node, NODE)
    node.fault(NODE, "flash-fails", "3")
    with watch(node) as observer:
        upgrade(node, f"--limit={NODE}", expect=1, **WANTED)
        # No reboot was needed to give the node back.
        assert proof(node, observer, {NODE: 0}, old, halted=True, only=NODE) == []
    assert f"the firmware {FIRMWARE} could not be written: the package failed with exit status" in told(node)["failure"]
    before = writes(node)
    node.fault(NODE, "clear")
    text = upgrade(node, f"--limit={NODE}", playbook="plan", **WANTED, npu_upgrade_clear_halt=True)
    assert "after fixing this: -e npu_upgrade_retry=true" in text
    assert writes(node) == before
    # The advice.
    upgrade(node, f"--limit={NODE}", **AGAIN)
    assert running(node) == [FIRMWARE] * CHIPS and version_of(node, NODE) == DRIVER


def test_the_power_is_cut_while_firmware_is_written(node):
    old = version_of(node, NODE)
    node.fault(NODE, "slow-flash", str(RUN_PATIENCE))
    with watch(node) as observer:
        with run(node, f"--limit={NODE}", **WANTED) as one:
            node.wait_for(lambda: f"writes the firmware {FIRMWARE}" in one.text, PATIENCE, "the write begins")
            node._run([str(CHECKOUT / "lab" / "power"), NODE, "cycle"])
            assert one.wait() != 0
        assert proof(node, observer, {NODE: 1}, old, halted=True, unasked=(NODE,), only=NODE) == []
    assert f"the host went down while the firmware {FIRMWARE} was written" in told(node)["failure"]
    assert node.node(NODE)["metadata"]["labels"][STATE] == "upgrade-failed"
    node.fault(NODE, "clear")
    upgrade(node, f"--limit={NODE}", **AGAIN)
    assert running(node) == [FIRMWARE] * CHIPS and version_of(node, NODE) == DRIVER


def test_firmware_that_does_not_take_effect(node):
    old = version_of(node, NODE)
    node.fault(NODE, "flash-ignored", "2")
    with watch(node) as observer:
        upgrade(node, f"--limit={NODE}", expect=1, **WANTED)
        assert proof(node, observer, {NODE: 2}, old, halted=True, only=NODE) == []
    assert f"run the firmware {FACTORY}, {FIRMWARE}, not {FIRMWARE}" in told(node)["failure"]


def test_firmware_alone(node):
    """The node has the driver, but its chips run other firmware."""
    upgrade(node, f"--limit={NODE}", npu_driver_version=DRIVER)
    assert running(node) == [FACTORY] * CHIPS
    with watch(node) as observer:
        text = upgrade(node, f"--limit={NODE}", **WANTED)
        assert proof(node, observer, {NODE: 1}, DRIVER, only=NODE) == []
    assert f"firmware {FACTORY} -> {FIRMWARE}" in text
    assert (running(node), writes(node)) == ([FIRMWARE] * CHIPS, [1] * CHIPS)


def test_firmware_and_driver_from_packages(node, tmp_path):
    """One reboot for both, and nothing is left to do then. What does not fit is told by the plan."""
    wanted = {**settings(node, "910b", "25.5.1"), **firmware_settings(node, "910b", FIRMWARE)}
    release = f"{ROOT}/releases/*-{wanted['npu_driver_package_sha256'][:12]}"
    upgrade(node, f"--limit={NODE}", npu_driver_version="25.5.0")
    node.ssh(NODE, f"rm -rf {release}")
    path = pathlib.Path(wanted["npu_firmware_package"])
    with FileServer({"/" + path.name: path.read_bytes()}) as server, watch(node) as observer:
        wanted["npu_firmware_package"] = server.url(f"/{path.name}?token=t0ken-of-this-test")
        environment = {"XDG_CACHE_HOME": str(tmp_path)}
        bad = {**wanted, "npu_firmware_package_sha256": "0" * 64}
        text = " ".join(upgrade(node, f"--limit={NODE}", expect=1, environment=environment, **bad).split())
        assert "it is another file, or npu_firmware_package_sha256 is wrong. The download was removed" in text
        assert proof(node, observer, {NODE: 0}, "25.5.0", only=NODE) == []
        text = upgrade(node, f"--limit={NODE}", "-vvv", environment=environment, **wanted)
        assert proof(node, observer, {NODE: 1}, "25.5.1", only=NODE) == []
        assert "t0ken-of-this-test" not in text and f"firmware {FACTORY} -> {FIRMWARE}" in text
    assert (running(node), writes(node)) == ([FIRMWARE] * CHIPS, [1] * CHIPS)
    brought = json.loads(node.ssh(NODE, f"cat {ROOT}/driver/../manifest.json").stdout)["firmware"]
    assert (brought["package"], brought["sha256"]) == (path.name, wanted["npu_firmware_package_sha256"])
    # With no web server any more.
    with watch(node) as observer:
        text = upgrade(node, f"--limit={NODE}", environment={"XDG_CACHE_HOME": str(tmp_path / "empty")}, **wanted)
        assert proof(node, observer, {NODE: 0}, "25.5.1", only=NODE) == []
    assert writes(node) == [1] * CHIPS and node.ssh(NODE, FIND_PACKAGES).stdout == ""
    # Below a driver that is in use, the firmware alone is staged again.
    as_new(node)
    node.ssh(NODE, f"rm {release}/firmware/{path.name}")
    with watch(node) as observer:
        upgrade(node, f"--limit={NODE}", environment=environment, **wanted)
        assert proof(node, observer, {NODE: 1}, "25.5.1", only=NODE) == []
    assert (running(node), writes(node)) == ([FIRMWARE] * CHIPS, [1] * CHIPS)


def test_firmware_that_the_image_does_not_bring(node):
    """The plan says so, and neither the node nor its chips are touched."""
    old, before = version_of(node, NODE), writes(node)
    with watch(node) as observer:
        text = upgrade(node, f"--limit={NODE}", expect=1, **{**WANTED, "npu_firmware_version": "9.9.9"})
        assert proof(node, observer, {NODE: 0}, old, only=NODE) == []
    assert "npu_firmware_version is 9.9.9, but" in " ".join(text.split())
    assert (running(node), writes(node)) == ([FACTORY] * CHIPS, before)
