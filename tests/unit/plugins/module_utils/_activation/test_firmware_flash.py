# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware is written once, told truthfully, and never again by itself; on a host below a temporary directory."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._activation import firmware_flash, trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._host import transient_unit
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host.fake_units import SYSTEMCTL, SYSTEMD_RUN
from support.paths import CHECKOUT
from support.patience import PATIENCE

ROOT = "/var/lib/Ascend"
OLD, NEW = "7.8.0.6.201", "7.8.0.7.220"
PACKAGE = "Ascend-hdk-910b-npu-firmware_%s.run" % NEW
BOARD = (CHECKOUT / "tests/unit/fixtures/npu-smi/info-t-board_910B_25.5.1.txt").read_text()

NPU_SMI = """#!/bin/sh
case "$*" in
*board*) cat "$FAKE/board" ;;
*) cat "$FAKE/npu-smi.out" ;;
esac
"""

# Waits for the file that the test names, then writes the flash memory of the fake.
FIRMWARE = """#!/bin/bash
echo "package $*" >>"$FAKE/calls"
while [ -e "$FAKE/hold" ]; do sleep 0.05; done
echo "Firmware package of the test"
[ ! -e "$FAKE/package-fails" ] || { echo "[ERROR]upgrade-tool: device 1 does not answer"; exit "$(cat "$FAKE/package-fails")"; }
exit 0
"""


@pytest.fixture
def npu_host(host, monkeypatch):
    """Two chips with the old firmware; the new release has a package with the new one."""
    monkeypatch.setenv("PATH", host.env["PATH"])
    monkeypatch.setenv("FAKE", host.fake)
    monkeypatch.setenv("NPU_HOST_ROOT", host.fs)
    host.program(os.path.join(host.bin, "systemd-run"), SYSTEMD_RUN)
    host.program(os.path.join(host.bin, "systemctl"), SYSTEMCTL)
    host.chips(2)
    host.old, host.new = host.release("a"), host.release("b", version="25.5.2")
    for link in ("driver", "good"):
        host.link(link, host.old)
    host.program(os.path.join(host.root, "driver/tools/npu-smi"), NPU_SMI)
    directory = "var/lib/Ascend/releases/%s/" % host.new
    path = host.write(directory + "firmware/" + PACKAGE, FIRMWARE)
    host.write(directory + "firmware/version.info", "Version=%s\ncompatible_version_drv=[25.5,25.5.]\n" % NEW)
    manifest = host.json(directory + "manifest.json")
    digest = hashlib.sha256(FIRMWARE.encode()).hexdigest()
    manifest["firmware"] = {
        "version": NEW,
        "drivers": ["25.5"],
        "package": PACKAGE,
        "size": len(FIRMWARE),
        "sha256": digest,
    }
    host.write(directory + "manifest.json", json.dumps(manifest))
    host.package = path
    run_firmware(host, OLD)
    return host


def run_firmware(host, version):
    """What all chips run from now on."""
    host.set("board", re.sub(r"7\.8\.0\.6\.201", version, BOARD))


def flash(host, boot_id="boot-1", generation=3, again=False):
    return firmware_flash.Flash(ROOT, host.new, boot_id, generation, again, fs=host.fs)


def boot(host, boot_id, firmware=NEW):
    host.boot(boot_id=boot_id)
    if os.path.exists(os.path.join(host.fake, "unit")):
        host.unset("unit")
    run_firmware(host, firmware)


def writes(host):
    return [call for call in host.calls if call.startswith("package")]


def wait_for_writes(host, count):
    """The unit runs beside the test, and begins a moment after it was started."""
    end = time.monotonic() + PATIENCE
    while len(writes(host)) != count:
        assert time.monotonic() < end, host.calls
        time.sleep(0.02)


def state(host, boot_id="boot-1"):
    found = flash_state.view(boot_id, host.fs)
    return found and found["state"]


