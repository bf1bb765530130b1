# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding and checking driver trees in images of several layouts."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import driver_images

KERNEL = driver_images.KERNEL
MACHINE = os.uname().machine
OTHER_MACHINE = "aarch64" if MACHINE == "x86_64" else "x86_64"


def inspect(top, tree=None, kernel=KERNEL, **more):
    return driver_tree.inspect(str(top), str(tree or top / "driver"), kernel, more.pop("machine", MACHINE), **more)


@pytest.mark.parametrize("place", ["driver", "usr/local/Ascend/driver", "opt/a/b/c/d/driver", "."])
def test_the_tree_is_found_wherever_it_is(tmp_path, place):
    driver_images.write_tree(tmp_path / place)
    driver_images.write(tmp_path / "usr/local/Ascend/firmware/version.info", b"Version=7.8\n")
    assert driver_tree.find(str(tmp_path)) == os.path.join(str(tmp_path), place).rstrip("/.")


def test_an_image_without_a_tree(tmp_path):
    driver_images.write(tmp_path / "etc" / "version.info", b"Version=1\n")
    with pytest.raises(NpuError, match="no driver tree.*build_driver_image"):
        driver_tree.find(str(tmp_path))


def test_several_trees_need_a_choice(tmp_path):
    driver_images.write_tree(tmp_path / "a")
    driver_images.write_tree(tmp_path / "b", version="25.3.0")
    with pytest.raises(NpuError, match=r"\(/a, /b\).*npu_driver_image_path"):
        driver_tree.find(str(tmp_path))
    assert driver_tree.find(str(tmp_path), "/b") == str(tmp_path / "b")


