# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Activation on a host below a temporary directory; systemctl there runs the real boot script."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._activation import activation as driver_activation
from ansible_collections.npuops.ascend.plugins.module_utils._chips import chip_memory
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host.fake_host import KERNEL, NPU_SMI


def activation(host, release=None, **options):
    settings = dict({"source": "image", "root": "/var/lib/Ascend", "chip": "910b", "timeout": 1}, **options)
    settings.setdefault("files", host.boot_files())
    return driver_activation.Activation(release=release, fs=host.fs, **settings)


def install(host, release=None, **options):
    made = activation(host, release, **options)
    made.plan()
    return made, made.apply()


def reboot(host, boot_id, kernel=None):
    """What systemd does in a boot: first select, then load."""
    host.boot(kernel=kernel, boot_id=boot_id)
    statuses = []
    for script, arguments in (("npu-driver-select", []), ("npu-driver", ["load"])):
        path = os.path.join(host.fs, "var/lib/npuops/bin", script)
        statuses.append(subprocess.run(["sh", path] + arguments, stdout=subprocess.DEVNULL, check=False).returncode)
    return statuses


def snapshot(host):
    found = {}
    for directory, names, files in os.walk(host.fs):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            found[path] = (info.st_ino, info.st_mtime_ns, info.st_mode)
    return found


@pytest.fixture
def npu_host(host, monkeypatch):
    """Two 910B chips, nothing installed; users are a matter of their own tests."""
    monkeypatch.setattr(driver_activation.host_system, "accounts", lambda fs: [])
    # At most this long for npu-smi, or failing ones would take a minute.
    monkeypatch.setattr(driver_activation, "NPU_SMI_WAIT", 1)
    host.chips(2)
    return host


def changing(npu_host):
    """The calls that may change something."""
    return [call for call in npu_host.calls if not call.startswith("systemctl show")]


def test_first_install_loads_at_once_and_confirms(npu_host):
    name = npu_host.release("a")
    made, done = install(npu_host, name)
    assert npu_host.links() == {"driver": name, "good": name}
    assert made.ready()["release"] == name and made.ready()["version"] == "25.5.0"
    assert made.version() == "25.5.0"
    assert "point driver to %s" % name in done and "point good to %s" % name in done
    calls = npu_host.calls
    assert calls.index("systemctl daemon-reload") < calls.index("systemctl enable npu-driver.service")
    assert "systemctl enable npu-driver-select.service" in calls
    assert "insmod drv_pcie_hdc_host" in calls
    assert npu_host.modes("var/lib/npuops/bin/npu-driver") == 0o755
    assert not any("reboot" in call for call in calls)