def test_is_written_once_and_in_use_after_the_reboot(npu_host):
    assert flash(npu_host).reason() == "write the firmware %s into the chips, which have %s" % (NEW, OLD)
    result = flash(npu_host).write(20)
    assert result["state"] == "written" and result["reason"] and not result["told"]
    assert writes(npu_host) == ["package --nox11 --full --quiet"]
    # The fence and the mark of the maintenance were there before the package ran.
    assert npu_host.json("var/lib/npuops/maintenance") == npu_host.json("run/npuops/maintenance") == {"generation": 3}
    again = flash(npu_host).write(20)
    assert (again["state"], again["reason"]) == ("written", None)
    boot(npu_host, "boot-2")
    assert flash(npu_host, "boot-1").write(20)["state"] is None
    assert flash(npu_host, "boot-2").write(20) == {"state": None, "reason": None, "held": [], "told": None}
    assert len(writes(npu_host)) == 1


def test_upgrades_where_firmware_was_installed_before(npu_host):
    npu_host.write("etc/ascend_install.info", "Firmware_Install_Type=full\nFirmware_Install_Path_Param=/usr/local/Ascend\n")
    flash(npu_host).write(20)
    assert writes(npu_host) == ["package --nox11 --upgrade --quiet"]


def test_what_the_chips_run_already_is_not_written(npu_host):
    run_firmware(npu_host, NEW)
    assert flash(npu_host).write(20)["state"] is None
    assert not writes(npu_host) and not npu_host.exists(flash_state.STATE)


def test_a_call_ends_before_the_package_does_and_the_next_one_sees_its_end(npu_host):
    npu_host.set("hold")
    assert flash(npu_host).write(0)["state"] == "writing"
    assert flash(npu_host).write(0) == {"state": "writing", "reason": None, "held": [], "told": None}
    npu_host.unset("hold")
    assert flash(npu_host).write(20)["state"] == "written"
    assert len(writes(npu_host)) == 1


def test_the_host_is_not_rebooted_while_it_writes(npu_host):
    npu_host.write("etc/systemd/system/multi-user.target.wants/npu-driver-select.service", "")
    npu_host.set("hold")
    flash(npu_host).write(0)
    with pytest.raises(NpuError, match="being written into the chips of this host. A reboot now could damage them"):
        trial_boot.reboot(ROOT, "boot-1", 4, npu_host.new, fs=npu_host.fs)
    assert trial_boot.view(ROOT, npu_host.fs)["firmware"]["state"] == "writing"
    assert "next" not in npu_host.links()
    npu_host.unset("hold")
    flash(npu_host).write(20)
    assert trial_boot.reboot_reason(ROOT, "boot-1", 4, npu_host.new, fs=npu_host.fs)


@pytest.mark.parametrize("code", [1, 124, 255])
def test_a_failure_is_told_and_not_repeated_unless_asked_for(npu_host, code):
    npu_host.set("package-fails", str(code))
    result = flash(npu_host).write(20)
    assert result["state"] == "failed" and "device 1 does not answer" in result["told"]
    assert ("was stopped" if code == 124 else "exit status %d" % code) in result["told"]
    npu_host.unset("package-fails")
    with pytest.raises(NpuError, match="is not written again: the package .*device 1 does not.*-e npu_upgrade_retry=true"):
        flash(npu_host, generation=4).write(20)
    assert len(writes(npu_host)) == 1
    # The advice.
    assert flash(npu_host, generation=5, again=True).write(20)["state"] == "written"
    assert len(writes(npu_host)) == 2


def test_exit_status_2_is_a_success(npu_host):
    npu_host.set("package-fails", "2")
    assert flash(npu_host).write(20)["state"] == "written"


def test_a_power_loss_in_the_middle_is_told_and_not_repeated(npu_host):
    npu_host.set("hold")
    flash(npu_host).write(0)
    boot(npu_host, "boot-2", OLD)
    npu_host.unset("hold")
    assert flash_state.view("boot-2", npu_host.fs)["reason"] == "the host went down while the firmware %s was written" % NEW
    with pytest.raises(NpuError, match="not written again: the host went down while the firmware"):
        flash(npu_host, "boot-2", 4).write(20)
    assert flash(npu_host, "boot-2", 4, again=True).write(20)["state"] == "written"


