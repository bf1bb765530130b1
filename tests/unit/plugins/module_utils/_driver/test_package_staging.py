# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the real makeself become releases, completely or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import ansible_collections.npuops.ascend as collection
import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules, pci, symvers
from ansible_collections.npuops.ascend.plugins.module_utils._driver import package_staging, releases
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself

from support.host import driver_images, driver_packages

KERNEL = driver_images.KERNEL
# Where a process of its own finds the collection.
PATHS = os.path.join(os.path.abspath(next(iter(collection.__path__))), "..", "..", "..")
OTHER = "5.10.0-60.18.0.50.oe2203.x86_64"


@pytest.fixture(autouse=True)
def never_run():
    yield
    assert not driver_packages.RAN.exists()


@pytest.fixture
def package(tmp_path):
    (tmp_path / "tmp" / "ansible-tmp-1").mkdir(parents=True)
    return driver_packages.makeself(tmp_path / "tmp" / "ansible-tmp-1", kernels=[OTHER])


def stager(package, tmp_path, **more):
    source = more.pop("package", "https://files.example.com/" + package.name)
    sha256 = more.pop("sha256") if "sha256" in more else driver_packages.sha256(package)
    file = more.pop("file", str(package))
    options = {"root": str(tmp_path / "Ascend"), "kernel": KERNEL, "timeout": 5, **more}
    return package_staging.PackageStager(source, sha256, file, **options)


def stage(package, tmp_path, **more):
    one = stager(package, tmp_path, **more)
    if one.reason() is None:
        return one.release
    one.check()
    return one.stage()


def left(tmp_path):
    """What is below releases, but the lock."""
    top = tmp_path / "Ascend" / "releases"
    return sorted(set(os.listdir(top)) - {".lock"}) if top.exists() else []


def test_a_package_becomes_a_release(package, tmp_path):
    sha256 = driver_packages.sha256(package)
    name = stage(package, tmp_path, version="25.5.0")
    assert name == "25.5.0-%s-%s" % (KERNEL, sha256[:12]) and left(tmp_path) == [name]
    layout = releases.Layout(str(tmp_path / "Ascend"))
    manifest = layout.manifest(name)
    assert manifest["digest"] == "sha256:" + sha256 and manifest["package"] == "https://files.example.com/" + package.name
    assert manifest["version"] == "25.5.0" and manifest["kernel"] == KERNEL and "image" not in manifest
    assert layout.damage(name, thorough=True) is None
    tree = tmp_path / "Ascend" / "releases" / name / "driver"
    assert (tree / "modules.load").read_text().splitlines()[-1] == "insmod host/drv_vascend.ko optional"
    assert not (tree / "binary" / OTHER / "drv_vascend.ko").exists()


def test_a_second_run_needs_no_file(package, tmp_path):
    name = stage(package, tmp_path)
    again = stager(package, tmp_path, file=None, sha256=driver_packages.sha256(package).upper(), verify=True)
    assert again.reason() is None and again.release == name


def test_one_package_for_two_kernels(package, tmp_path):
    names = [stage(package, tmp_path), stage(package, tmp_path, kernel=OTHER)]
    assert left(tmp_path) == sorted(names) and OTHER in names[1]


def test_a_damaged_release_is_staged_again(package, tmp_path):
    name = stage(package, tmp_path)
    (tmp_path / "Ascend" / "releases" / name / "driver" / "tools" / "npu-smi").unlink()
    assert "npu-smi" in stager(package, tmp_path).reason()
    assert stage(package, tmp_path) == name
    assert (tmp_path / "Ascend" / "releases" / name / "driver" / "tools" / "npu-smi").is_file()


