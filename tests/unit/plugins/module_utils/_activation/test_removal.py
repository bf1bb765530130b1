# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking back an installation below a temporary directory: what is listed before it must be listed after it."""

from __future__ import annotations

import errno
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._activation import activation as driver_activation
from ansible_collections.npuops.ascend.plugins.module_utils._activation import removal as driver_removal
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError


@pytest.fixture
def npu_host(host, monkeypatch):
    """Two chips; /etc and /lib as on a host. Users are never taken back."""
    monkeypatch.setattr(driver_activation.host_system, "accounts", lambda fs: [])
    monkeypatch.setattr(driver_activation, "NPU_SMI_WAIT", 1)
    os.makedirs(host.fs + "/etc/ld.so.conf.d")
    os.makedirs(host.fs + "/usr/local/bin")
    host.chips(2)
    return host


def files(host):
    """Everything below /etc, /lib, /usr, /var and /run, but for what a boot brings."""
    found = []
    for top in ("etc", "lib", "usr", "var", "run"):
        for directory, names, others in os.walk(os.path.join(host.fs, top)):
            found.extend(os.path.relpath(os.path.join(directory, name), host.fs) for name in names + others)
    return sorted(path for path in found if not path.endswith(("multi-user.target.wants", "ld.so.cache")))


def install(host, name=None, source="image"):
    made = driver_activation.Activation(
        source=source, root="/var/lib/Ascend", release=name, files=host.boot_files(), chip="910b", timeout=1, fs=host.fs
    )
    made.plan()
    made.apply()


def removal(host, **options):
    made = driver_removal.Removal(fs=host.fs, **options)
    return made, made.plan()


def test_all_of_an_installation_goes_and_the_loaded_driver_is_told(npu_host):
    before = files(npu_host)
    name = npu_host.release("a")
    install(npu_host, name)
    npu_host.write("var/lib/npuops/device-plugins/x.sock", "")
    npu_host.write("var/lib/npuops/trial", "{}")
    npu_host.forget_calls()
    made, _reasons = removal(npu_host)
    made.apply()
    # It alone tells which driver is loaded until the next boot.
    assert files(npu_host) == sorted(before + ["var/lib", "run/npuops", "run/npuops/driver-loading"])
    assert made.left == ["the driver stays loaded until this host is rebooted: a chip does not survive a driver unload"]
    assert not [call for call in npu_host.calls if call.startswith(("insmod", "rmmod"))]
    assert npu_host.calls.index("systemctl disable --now npu-driver.service") < npu_host.calls.index("systemctl daemon-reload")


def test_programs_of_others_are_kept(npu_host):
    npu_host.write("usr/local/bin/npu-smi", "theirs")
    install(npu_host, npu_host.release("a"))
    removal(npu_host)[0].apply()
    assert npu_host.read("usr/local/bin/npu-smi") == "theirs"


def test_after_a_reboot_nothing_is_left(npu_host):
    before = files(npu_host)
    install(npu_host, npu_host.release("a"))
    removal(npu_host)[0].apply()
    npu_host.boot(boot_id="boot-2")
    made, reasons = removal(npu_host)
    assert reasons == [] and made.left == []
    assert files(npu_host) == sorted(before + ["var/lib"])


def test_a_second_run_changes_nothing(npu_host):
    install(npu_host, npu_host.release("a"))
    removal(npu_host)[0].apply()
    npu_host.forget_calls()
    made, reasons = removal(npu_host)
    assert reasons == []
    made.apply()
    assert npu_host.calls == []


def test_the_plan_alone_changes_nothing(npu_host):
    install(npu_host, npu_host.release("a"))
    before = files(npu_host)
    _made, reasons = removal(npu_host)
    assert "remove /var/lib/Ascend" in reasons and "remove /var/lib/npuops" in reasons
    assert files(npu_host) == before


def test_a_mounted_release_stays(npu_host, monkeypatch):
    name = npu_host.release("a")
    other = npu_host.release("b")
    install(npu_host, name)
    path = "/var/lib/Ascend/releases/%s/driver" % name
    monkeypatch.setattr(host_mounts, "paths_of_all", lambda: {path})
    made, reasons = removal(npu_host)
    made.apply()
    assert "remove /var/lib/Ascend/releases/%s" % other in reasons
    assert npu_host.exists(path) and not npu_host.exists("/var/lib/Ascend/releases/" + other)
    assert npu_host.links() == {}
    assert "release %s is kept in /var/lib/Ascend/releases because it is mounted" % name in made.left


