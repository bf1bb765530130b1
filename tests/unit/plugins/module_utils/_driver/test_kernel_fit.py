# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the modules of a driver tree fit the kernel of the host."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import symvers
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import driver_images

KERNEL = driver_images.KERNEL
SIBLING = "6.6.0-150.0.0.139.oe2403sp3.x86_64"
FLAGS = "SMP preempt mod_unload modversions"


def inspect(top, **more):
    return driver_tree.inspect(str(top), str(top / "driver"), KERNEL, os.uname().machine, **more)


def test_symbols_of_another_build_of_the_kernel(tmp_path):
    """As the kernel: only what both have counts. Optional modules may fail."""
    driver_images.write_tree(
        tmp_path / "driver", modules={"asdrv_pbl": "", "drv_vascend": ""}, versions={"module_layout": 1, "own": 2}
    )
    optional = driver_images.module(versions={"module_layout": 9})
    (tmp_path / "driver/host/drv_vascend.ko").chmod(0o600)
    driver_images.write(tmp_path / "driver/host/drv_vascend.ko", optional)
    for versions, differs in (
        ({"module_layout": 1, "other": 5}, None),
        ({"module_layout": 1, "own": 0}, None),
        ({"module_layout": 1, "own": 3}, "own is 0x00000002 in the module, and 0x00000003 in /boot/x; 1 of its 2"),
        ({"module_layout": 7, "own": 3}, "module_layout is 0x00000001 in the module, and 0x00000007 in /boot/x; 2 of its 2"),
    ):
        exported = symvers.Symvers(KERNEL, "/boot/x", driver_images.symvers(versions))
        if differs is None:
            assert inspect(tmp_path, symvers=exported).modules
        else:
            with pytest.raises(NpuError, match="asdrv_pbl does not load.*" + differs):
                inspect(tmp_path, symvers=exported)


@pytest.mark.parametrize(
    "change, exported, flags, why",
    [
        ({}, {}, FLAGS, None),
        ({}, {"unused": 9}, FLAGS, None),
        # Optional modules may fail.
        ({"drv_vascend": {"versions": {"module_layout": 9}}}, {}, FLAGS, None),
        ({}, {"_printk": 3}, FLAGS, "asdrv_pbl needs _printk with a CRC that /boot/x does not have"),
        ({}, {"pbl_get": 5}, FLAGS, "drv_pcie_host needs pbl_get with a CRC"),
        ({"asdrv_pbl": {"versions": {"module_layout": 1, "gone": 1}}}, {}, FLAGS, "asdrv_pbl needs gone with a CRC"),
        ({"drv_pcie_host": {"versions": None}}, {}, FLAGS, "drv_pcie_host has no symbol versions"),
        (
            {},
            {},
            "SMP preempt_rt mod_unload modversions",
            "of asdrv_pbl has the flags SMP preempt mod_unload modversions, and those",
        ),
        ({}, {}, None, "those of this kernel are unknown"),
    ],
)
def test_modules_for_another_release_of_the_same_kabi(tmp_path, change, exported, flags, why):
    """The kernel ignores the release of a module with symbol versions. The driver's modules also need symbols of each other."""
    kinds = {
        "asdrv_pbl": {"versions": {"module_layout": 1, "_printk": 2}, "exports": ["pbl_get"]},
        "drv_pcie_host": {"versions": {"module_layout": 1, "pbl_get": 7}},
        "drv_vascend": {"versions": {"module_layout": 1}},
    }
    driver_images.write_tree(tmp_path / "driver", modules={})
    for name in kinds:
        content = driver_images.module(SIBLING, **{**kinds[name], **change.get(name, {})})
        driver_images.write(tmp_path / "driver/host" / (name + ".ko"), content)
    content = driver_images.symvers({"module_layout": 1, "_printk": 2, **exported})
    host = symvers.Symvers(KERNEL, "/boot/x", content, flags)
    if why is None:
        assert [path[5:] for path in inspect(tmp_path, symvers=host).modules] == [name + ".ko" for name in kinds]
    else:
        with pytest.raises(
            NpuError, match="no modules for kernel %s; it has modules for %s.* do not fit: .*%s" % (KERNEL, SIBLING, why)
        ):
            inspect(tmp_path, symvers=host)
    with pytest.raises(NpuError, match="it has modules for %s$" % SIBLING):
        inspect(tmp_path)


def test_modules_of_the_own_kernel_come_before_those_of_its_kabi(tmp_path):
    driver_images.write_tree(tmp_path / "driver", modules={"asdrv_pbl": ""}, versions={"module_layout": 1})
    other = driver_images.module(SIBLING, versions={"module_layout": 1})
    driver_images.write(tmp_path / "driver/other/asdrv_pbl.ko", other)
    host = symvers.Symvers(KERNEL, "/boot/x", driver_images.symvers({"module_layout": 1}), FLAGS)
    assert inspect(tmp_path, symvers=host).modules == ["host/asdrv_pbl.ko"]