@pytest.mark.parametrize(
    "change, text",
    [
        ({"sha256": "0" * 64}, "arrived on this host with sha256:[0-9a-f]{64} instead of sha256:0{64}: it is damaged"),
        ({"sha256": ""}, "npu_driver_package_sha256 is not set"),
        ({"sha256": "abc"}, "npu_driver_package_sha256 is 'abc'; it must be 64"),
        ({"version": "25.5.1"}, "has driver 25.5.0 instead of 25.5.1"),
        ({"kernel": "6.6.0-other"}, "no kernel modules for 6.6.0-other; it has modules for %s, %s" % (OTHER, KERNEL)),
    ],
)
def test_what_does_not_fit(package, tmp_path, change, text):
    with pytest.raises(NpuError, match=text):
        stage(package, tmp_path, **change)
    assert left(tmp_path) == []


def test_a_package_for_another_build_of_the_kernel(tmp_path, monkeypatch):
    package = driver_packages.makeself(tmp_path, versions={"module_layout": 1})
    exported = symvers.Symvers(KERNEL, "/boot/x", driver_images.symvers({"module_layout": 2}))
    monkeypatch.setattr(symvers, "of_kernel", lambda release: exported if release == KERNEL else None)
    with pytest.raises(
        NpuError, match="run: Kernel module drv_seclib_host does not load .* module_layout is 0x00000001 in the module"
    ):
        stage(package, tmp_path)
    assert left(tmp_path) == []


SIBLING = KERNEL.replace("145.0.4.135", "145.0.4.136")


def sibling(monkeypatch, crc, flags="SMP preempt mod_unload modversions"):
    """A host whose kernel is another release than that of the package, with this CRC of the symbol that all modules need."""
    exported = symvers.Symvers(SIBLING, "/boot/symvers", driver_images.symvers({"module_layout": crc}), flags)
    monkeypatch.setattr(symvers, "of_kernel", lambda release: exported if release == SIBLING else None)


def test_a_package_for_another_release_with_the_same_symbols(tmp_path, monkeypatch):
    sibling(monkeypatch, 1)
    package = driver_packages.makeself(tmp_path, kernels=[OTHER], versions={"module_layout": 1})
    name = stage(package, tmp_path, kernel=SIBLING)
    layout = releases.Layout(str(tmp_path / "Ascend"))
    assert name.startswith("25.5.0-%s-" % SIBLING) and layout.manifest(name)["kernel"] == SIBLING
    tree = tmp_path / "Ascend" / "releases" / name / "driver"
    found = {path.name: kernel_modules.Module(str(path)).kernel for path in tree.rglob("*.ko")}
    assert found == dict.fromkeys((module + ".ko" for module in driver_images.MODULES), KERNEL)
    # The next run has nothing to do, and compares again.
    assert stager(package, tmp_path, kernel=SIBLING).reason() is None


@pytest.mark.parametrize(
    ("crc", "flags", "why"),
    [
        (2, None, "Those for %s do not fit: .* needs module_layout with a CRC that /boot/symvers does not have. Add" % KERNEL),
        (1, "SMP", "the flags SMP preempt mod_unload modversions, and those of this kernel are SMP. Add"),
    ],
)
def test_a_package_for_another_release_with_other_symbols(tmp_path, monkeypatch, crc, flags, why):
    sibling(monkeypatch, crc, *([flags] if flags else []))
    package = driver_packages.makeself(tmp_path, kernels=[OTHER], versions={"module_layout": 1})
    told = "no kernel modules for %s; it has modules for %s, %s. .*%s" % (SIBLING, OTHER, KERNEL, why)
    with pytest.raises(NpuError, match=told):
        stage(package, tmp_path, kernel=SIBLING)
    assert left(tmp_path) == []


def test_a_package_with_more_symbols_than_a_driver_has(tmp_path, monkeypatch):
    sibling(monkeypatch, 1)
    monkeypatch.setattr(driver_tree, "MAX_SYMBOLS", 3)
    package = driver_packages.makeself(tmp_path, versions={"module_layout": 1})
    with pytest.raises(NpuError, match="more than 3 symbols: it is not a driver package"):
        stage(package, tmp_path, kernel=SIBLING)


def test_another_architecture(tmp_path):
    other = "aarch64" if driver_packages.MACHINE == "x86_64" else "x86_64"
    package = driver_packages.makeself(tmp_path, machine=other)
    with pytest.raises(NpuError, match="x?run: .* is for %s, but this host is" % other):
        stage(package, tmp_path)
    assert left(tmp_path) == []


