# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firmware packages of the real makeself become part of releases whose driver is from a package, completely or not at all."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._activation import firmware_staging, trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._chips import pci
from ansible_collections.npuops.ascend.plugins.module_utils._driver import package_staging, releases
from ansible_collections.npuops.ascend.plugins.module_utils._firmware import flash_state
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts

from support.host import driver_images, driver_packages

NAME, VERSION = driver_packages.FIRMWARE_NAME, "7.8.0.7.220"
INFO = driver_packages.FIRMWARE_INFO


@pytest.fixture(autouse=True)
def never_run():
    yield
    assert not driver_packages.RAN.exists()


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A driver package, a firmware package, and another one of another version."""
    top = tmp_path_factory.mktemp("packages")
    other = driver_packages.firmware(top, "Version=7.8.0.9.1\n", NAME.replace(VERSION, "7.8.0.9.1"))
    return driver_packages.makeself(top), driver_packages.firmware(top), other


class Host:
    """A host without chips, whose / is a directory."""

    def __init__(self, top, packages):
        self.fs, self.root = str(top), str(top / "Ascend")
        self.driver, self.firmware, self.other = packages
        self.layout = releases.Layout(self.root)
        boot_id = top / "proc/sys/kernel/random/boot_id"
        boot_id.parent.mkdir(parents=True)
        boot_id.write_text("this-boot\n")

    def stager(self, firmware=None, origin=None, sha256=None, there=True, driver=True, verify=False):
        """``firmware``: the file, None for none; ``there``, ``driver``: whether the files are on the host."""
        wanted = None
        if firmware:
            sha256 = sha256 or driver_packages.sha256(firmware)
            origin = origin or "https://files.example.com/" + firmware.name
            wanted = firmware_staging.FirmwarePackage(origin, sha256, str(firmware) if there else None, self.fs)
        return package_staging.PackageStager(
            "https://files.example.com/" + self.driver.name,
            driver_packages.sha256(self.driver),
            str(self.driver) if driver else None,
            wanted,
            root=self.root,
            kernel=driver_images.KERNEL,
            timeout=5,
            verify=verify,
        )

    def stage(self, firmware=None, **more):
        one = self.stager(firmware, **more)
        if one.reason() is None:
            return one.release
        one.check()
        return one.stage()

    def firmware_of(self, release):
        """(version in the manifest, what is in the directory): both or none."""
        entry = self.layout.manifest(release).get("firmware")
        path = os.path.join(self.layout.release_path(release), "firmware")
        return entry and entry["version"], sorted(os.listdir(path)) if os.path.isdir(path) else []

    def left(self):
        return sorted(set(os.listdir(self.layout.releases_dir)) - {".lock"})


@pytest.fixture
def host(tmp_path, packages):
    return Host(tmp_path, packages)


def test_a_release_with_its_firmware(host):
    release = host.stage(host.firmware)
    entry = host.layout.manifest(release)["firmware"]
    sha256 = driver_packages.sha256(host.firmware)
    assert entry == {
        "version": VERSION,
        "drivers": ["25.0", "25.5"],
        "package": NAME,
        "size": host.firmware.stat().st_size,
        "sha256": sha256,
    }
    top = os.path.join(host.layout.release_path(release), "firmware")
    assert releases.file_digest(os.path.join(top, NAME)) == sha256
    with open(os.path.join(top, "version.info"), encoding="ascii") as stream:
        assert stream.read() == INFO
    assert host.layout.damage(release, thorough=True) is None and host.left() == [release]
    brings = host_facts.upgrade_facts(host.root)["staged"][release]["brings"]
    assert brings == {"version": VERSION, "drivers": ["25.0", "25.5"], "sha256": sha256}


def test_a_release_that_was_staged_without_gets_it(host):
    release = host.stage()
    assert host.firmware_of(release) == (None, [])
    driver = host.layout.manifest(release)
    # The driver package is not needed for that.
    one = host.stager(host.firmware, there=False, driver=False)
    assert "is not staged with release %s" % release in one.reason() and (one.lacks_file, one.lacks_firmware_file) == (False, True)
    assert host.stage(host.firmware, driver=False) == release
    assert host.firmware_of(release) == (VERSION, [NAME, "version.info"]) and host.left() == [release]
    assert dict(host.layout.manifest(release), firmware=None) == driver
    # A second run needs no file, and neither does one that asks for no firmware.
    assert host.stager(host.firmware, there=False, driver=False, verify=True).reason() is None
    assert host.stager(driver=False, verify=True).reason() is None


def test_another_firmware_takes_its_place(host):
    release = host.stage(host.other)
    assert host.stage(host.firmware, driver=False) == release
    assert host.firmware_of(release) == (VERSION, [NAME, "version.info"]) and host.left() == [release]


def test_firmware_that_is_being_written_is_not_replaced(host, monkeypatch):
    release = host.stage(host.other)
    state = {"state": flash_state.WRITING, "version": "7.8.0.9.1", "boot_id": "this-boot"}
    flash_state.save(state, host.fs)
    monkeypatch.setattr(flash_state.systemd, "show", lambda *_args: {"ActiveState": "active", "SubState": "running"})
    with pytest.raises(NpuError, match="The firmware 7.8.0.9.1 is being written into the chips: wait"):
        host.stage(host.firmware)
    assert host.firmware_of(release)[0] == "7.8.0.9.1" and host.left() == [release]
    assert os.path.exists(host.fs + trial_boot.LOCK)


class _Killed(BaseException):
    pass


def ending(real, left):
    """``real``, which ends the run after ``left[0]`` calls of all such functions."""

    def run(*args, **kwargs):
        if left[0] == 0:
            raise _Killed
        left[0] -= 1
        return real(*args, **kwargs)

    return run


@pytest.mark.parametrize("before", ["other", None])
def test_a_run_that_ends_anywhere_leaves_all_of_it_or_none(host, monkeypatch, before):
    """At every change of the file system, and the next run completes it."""
    release = host.stage(host.other if before else None)
    steps = [(releases, "_write_manifest"), (os, "rename"), (releases, "fsync_directory"), (releases, "fsync_tree")]
    count, seen = 0, set()
    while True:
        left = [count]
        with monkeypatch.context() as patch:
            for owner, name in steps:
                patch.setattr(owner, name, ending(getattr(owner, name), left))
            try:
                host.stage(host.firmware)
            except _Killed:
                pass
            else:
                break
        version, _files = host.firmware_of(release)
        seen.add(version)
        assert host.layout.damage(release, thorough=True) is None, count
        count += 1
    assert count > 4 and None in seen and host.firmware_of(release) == (VERSION, [NAME, "version.info"])
    assert host.left() == [release]


def test_a_damaged_firmware_is_replaced_below_a_driver_that_is_in_use(host):
    release = host.stage(host.firmware)
    for link in ("driver", "good"):
        host.layout.point(link, release)
    path = os.path.join(host.layout.release_path(release), "firmware", NAME)
    os.chmod(path, 0o644)
    with open(path, "ab") as stream:
        stream.write(b"x")
    assert host.stager(host.firmware, driver=False).reason().startswith("The staged firmware is damaged: firmware/")
    assert host.stage(host.firmware, driver=False) == release
    assert host.layout.damage(release, thorough=True) is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda top: driver_packages.makeself(top, name=NAME), "is a driver package, not a firmware package"),
        (lambda top: driver_packages.by_hand(top / NAME, [("image/a.img", b"1")]), "has no version.info: it is not a firmware"),
        (lambda top: driver_packages.firmware(top, "Version=a b\n"), "has no valid version: a b"),
        (lambda top: driver_packages.firmware(top, "x=1\n"), "has no valid version: None"),
        (lambda top: driver_packages.firmware(top, "Version=1\n" + "#" * 2**20), "has more than 1024 KiB"),
        (lambda top: driver_packages.firmware(top, "Version=1\ncompatible_version_drv=[?]\n"), "are not a list of versions"),
        (lambda top: driver_packages.by_hand(top / NAME, [("../x", b"1")]), "leads out of the package"),
    ],
    ids=["driver", "nothing", "version", "no-version", "long", "drivers", "outside"],
)
def test_what_is_no_firmware_package(host, tmp_path, make, text):
    release = host.stage()
    (tmp_path / "bad").mkdir()
    bad = make(tmp_path / "bad")
    with pytest.raises(NpuError, match=text) as caught:
        host.stage(bad)
    assert str(tmp_path) not in caught.value.message
    assert host.firmware_of(release) == (None, []) and host.left() == [release]


def test_no_release_at_all_with_a_bad_one(host, tmp_path):
    cut = tmp_path / NAME
    cut.write_bytes(host.firmware.read_bytes()[:-1000])
    with pytest.raises(NpuError, match="is truncated: it has"):
        host.stage(cut)
    with pytest.raises(NpuError, match="arrived on this host with sha256:[0-9a-f]{64} instead of sha256:0{64}"):
        host.stage(host.firmware, sha256="0" * 64)
    assert host.left() == []


def test_a_content_beyond_the_bound(host, monkeypatch):
    monkeypatch.setattr(firmware_staging.firmware.image_files, "MAX_BYTES", 1000)
    with pytest.raises(NpuError, match="content has more than 0 MiB"):
        host.stager(host.firmware).firmware.put(host.fs)


def test_other_chips(host, monkeypatch):
    monkeypatch.setattr(pci, "chip_functions", list)
    monkeypatch.setattr(pci, "family_of", lambda functions: next(one for one in pci.FAMILIES.values() if one.key == "910b"))
    one = host.stager(host.firmware, origin="https://x.example/" + NAME.replace("910b", "310p"))
    with pytest.raises(NpuError, match="is for 310p chips, not for 910b.*npu_firmware_package"):
        one.check()


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("https://x.example/d/" + NAME, NAME),
        ("oci://r.example:5000/m/ascend-driver-packages:Ascend-hdk-910b-npu-firmware_7.8.0.7.220-0123456789ab",
         "Ascend-hdk-910b-npu-firmware_7.8.0.7.220-0123456789ab.run"),
        ("oci://r.example/p:1@sha256:" + "a" * 64, "1.run"),
        ("https://x.example/a%20b.run", "npu-firmware_1.2.run"),
        ("/srv/-x.run", "npu-firmware_1.2.run"),
    ],
)  # fmt: skip
def test_the_name_of_the_file_on_the_host(origin, name):
    assert firmware_staging.firmware.file_name(origin, "1.2") == name