def test_copies_of_one_version_need_none(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    driver_images.write_tree(tmp_path / "usr" / "local" / "Ascend" / "driver")
    assert driver_tree.find(str(tmp_path)) == str(tmp_path / "driver")


def test_a_given_path_must_be_a_tree_inside_the_image(tmp_path):
    top = tmp_path / "image"
    driver_images.write_tree(top / "driver")
    driver_images.write_tree(tmp_path / "outside")
    (top / "link").symlink_to(str(tmp_path / "outside"))
    with pytest.raises(NpuError, match="no driver tree at /etc"):
        driver_tree.find(str(top), "/etc")
    for path in ("../outside", "link"):
        with pytest.raises(NpuError, match="leads out of the image"):
            driver_tree.find(str(top), path)


def test_a_tree_that_fits(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    found = inspect(tmp_path, version="25.5.0")
    assert found.version == "25.5.0" and found.extra == {}
    assert found.plan[:2] == ["modprobe i2c_core required", "modprobe vfio optional"]
    assert found.plan[2:] == ["insmod %s %s" % (path, "optional" if "vascend" in path else "required") for path in found.modules]
    assert found.modules[0] == "host/drv_seclib_host.ko"


def test_what_an_optional_module_shares_with_a_required_one_is_required(tmp_path):
    modules = {"drv_vascend": "vfio,mdev", "drv_pcie_host": "vfio"}
    driver_images.write_tree(tmp_path / "driver", modules=modules)
    assert inspect(tmp_path).plan[:2] == ["modprobe mdev optional", "modprobe vfio required"]


def test_a_module_others_need_is_required_whatever_its_name(tmp_path):
    driver_images.write_tree(tmp_path / "driver", modules={"drv_vascend": "", "asdrv_dms": "drv_vascend"})
    assert inspect(tmp_path).plan[0] == "insmod host/drv_vascend.ko required"


def test_another_version_than_asked_for(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    with pytest.raises(NpuError, match=r"contains driver 25\.5\.0 instead of 25\.5\.1"):
        inspect(tmp_path, version="25.5.1")


def test_another_kernel_names_both(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    with pytest.raises(NpuError, match=r"no modules for kernel 6\.8\.0-31-generic; it has modules for 6\.6\.0-145") as caught:
        inspect(tmp_path, kernel="6.8.0-31-generic")
    assert caught.value.details == {"kernel": "6.8.0-31-generic", "kernels": [KERNEL]}


def test_modules_for_several_kernels(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tmp_path / "driver/host_driver_binary/u/drv_pcie_host.ko", driver_images.module("6.8.0-31-generic"))
    assert inspect(tmp_path, kernel="6.8.0-31-generic").modules == ["host_driver_binary/u/drv_pcie_host.ko"]
    assert len(inspect(tmp_path).modules) == len(driver_images.MODULES)


def test_no_modules_at_all(tmp_path):
    driver_images.write_tree(tmp_path / "driver", modules={})
    with pytest.raises(NpuError, match=r"no kernel modules \(\*\.ko\)"):
        inspect(tmp_path)


def test_modules_and_npu_smi_outside_the_tree_are_taken_along(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver", modules={})
    (tmp_path / "usr/local/sbin").mkdir(parents=True)
    (tree / "tools/npu-smi").rename(tmp_path / "usr/local/sbin/npu-smi")
    driver_images.write(tmp_path / "lib/modules/x/updates/drv_pcie_host.ko", driver_images.module())
    found = inspect(tmp_path)
    assert found.extra == {
        "tools/npu-smi": str(tmp_path / "usr/local/sbin/npu-smi"),
        "host/drv_pcie_host.ko": str(tmp_path / "lib/modules/x/updates/drv_pcie_host.ko"),
    }
    assert found.plan == ["insmod host/drv_pcie_host.ko required"]


def test_only_the_modules_of_a_host_with_whole_chips(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tree / "host" / "ts_agent_vm.ko", driver_images.module())
    driver_images.write(
        tree / "script" / "specific_func.inc", b'a=1\nmode_normal="%s"\n' % "|".join(driver_images.MODULES).encode()
    )
    assert not [line for line in inspect(tmp_path).plan if "ts_agent_vm" in line]


@pytest.mark.parametrize("what", ["npu-smi", "library", "module"])
def test_another_machine(tmp_path, what):
    tree = driver_images.write_tree(tmp_path / "driver")
    if what == "npu-smi":
        driver_images.write(tree / "tools" / "npu-smi", driver_images.elf(machine=OTHER_MACHINE))
    elif what == "library":
        driver_images.write(tree / "lib64" / "libx.so.1.2", driver_images.elf(machine=OTHER_MACHINE))
    else:
        driver_images.write(tree / "host" / "drv_x.ko", driver_images.module(machine=OTHER_MACHINE))
    with pytest.raises(NpuError, match="for %s, but this host is %s" % (OTHER_MACHINE, MACHINE)):
        inspect(tmp_path)


def test_npu_smi_that_is_missing_or_a_script(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver")
    (tree / "tools" / "npu-smi").chmod(0o755)
    (tree / "tools" / "npu-smi").write_text("#!/bin/sh\n")
    with pytest.raises(NpuError, match="npu-smi in the image is not an ELF file"):
        inspect(tmp_path)
    (tree / "tools" / "npu-smi").unlink()
    with pytest.raises(NpuError, match="has no tools/npu-smi"):
        inspect(tmp_path)


def test_unsigned_modules_where_signed_ones_are_demanded(tmp_path):
    driver_images.write_tree(tmp_path / "driver", signed=True)
    assert inspect(tmp_path, signature_demand="the kernel is locked down (integrity)")
    driver_images.write(tmp_path / "driver/host/drv_x.ko", driver_images.module())
    with pytest.raises(NpuError, match=r"locked down \(integrity\).*not signed: drv_x\."):
        inspect(tmp_path, signature_demand="the kernel is locked down (integrity)")


def test_a_damaged_module_is_named(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tmp_path / "driver/host/drv_x.ko", b"")
    with pytest.raises(NpuError, match=r"drv_x\.ko is damaged or not a kernel module"):
        inspect(tmp_path)


def test_modules_with_any_number_of_symbols(tmp_path, monkeypatch):
    """Compressed, a thousand modules with the most symbols are small; all are kept to choose among them."""
    driver_images.write_tree(tmp_path / "driver", versions={"a%d" % number: number for number in range(10)})
    monkeypatch.setattr(driver_tree, "MAX_SYMBOLS", 50)
    with pytest.raises(NpuError, match="more than 50 symbols"):
        inspect(tmp_path)