def test_firmware_that_did_not_take_effect_is_not_written_again(npu_host):
    flash(npu_host).write(20)
    boot(npu_host, "boot-2", OLD)
    with pytest.raises(NpuError, match="it was written before, but the chips do not run it"):
        flash(npu_host, "boot-2", 4).write(20)
    assert len(writes(npu_host)) == 1


def test_a_unit_of_which_systemd_knows_nothing_any_more(npu_host):
    npu_host.set("hold")
    flash(npu_host).write(0)
    npu_host.unset("unit")  # systemctl stop
    assert state(npu_host) == "failed"
    with pytest.raises(NpuError, match="it is not known how the package ended"):
        flash(npu_host).write(20)
    npu_host.unset("hold")


def test_a_run_that_died_before_the_package_began(npu_host):
    """The state was on disk, the unit was not there yet."""
    told = {"state": "writing", "release": npu_host.new, "version": NEW, "sha256": flash(npu_host).sha256, "boot_id": "boot-1"}
    flash_state.save(dict(told, generation=2), npu_host.fs)
    assert flash(npu_host).write(20)["state"] == "written"
    assert len(writes(npu_host)) == 1


def test_systemd_that_starts_nothing_leaves_no_trace(npu_host):
    npu_host.set("fail-systemd-run")
    with pytest.raises(NpuError, match="The firmware was not written: systemd-run: Failed to create bus connection"):
        flash(npu_host).write(20)
    assert flash_state.stored(npu_host.fs) is None
    npu_host.unset("fail-systemd-run")
    assert flash(npu_host).write(20)["state"] == "written"


def test_an_older_run_writes_nothing(npu_host):
    trial_boot.fence(7, npu_host.fs)
    with pytest.raises(NpuError, match="Another run has taken this host over"):
        flash(npu_host, generation=6).write(20)
    assert not writes(npu_host)


def test_another_boot_than_the_intended_one_writes_nothing(npu_host):
    assert flash(npu_host, "boot-0").write(20)["state"] is None
    assert not writes(npu_host)


@pytest.mark.parametrize("told", ["reboot-queued", "stopping", "scheduled"])
def test_a_host_that_goes_down_begins_no_write(npu_host, told):
    if told == "scheduled":
        npu_host.write("run/systemd/shutdown/scheduled", "USEC=1\nMODE=reboot\n")
    else:
        npu_host.set(told)
    for call in (lambda: flash(npu_host).reason(), lambda: flash(npu_host).write(20)):
        with pytest.raises(NpuError, match="is not written, because"):
            call()
    assert not writes(npu_host) and not npu_host.exists(flash_state.STATE)


def test_a_host_whose_reboot_would_be_refused_begins_no_write(npu_host):
    """The chips would run it with the driver of before."""
    kernel = "6.6.0-150.0.0.139.oe2403sp3.aarch64"
    npu_host.write("lib/modules/%s/modules.dep" % kernel, "")
    npu_host.write("boot/grub2/grub.cfg", "menuentry 'os' {\n\tlinux /vmlinuz-%s ro\n}\n" % kernel)
    for call in (lambda: flash(npu_host).reason(), lambda: flash(npu_host).write(20)):
        with pytest.raises(NpuError, match="reboot of this host would be into kernel"):
            call()
    assert not writes(npu_host) and not npu_host.exists(flash_state.STATE)
    npu_host.release("c", kernel=kernel, version="25.5.2")
    assert flash(npu_host).write(20)["state"] == "written"


def test_what_is_written_already_is_told_also_when_the_host_goes_down(npu_host):
    flash(npu_host).write(20)
    npu_host.set("stopping")
    assert flash(npu_host).write(20)["state"] == "written"


def test_a_package_for_other_chips_is_not_written(npu_host):
    name = PACKAGE.replace("910b", "310p")
    os.rename(npu_host.package, os.path.join(os.path.dirname(npu_host.package), name))
    with pytest.raises(NpuError, match="%s is for 310p chips, not for 910b" % name):
        flash(npu_host)