def test_a_run_that_was_killed_before_systemd_had_read_the_units(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    npu_host.set("show", "NeedDaemonReload=no\n\nNeedDaemonReload=yes\n")
    _made, done = install(npu_host, name)
    assert done == ["reload systemd"]


def test_second_run_changes_nothing_and_starts_nothing(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    npu_host.forget_calls()
    before = snapshot(npu_host)
    made = activation(npu_host, name)
    assert made.plan() == [] and made.apply() == []
    assert changing(npu_host) == []
    assert snapshot(npu_host) == before


@pytest.mark.parametrize(
    ("root", "linked_to", "mounts"),
    [
        ("/var/lib/Ascend", None, "/var/lib/npuops /var/lib/Ascend"),
        ("/data/npu 100%", None, '/var/lib/npuops "/data/npu 100%%"'),
        # systemd follows no links.
        ("/var/lib/Ascend", "data/npu", "/var/lib/npuops /var/lib/Ascend /data/npu"),
    ],
)
def test_the_units_wait_for_the_file_system_of_the_drivers(npu_host, root, linked_to, mounts):
    path = npu_host.fs + root
    if linked_to:
        os.makedirs(os.path.join(npu_host.fs, linked_to))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(os.path.join(npu_host.fs, linked_to), path)
    made = activation(npu_host, root=root, accept_absent=True)
    made.plan()
    for change in made.changes:
        if change.reason.startswith("write /etc/systemd/system/"):
            change.apply()
    for unit in ("npu-driver.service", "npu-driver-select.service"):
        with open(npu_host.fs + "/etc/systemd/system/" + unit, encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line.startswith("RequiresMountsFor=")]
        assert lines == ["RequiresMountsFor=" + mounts]


def test_plan_alone_changes_nothing(npu_host):
    name = npu_host.release("a")
    before = snapshot(npu_host)
    made = activation(npu_host, name, components=["device_plugin"])
    reasons = made.plan()
    assert "load the driver" in reasons and "create /var/log/mindx-dl/devicePlugin" in reasons
    assert made.planned_links() == {"driver": name, "good": name}
    assert snapshot(npu_host) == before and changing(npu_host) == []


def test_plan_for_a_release_that_is_not_staged_yet(npu_host):
    name = "25.5.0-%s-%s" % (KERNEL, "c" * 12)
    assert "point driver to %s" % name in activation(npu_host, name, accept_absent=True).plan()
    with pytest.raises(NpuError, match="not a complete release"):
        activation(npu_host, name).plan()


def test_plan_for_a_release_without_a_name(npu_host):
    """In check mode the image is not pulled, so the version in it is unknown."""
    made = activation(npu_host, None, accept_absent=True)
    assert "point driver to a release that is not staged yet" in made.plan()
    with pytest.raises(NpuError, match="release is not set"):
        activation(npu_host, None).plan()
    install(npu_host, npu_host.release("a"))
    made = activation(npu_host, None, accept_absent=True)
    assert made.plan() == [] and "not staged yet" in made.pending


def test_comes_back_after_reboots(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    for boot_id in ("boot-2", "boot-3"):
        assert reboot(npu_host, boot_id) == [0, 0]
        assert npu_host.json("run/npuops/driver-ready")["boot_id"] == boot_id
    assert activation(npu_host, name).plan() == []


def test_loaded_driver_is_not_replaced(npu_host):
    old = npu_host.release("a")
    install(npu_host, old)
    new = npu_host.release("b", version="25.5.1")
    npu_host.forget_calls()
    before = snapshot(npu_host)
    made, done = install(npu_host, new)
    assert done == []
    assert old in made.pending and new in made.pending and "npuops.ascend.upgrade" in made.pending
    assert snapshot(npu_host) == before and npu_host.calls == []
    assert made.planned_links() == {"driver": old, "good": old}


def test_same_version_of_another_image_is_another_driver(npu_host):
    install(npu_host, npu_host.release("a"))
    made, done = install(npu_host, npu_host.release("b"))
    assert done == [] and made.pending


def test_upgrade_under_way_is_left_alone(npu_host):
    name, new = npu_host.release("a"), npu_host.release("b")
    install(npu_host, name)
    npu_host.link("next", new)
    made, done = install(npu_host, name)
    assert done == [] and new in made.pending


def test_trial_is_not_confirmed_by_install(npu_host):
    old, new = npu_host.release("a"), npu_host.release("b")
    install(npu_host, old)
    npu_host.link("next", new)
    assert reboot(npu_host, "boot-2") == [0, 0]
    assert npu_host.links() == {"driver": new, "good": old}
    assert install(npu_host, new)[1] == []
    assert npu_host.links() == {"driver": new, "good": old}
    # The next boot ends it.
    assert reboot(npu_host, "boot-3") == [0, 0]
    assert npu_host.links() == {"driver": old, "good": old}


def test_foreign_driver_is_refused(npu_host):
    npu_host.write("sys/module/drv_pcie_host/initstate", "live\n")
    with pytest.raises(NpuError, match="was not installed by"):
        activation(npu_host, npu_host.release("a")).plan()


def test_package_host_is_refused(npu_host):
    npu_host.write("usr/local/Ascend/driver/version.info", "Version=24.1.0\n")
    with pytest.raises(NpuError, match="preinstalled"):
        activation(npu_host, npu_host.release("a")).plan()


def test_host_without_chips_is_refused(host):
    host.kunpeng()
    with pytest.raises(NpuError, match="no Ascend chip.*remove it from the group npu_nodes"):
        activation(host, host.release("a")).plan()
    host.function("0000:01:00.0", device="0xd9ff")
    with pytest.raises(NpuError, match="no Ascend chip.*19e5:d9ff.*update the collection"):
        activation(host, host.release("a")).plan()


def test_kernel_that_changed_since_staging_is_named(npu_host):
    name = npu_host.release("a", kernel="5.10.0-old")
    with pytest.raises(NpuError) as caught:
        activation(npu_host, name).plan()
    assert "5.10.0-old" in caught.value.message and KERNEL in caught.value.message


def test_directory_in_place_of_the_link(npu_host):
    name = npu_host.release("a")
    os.mkdir(npu_host.root + "/driver")
    install(npu_host, name)
    assert npu_host.links()["driver"] == name


def test_directory_with_data_in_place_of_the_link(npu_host):
    name = npu_host.release("a")
    npu_host.write("var/lib/Ascend/driver/data", "precious")
    with pytest.raises(NpuError, match="not a link of this collection"):
        install(npu_host, name)
    assert npu_host.read("var/lib/Ascend/driver/data") == "precious"


def test_load_that_fails_tells_the_reason_and_can_be_repeated(npu_host):
    name = npu_host.release("a")
    npu_host.set("fail-drv_pcie_host")
    with pytest.raises(NpuError, match="drv_pcie_host.*Invalid module format"):
        install(npu_host, name)
    assert npu_host.links() == {"driver": name}
    npu_host.unset("fail-drv_pcie_host")
    assert "load the driver" in install(npu_host, name)[1]
    assert npu_host.links() == {"driver": name, "good": name}


def test_other_image_after_one_that_did_not_load(npu_host):
    """Nothing is loaded, so the better image needs no upgrade."""
    bad = npu_host.release("a", plan="modprobe fat required\ninsmod host/drv_seclib_host.ko required\n")
    npu_host.set("fail-fat")
    with pytest.raises(NpuError):
        install(npu_host, bad)
    npu_host.unset("fail-fat")
    better = npu_host.release("b")
    install(npu_host, better)
    assert npu_host.links() == {"driver": better, "good": better}


def test_chip_without_device(npu_host):
    npu_host.set("chips", "1")
    with pytest.raises(NpuError, match="1 of 2 chips"):
        install(npu_host, npu_host.release("a"))


def test_a_chip_that_is_gone_does_not_become_the_new_normal(npu_host):
    name = npu_host.release("a")
    assert "record the chips of the host" in install(npu_host, name)[1]
    assert install(npu_host, name)[1] == []
    lost = sorted(os.listdir(npu_host.fs + "/sys/bus/pci/devices"))[-1]
    shutil.rmtree(os.path.join(npu_host.fs, "sys/bus/pci/devices", lost))
    with pytest.raises(NpuError, match="only 1 of 2 chips: %s is missing .* set npu_chips: 1" % lost):
        install(npu_host, name)
    with pytest.raises(NpuError, match="1 of 2 chips"):
        install(npu_host, name, chips=2)
    # Accepted, and not asked for again.
    assert "record the chips of the host" in activation(npu_host, name, chips=1).plan()
    made = activation(npu_host, name, chips=1)
    made.plan()
    made.apply()
    assert activation(npu_host, name).plan() == []


@pytest.mark.parametrize("what", ["link", "pipe", "directory"])
def test_what_a_pod_puts_in_place_of_the_memory_is_replaced(npu_host, tmp_path, what):
    """The directory is one that device plugins write to."""
    name = npu_host.release("a")
    install(npu_host, name)
    path = npu_host.fs + chip_memory.PATH
    os.unlink(path)
    (tmp_path / "other").write_text("{}", encoding="utf-8")
    {"link": lambda: os.symlink(tmp_path / "other", path), "pipe": lambda: os.mkfifo(path), "directory": lambda: os.mkdir(path)}[
        what
    ]()
    if what == "directory":
        with pytest.raises(NpuError, match="chips.json is a directory"):
            activation(npu_host, name).plan()
        return
    assert "record the chips of the host" in install(npu_host, name)[1]
    assert (tmp_path / "other").read_text(encoding="utf-8") == "{}" and install(npu_host, name)[1] == []


def test_a_card_with_two_chips_that_has_one_left(npu_host):
    """The same addresses do not make the same number."""
    name = npu_host.release("a")
    install(npu_host, name)
    path = npu_host.fs + chip_memory.PATH
    chip_memory.write(dict.fromkeys(chip_memory.read(path), 2), path)
    with pytest.raises(NpuError, match="only 2 of 4 chips"):
        install(npu_host, name)


def test_all_chips_that_are_gone_are_missed(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    shutil.rmtree(npu_host.fs + "/sys/bus/pci/devices")
    with pytest.raises(NpuError, match="only 0 of 2 chips: .* are missing .* run npuops.ascend.uninstall for this host"):
        install(npu_host, name)
    os.unlink(npu_host.fs + chip_memory.PATH)
    with pytest.raises(NpuError, match="only 0 of 2 chips on the PCI bus.* set npu_chips: 0"):
        install(npu_host, name, chips=2)
    with pytest.raises(NpuError, match="needs no driver: remove it from the group npu_nodes"):
        install(npu_host, name)


def test_a_chip_that_is_missing_at_the_first_install(npu_host):
    with pytest.raises(NpuError, match="only 2 of 8 chips on the PCI bus"):
        install(npu_host, npu_host.release("a"), chips=8)


def test_chips_that_work_confirm_the_driver_whatever_they_show(npu_host):
    npu_host.npu_smi(2, health="Alarm")
    name = npu_host.release("a")
    assert install(npu_host, name)[1][-1] == "point good to %s" % name


def test_chips_none_of_which_works_keep_good_where_it_is(npu_host):
    npu_host.npu_smi(2, health="Critical")
    name = npu_host.release("a")
    made, done = install(npu_host, name)
    assert npu_host.links() == {"driver": name}
    assert "Critical" in made.unconfirmed and not any("good" in text for text in done)
    npu_host.npu_smi(2)
    assert install(npu_host, name)[1] == ["point good to %s" % name]


def test_stale_marker_of_another_boot_does_not_count(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    marker = npu_host.json("run/npuops/driver-ready")
    npu_host.boot(boot_id="boot-2")
    npu_host.write("run/npuops/driver-ready", json.dumps(marker))
    assert "load the driver" in activation(npu_host, name).plan()


def test_marker_that_is_gone_is_published_again(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    os.unlink(npu_host.fs + "/run/npuops/driver-ready")
    npu_host.forget_calls()
    install(npu_host, name)
    assert "systemctl restart npu-driver.service" in npu_host.calls
    assert not any(call.startswith("insmod") for call in npu_host.calls)


def test_new_script_is_written_without_a_restart(npu_host):
    name = npu_host.release("a")
    install(npu_host, name)
    npu_host.write("var/lib/npuops/bin/npu-driver", "old")
    npu_host.forget_calls()
    assert install(npu_host, name)[1] == ["write /var/lib/npuops/bin/npu-driver"]
    assert changing(npu_host) == []


def test_programs_of_the_driver_are_found_by_their_names(npu_host):
    os.makedirs(npu_host.fs + "/usr/local/bin")
    name = npu_host.release("a")
    assert "link /usr/local/bin/npu-smi" in install(npu_host, name)[1]
    assert os.readlink(npu_host.fs + "/usr/local/bin/npu-smi") == "/var/lib/Ascend/driver/tools/npu-smi"
    # This driver has no hccn_tool.
    assert os.listdir(npu_host.fs + "/usr/local/bin") == ["npu-smi"]
    assert activation(npu_host, name).plan() == []


def test_where_programs_cannot_be_linked_their_path_is_told(npu_host):
    made = activation(npu_host, npu_host.release("a"))
    made.plan()
    assert any("by their paths: /var/lib/Ascend/driver/tools/npu-smi" in text for text in made.missing)


def test_preinstalled_writes_nothing_of_the_driver(npu_host):
    npu_host.write("usr/local/Ascend/driver/version.info", "Version=24.1.0\n")
    npu_host.program(npu_host.fs + "/usr/local/Ascend/driver/tools/npu-smi", NPU_SMI)
    for name in ("davinci0", "davinci1", "davinci_manager"):
        npu_host.write("dev/" + name, "")
    npu_host.write("sys/module/drv_pcie_host/initstate", "live\n")
    before = {path for path in snapshot(npu_host) if "/Ascend" in path}
    made, done = install(npu_host, source="preinstalled")
    assert made.root == "/usr/local/Ascend" and made.version() == "24.1.0"
    assert made.ready()["source"] == "preinstalled"
    assert {path for path in snapshot(npu_host) if "/Ascend" in path} == before
    for path in ("lib/davinci.conf", "etc/ascend_install.info", "etc/ld.so.conf.d/ascend_driver_so.conf"):
        assert not npu_host.exists(path)
    assert not any(call.startswith(("insmod", "modprobe")) for call in npu_host.calls)
    assert "check the driver's devices" in done
    assert activation(npu_host, source="preinstalled").plan() == []
    assert reboot(npu_host, "boot-2")[0] == 0


@pytest.mark.parametrize("timeout", [0, 801])
def test_time_beyond_systemds(host, timeout):
    with pytest.raises(NpuError, match="between 1 and 800"):
        activation(host, "x", timeout=timeout)


def test_driver_that_got_stuck_half_way_is_not_mixed_with_another(npu_host):
    """Some modules of this boot's release are in the kernel: another one waits, this one gets its second try."""
    old = npu_host.release("a")
    install(npu_host, old)
    npu_host.set("fail-drv_pcie_host")
    assert reboot(npu_host, "boot-2") == [0, 1]
    os.unlink(os.path.join(npu_host.fake, "fail-drv_pcie_host"))
    made, done = install(npu_host, npu_host.release("b"))
    assert done == [] and old in made.pending
    made, done = install(npu_host, old)
    assert done == ["load the driver"]
    assert npu_host.json("run/npuops/driver-ready")["release"] == old
    assert made.links() == {"driver": old, "good": old}