def test_a_preinstalled_driver_is_not_touched(npu_host):
    tree = "usr/local/Ascend/driver/"
    npu_host.write(tree + "version.info", "Version=25.5.0\n")
    npu_host.program(os.path.join(npu_host.fs, tree, "tools/npu-smi"), '#!/bin/sh\ncat "$FAKE/npu-smi.out"\n')
    npu_host.write("etc/ascend_install.info", "UserName=HwHiAiUser\nDriver_Install_Path_Param=/usr/local/Ascend\n")
    npu_host.write("lib/davinci.conf", "DAVINCI_HOME_PATH=/usr/local/Ascend\n")
    npu_host.write("sys/module/drv_pcie_host/initstate", "live\n")
    for device in ("davinci_manager", "davinci0", "davinci1"):
        npu_host.write("dev/" + device, "")
    before = files(npu_host)
    install(npu_host, source="preinstalled")
    assert npu_host.exists("etc/systemd/system/npu-driver.service")
    made, _reasons = removal(npu_host)
    made.apply()
    assert files(npu_host) == sorted(before + ["var/lib"])
    assert npu_host.exists(tree + "version.info") and made.left == []


def test_files_that_say_where_another_driver_is_stay(npu_host):
    install(npu_host, npu_host.release("a"))
    npu_host.write("lib/davinci.conf", "DAVINCI_HOME_PATH=/usr/local/Ascend\n")
    npu_host.write("etc/ascend_install.info", npu_host.read("etc/ascend_install.info") + "Firmware_Install_Path_Param=/x\n")
    removal(npu_host)[0].apply()
    assert npu_host.exists("lib/davinci.conf")
    kept = npu_host.read("etc/ascend_install.info")
    assert "Firmware_Install_Path_Param=/x" in kept and "Driver_" not in kept


def test_what_the_firmware_package_recorded_beside_the_driver_goes(npu_host):
    """It is of no use without the driver, and nothing else removes it. The firmware itself stays in the chips."""
    before = files(npu_host)
    install(npu_host, npu_host.release("a"))
    recorded = "Firmware_Install_Type=full\nFirmware_Install_Path_Param=/var/lib/Ascend\n"
    npu_host.write("etc/ascend_install.info", npu_host.read("etc/ascend_install.info") + recorded)
    npu_host.write("var/lib/Ascend/firmware/version.info", "Version=7.8.0.7.220\n")
    made, reasons = removal(npu_host)
    assert "remove /var/lib/Ascend/firmware" in reasons and "remove /etc/ascend_install.info" in reasons
    made.apply()
    assert files(npu_host) == sorted(before + ["var/lib", "run/npuops", "run/npuops/driver-loading"])
    # One for all uses, which was there before, stays.
    npu_host.write("etc/ascend_install.info", recorded.replace("/var/lib", "/usr/local"))
    assert removal(npu_host)[1] == []


def test_only_empty_directories_go(npu_host):
    npu_host.write("etc/cdi/other.json", "{}")
    os.makedirs(npu_host.fs + "/user/cluster-info")
    made, reasons = removal(npu_host, directories=["/etc/cdi", "/user/cluster-info", "/user"])
    assert reasons == ["remove /user/cluster-info", "remove /user"]
    made.apply()
    assert npu_host.exists("etc/cdi/other.json") and not npu_host.exists("user")


@pytest.mark.parametrize(("number", "stays"), [(errno.EBUSY, True), (errno.ENOTEMPTY, True), (errno.EACCES, False)])
def test_an_empty_directory_that_cannot_be_removed(npu_host, monkeypatch, number, stays):
    """A mount point, or one in which a program has written since."""
    os.makedirs(npu_host.fs + "/user")
    made, reasons = removal(npu_host, directories=["/user"])
    assert reasons == ["remove /user"]

    def rmdir(path):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "rmdir", rmdir)
    if stays:
        made.apply()
    else:
        with pytest.raises(OSError, match="Permission denied"):
            made.apply()