def test_a_package_of_another_version_is_not_written(npu_host):
    with pytest.raises(NpuError, match="has the firmware %s, not 7.8.0.9.1, so nothing was written" % NEW):
        firmware_flash.Flash(ROOT, npu_host.new, "boot-1", 3, fs=npu_host.fs, version="7.8.0.9.1")


def test_chips_in_use_are_named_and_not_written(npu_host, monkeypatch):
    holder = {"pid": 4711, "command": "python train.py", "device": "davinci0"}
    monkeypatch.setattr(firmware_flash, "holders", lambda _fs: [holder])
    result = flash(npu_host).write(20)
    assert result["held"] == [holder] and result["state"] is None
    assert not writes(npu_host) and not npu_host.exists(flash_state.STATE)


def test_a_package_that_changed_on_disk_is_not_run(npu_host):
    with open(npu_host.package, "a", encoding="utf-8") as stream:
        stream.write("# one more line\n")
    with pytest.raises(NpuError, match="is not the file that was staged, so the firmware was not written"):
        flash(npu_host).write(20)
    assert not writes(npu_host)


def test_chips_whose_firmware_nobody_knows_are_not_written(npu_host):
    run_firmware(npu_host, "NA")
    with pytest.raises(NpuError, match="npu-smi reports the firmware version of 0 of 2 chips, so the firmware is not written"):
        flash(npu_host).write(20)


def test_chips_that_npu_smi_does_not_list_are_missed(npu_host):
    npu_host.npu_smi(1)
    with pytest.raises(NpuError, match="npu-smi reports the firmware version of 1 of 2 chips"):
        flash(npu_host).write(20)
    run_firmware(npu_host, NEW)
    with pytest.raises(NpuError, match="1 of 2 chips"):
        flash(npu_host).reason()


def test_a_release_without_firmware(npu_host):
    with pytest.raises(NpuError, match="has no firmware. Run npuops.ascend.upgrade"):
        firmware_flash.Flash(ROOT, npu_host.old, "boot-1", 3, fs=npu_host.fs)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"state": "burning"}', "[" * 100000])
def test_a_state_that_cannot_be_read_is_none(npu_host, text):
    npu_host.write(flash_state.STATE, text)
    assert flash_state.view("boot-1", npu_host.fs) is None
    assert flash(npu_host).write(20)["state"] == "written"


def test_systemd_that_does_not_answer_ends_no_write(npu_host, monkeypatch):
    npu_host.set("hold")
    flash(npu_host).write(0)
    with monkeypatch.context() as patch:
        patch.setattr(flash_state.systemd, "show", lambda *_args: {})
        assert flash(npu_host).write(0)["state"] == "writing"
    assert flash_state.stored(npu_host.fs)["state"] == "writing"
    npu_host.unset("hold")


def test_a_package_that_runs_is_not_stopped_whatever_the_state_file_says(npu_host):
    npu_host.set("hold")
    flash(npu_host).write(0)
    os.unlink(npu_host.fs + flash_state.STATE)
    with pytest.raises(NpuError, match="is being written"):
        flash(npu_host, generation=4, again=True).write(0)
    with pytest.raises(NpuError, match="is being written"):
        trial_boot.reboot_reason(ROOT, "boot-1", 4, fs=npu_host.fs)
    wait_for_writes(npu_host, 1)
    npu_host.unset("hold")


def test_a_request_that_is_repeated_does_not_write_again(npu_host):
    """The connection ended before the answer came."""
    npu_host.set("package-fails", "1")
    flash(npu_host, generation=5, again=True).write(20)
    with pytest.raises(NpuError, match="is not written again"):
        flash(npu_host, generation=5, again=True).write(20)
    assert len(writes(npu_host)) == 1


def test_a_start_whose_end_is_unknown_stays_on_disk(npu_host, monkeypatch):
    run = transient_unit.host_command.run

    def slow(argv, timeout, **kwargs):
        result = run(argv, timeout, **kwargs)
        if argv[0] == "systemd-run":
            result.rc = None
        return result

    npu_host.set("hold")
    monkeypatch.setattr(transient_unit.host_command, "run", slow)
    with pytest.raises(NpuError):
        flash(npu_host).write(0)
    assert state(npu_host) == "writing"
    npu_host.unset("hold")