def test_another_chip(package, tmp_path, monkeypatch):
    monkeypatch.setattr(pci, "chip_functions", list)
    monkeypatch.setattr(pci, "family_of", lambda functions: next(one for one in pci.FAMILIES.values() if one.key == "310p"))
    with pytest.raises(NpuError, match="is for 910b chips, not for 310p"):
        stager(package, tmp_path).check()


def test_a_truncated_package(package, tmp_path):
    package.write_bytes(package.read_bytes()[:-1000])
    with pytest.raises(NpuError, match="truncated: it has"):
        stage(package, tmp_path)
    assert left(tmp_path) == []


def test_a_package_that_leads_out(tmp_path):
    package = driver_packages.by_hand(tmp_path / "x.run", [("driver/../../x", b"1")])
    with pytest.raises(NpuError, match="leads out of the package"):
        stage(package, tmp_path)
    assert left(tmp_path) == []


def test_too_little_space(package, tmp_path, monkeypatch):
    # Enough to begin with, too little for what is in it.
    needed = os.path.getsize(package) * package_staging._SPACE_FACTOR + package_staging._SPACE_MARGIN
    monkeypatch.setattr(package_staging.PackageStager, "_free", lambda self: needed - 1)
    with pytest.raises(NpuError, match="Not enough space in .* unpacked and copied"):
        stage(package, tmp_path)
    monkeypatch.setattr(package_staging.PackageStager, "_free", lambda self: package_staging._SPACE_MARGIN + 1000)
    with pytest.raises(NpuError, match="has more than 0 MiB, which is the limit here"):
        stager(package, tmp_path).stage()
    assert left(tmp_path) == []


def test_killed_while_it_unpacks(package, tmp_path):
    """Killed at many moments: no release, or a complete one; the next run needs no help."""
    one = stager(package, tmp_path)
    code = (
        "import sys, time\n"
        "from ansible_collections.npuops.ascend.plugins.module_utils._driver import package_staging\n"
        "from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself\n"
        "write = makeself._write\n"
        "def slow(place, *rest):\n"
        "    if %r in place: print('now', flush=True); time.sleep(60)\n"
        "    return write(place, *rest)\n"
        "makeself._write = slow\n"
        "package_staging.PackageStager(%r, %r, %r, root=%r, kernel=%r).stage()\n"
    )
    for moment in ("npu-smi", "drv_pcie_host.ko", "version.info"):
        text = code % (moment, "p.run", driver_packages.sha256(package), str(package), one.layout.root, KERNEL)
        with subprocess.Popen(
            [sys.executable, "-c", text], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": PATHS}
        ) as process:
            try:
                assert process.stdout.readline() == b"now\n"
            finally:
                process.send_signal(signal.SIGKILL)
        assert one.layout.releases() == [] and [name for name in left(tmp_path) if name.startswith(".new-")]
    name = stage(package, tmp_path)
    assert left(tmp_path) == [name]


def test_what_killed_controllers_left_is_removed(package, tmp_path):
    name = "npuops-package-0123456789ab.run"
    files = {key: tmp_path / "tmp" / key / name for key in ("ansible-tmp-2", "ansible-tmp-3", "other", "ansible-tmp-4")}
    for path in files.values():
        path.parent.mkdir()
        path.write_bytes(b"x")
    for key, age in (("ansible-tmp-2", 7200), ("ansible-tmp-3", 0), ("other", 7200)):
        os.utime(files[key], (time.time() - age,) * 2)  # by the clock of this process
    package_staging.remove_leftovers(str(files["ansible-tmp-4"]))
    assert [key for key, path in files.items() if path.exists()] == ["ansible-tmp-3", "other", "ansible-tmp-4"]
    assert not files["ansible-tmp-2"].parent.exists()


def test_makeself_is_the_real_one(package):
    assert b"generated using Makeself" in package.read_bytes()[:300]
    assert makeself.Package(str(package)).size == package.stat().st_size