@pytest.mark.parametrize("steps", [1, 4, 8, 11, 14, 17])
def test_cut_short_anywhere_the_next_run_ends_it(npu_host, steps):
    before = files(npu_host)
    install(npu_host, npu_host.release("a"))
    made, reasons = removal(npu_host)
    assert len(reasons) > 17
    for change in made.changes[:steps]:
        change.apply()
    removal(npu_host)[0].apply()
    assert removal(npu_host)[1] == []
    assert files(npu_host) == sorted(before + ["var/lib", "run/npuops", "run/npuops/driver-loading"])


def test_what_goes_between_plan_and_removal_does_not_stop_it(npu_host):
    """The boot unit removes its own files when it ends; another run may remove all of it."""
    before = files(npu_host)
    install(npu_host, npu_host.release("a"))
    npu_host.write("run/npuops/marker", "")
    npu_host.write("run/npuops/work/file", "")
    npu_host.write("var/lib/npuops/device-plugins/x.sock", "")
    made, _reasons = removal(npu_host)
    removal(npu_host)[0].apply()
    made.apply()
    assert files(npu_host) == sorted(before + ["var/lib", "run/npuops", "run/npuops/driver-loading"])


def test_a_driver_conf_that_cannot_be_read_is_named(npu_host):
    install(npu_host, npu_host.release("a"))
    npu_host.write("var/lib/npuops/driver.conf", "NPU_DRIVER_SOURCE=image\nNPU_DRIVER_ROOT='/var/lib/Ascend\n")
    before = files(npu_host)
    with pytest.raises(NpuError, match=r"line 2 of /var/lib/npuops/driver.conf .*No closing quotation.* run again"):
        removal(npu_host)
    assert files(npu_host) == before


def test_another_driver_in_the_same_place_is_not_touched(npu_host):
    """A package that was installed to /var/lib/Ascend, and nothing of ours."""
    npu_host.write("var/lib/Ascend/driver/version.info", "Version=25.5.0\n")
    npu_host.write("etc/ascend_install.info", "UserName=HwHiAiUser\nDriver_Install_Path_Param=/var/lib/Ascend\n")
    npu_host.write("lib/davinci.conf", "DAVINCI_HOME_PATH=/var/lib/Ascend\n")
    npu_host.write("sys/module/drv_pcie_host/initstate", "live\n")
    made, reasons = removal(npu_host)
    assert (reasons, made.left) == ([], [])


def test_what_is_known_of_firmware_goes_but_not_while_it_is_written(npu_host, monkeypatch):
    npu_host.write("var/lib/npuops/firmware.log", "")
    told = {"state": "writing", "version": "7.8.0.7.220", "boot_id": "boot-1"}
    flash_state.save(told, npu_host.fs)
    state = {"state": "writing"}
    monkeypatch.setattr(flash_state, "_of_unit", lambda _fs: {"state": state["state"], "reason": None})
    with pytest.raises(NpuError, match="is being written into the chips of this host with its driver: wait until that ends"):
        removal(npu_host)
    state["state"] = "written"
    made, _reasons = removal(npu_host)
    made.apply()
    assert made.left == ["the firmware 7.8.0.7.220 is in the chips; they run it after the next boot of this host"]
    assert not npu_host.exists("var/lib/npuops/firmware") and not npu_host.exists("var/lib/npuops/firmware.log")


def test_a_write_of_firmware_that_failed_is_told_and_not_forgotten(npu_host):
    npu_host.write("var/lib/npuops/firmware.log", "[ERROR]device 1 does not answer\n")
    told = {"state": "failed", "version": "7.8.0.7.220", "boot_id": "boot-0", "reason": "the package failed with exit status 1."}
    flash_state.save(told, npu_host.fs)
    for _run in range(2):
        made, _reasons = removal(npu_host)
        made.apply()
        assert made.left == [
            "the firmware 7.8.0.7.220 could not be written into the chips (the package failed with exit status 1): check npu-smi"
            " info. /var/lib/npuops/firmware and /var/lib/npuops/firmware.log are kept; remove them after that"
        ]
        assert npu_host.exists("var/lib/npuops/firmware.log")
    assert flash_state.view("boot-1", npu_host.fs)["state"] == "failed"
    assert removal(npu_host)[1] == []
