# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules: ELF files written by hand, in every shape a kernel module comes in."""

from __future__ import annotations

import gzip
import lzma
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import driver_images

KERNEL = driver_images.KERNEL


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_modinfo_of_each_kind_of_elf(tmp_path, bits, byte_order):
    path = tmp_path / "drv_pcie_host.ko"
    path.write_bytes(driver_images.module(depends="a,b-c", bits=bits, byte_order=byte_order, machine="x86_64"))
    assert kernel_modules.modinfo(str(path))["depends"] == ["a,b-c"]
    assert kernel_modules.vermagic_kernel(str(path)) == KERNEL
    assert kernel_modules.Module(str(path)).depends == ["a", "b_c"]
    assert kernel_modules.Module(str(path)).machine == "x86_64"


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("layout", [{}, {"extended": True}, {"linked": True}])
def test_symbol_versions_of_each_kind_of_elf(bits, byte_order, layout):
    versions = {"module_layout": 0xDEADBEEF, "a" * 55: 1, "kfree": 0x40}
    content = driver_images.module(versions=versions, bits=bits, byte_order=byte_order, machine="x86_64", **layout)
    assert kernel_modules.symbol_versions(content, "x.ko") == versions
    assert kernel_modules.symbol_versions(driver_images.module(bits=bits, byte_order=byte_order), "x.ko") == {}


@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("crc", [12, 16, 64, 128])
def test_entries_of_64_bytes_are_not_taken_for_linked_ones(byte_order, crc):
    versions = {"module_layout": crc, "_printk": crc}
    content = driver_images.module(versions=versions, byte_order=byte_order, machine="x86_64")
    assert kernel_modules.symbol_versions(content, "x.ko") == versions


def test_a_linked_name_may_be_longer_than_an_entry_of_64_bytes():
    versions = {"_R" + "x" * 200: 7, "module_layout": 0}
    assert kernel_modules.symbol_versions(driver_images.module(versions=versions, linked=True), "x.ko") == versions


def test_symbol_versions_that_are_damaged():
    info = (".modinfo", b"vermagic=1\0")
    more = [("__version_ext_crcs", b"\1\0\0\0" * 3), ("__version_ext_names", b"a\0")]
    with pytest.raises(NpuError, match="x.ko is damaged"):
        kernel_modules.symbol_versions(driver_images.elf([info, *more]), "x.ko")
    with pytest.raises(NpuError, match="x.ko is damaged"):
        kernel_modules.symbol_versions(driver_images.elf([info, ("__versions", b"x" * (2**20 + 64))]), "x.ko")
    # A part of an entry at the end does not count, as in the kernel.
    assert kernel_modules.symbol_versions(driver_images.elf([info, ("__versions", b"x" * 63)]), "x.ko") == {}


@pytest.mark.parametrize("suffix, pack", [(".ko", bytes), (".ko.xz", lzma.compress), (".ko.gz", gzip.compress)])
@pytest.mark.parametrize("signed", [False, True])
def test_packed_and_signed_modules(tmp_path, suffix, pack, signed):
    path = tmp_path / ("asdrv-pbl" + suffix)
    path.write_bytes(pack(driver_images.module(machine="aarch64", signed=signed)))
    module = kernel_modules.Module(str(path))
    assert (module.name, module.kernel, module.signed, module.machine) == ("asdrv_pbl", KERNEL, signed, "aarch64")


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.ko", b""),
        ("x.ko", b"\x7fELF"),
        ("x.ko", b"#!/bin/sh\n" * 20),
        ("x.ko", driver_images.module()[:300]),
        ("x.ko", driver_images.module()[:-40]),
        ("x.ko", driver_images.elf([(".text", b"x")])),
        ("x.ko", driver_images.module(kernel=None)),
        ("x.ko.xz", b"no xz"),
        ("x.ko.gz", b"no gzip"),
        ("x.ko.gz", gzip.compress(b"x" * 1000, mtime=0)[:-9]),
    ],
)
def test_what_is_no_module_is_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(NpuError, match=r"x\.ko"):
        kernel_modules.Module(str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NpuError, match="gone.ko cannot be read"):
        kernel_modules.modinfo(str(tmp_path / "gone.ko"))


def write_modules(directory, modules):
    paths = []
    for name, depends in modules.items():
        path = directory / (name + ".ko")
        path.write_bytes(driver_images.module(depends=depends))
        paths.append(str(path))
    return paths


def test_modules_come_after_what_they_need(tmp_path):
    paths = write_modules(tmp_path, driver_images.MODULES)
    foreign, ordered = kernel_modules.load_order(reversed(paths))
    names = [kernel_modules.module_name(path) for path in ordered]
    assert foreign == ["i2c_core", "vfio"]
    assert sorted(ordered) == sorted(paths)
    for name, depends in driver_images.MODULES.items():
        for needed in depends.split(","):
            if needed in names:
                assert names.index(needed) < names.index(name)


def test_a_name_is_the_same_with_dash_and_underscore(tmp_path):
    ordered = kernel_modules.load_order(write_modules(tmp_path, {"a-user": "z_lib", "z-lib": ""}))[1]
    assert [os.path.basename(path) for path in ordered] == ["z-lib.ko", "a-user.ko"]


def test_a_circle_is_named(tmp_path):
    paths = write_modules(tmp_path, {"a": "b", "b": "c", "c": "b", "d": ""})
    with pytest.raises(NpuError, match="have a dependency cycle: b -> c -> b"):
        kernel_modules.load_order(paths)


def test_the_same_module_twice_is_named(tmp_path):
    (tmp_path / "other").mkdir()
    paths = write_modules(tmp_path, {"a": ""}) + write_modules(tmp_path / "other", {"a": ""})
    with pytest.raises(NpuError, match="a exists twice"):
        kernel_modules.load_order(paths)


def test_loaded_modules_are_those_with_a_state(tmp_path):
    for name, files in {
        "drv_pcie_host": ("initstate", "version"),
        "built_in": ("version",),
        "bare": ("initstate",),
    }.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("25.5.0\n" if file == "version" else "live\n")
    assert kernel_modules.loaded(str(tmp_path)) == {"drv_pcie_host": "25.5.0", "bare": None}
    assert kernel_modules.loaded(str(tmp_path / "none")) == {}


@pytest.mark.parametrize(
    "path, content, demanded",
    [
        ("module/module/parameters/sig_enforce", "Y\n", "sig_enforce"),
        ("module/module/parameters/sig_enforce", "N\n", None),
        ("kernel/security/lockdown", "none [integrity] confidentiality\n", "integrity"),
        ("kernel/security/lockdown", "[none] integrity confidentiality\n", None),
        ("other", "", None),
    ],
)
def test_when_the_kernel_demands_signatures(tmp_path, path, content, demanded):
    driver_images.write(tmp_path / path, content.encode("ascii"))
    found = kernel_modules.signature_demand(str(tmp_path))
    assert demanded in found if demanded else found is None


def test_a_chain_of_modules_longer_than_the_stack():
    """An image can have any number of modules."""
    names = ["m%d" % number for number in range(3000)]
    chain = {"%s.ko" % name: names[number + 1 : number + 2] for number, name in enumerate(names)}
    assert kernel_modules.order(chain) == ([], ["%s.ko" % name for name in reversed(names)])
