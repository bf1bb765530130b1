# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of the Ascend Docker Runtime, as Huawei makes them and malformed ones: read, never run."""

from __future__ import annotations

import struct
import tarfile

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._ascend_runtime import package as runtime_package
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import driver_packages, runtime_packages


def elf(machine):
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, machine) + bytes(40)


def unpacked(tmp_path, *args, **more):
    path = runtime_packages.write(tmp_path, *args, **more)
    return runtime_package.Unpacked(str(path), str(tmp_path / "unpacked"), path.name)


def without(name):
    return {key: value for key, value in runtime_packages.members().items() if key != name}


def test_what_is_in_it(tmp_path):
    found = unpacked(tmp_path)
    assert (found.version, found.machine, found.base_list.decode()) == ("26.1.0", None, runtime_packages.LIST)
    assert not driver_packages.RAN.exists()


def test_the_machine_of_its_programs(tmp_path):
    assert unpacked(tmp_path, files=runtime_packages.members(program=elf(183))).machine == "aarch64"


@pytest.mark.parametrize("name", [*runtime_packages.PROGRAMS, "base.list", "run_main.sh"])
def test_a_file_is_missing(tmp_path, name):
    with pytest.raises(NpuError, match="has no file %s: it is not a package of the Ascend Docker Runtime" % name):
        unpacked(tmp_path, files=without(name))


BAD = {
    "climbs": ({}, [("../../etc/x", b"")], "leads out of the package"),
    "absolute": ({}, [("/etc/x", b"")], "leads out of the package"),
    "device": (
        {},
        [("null", b"", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})],
        "neither a file, a directory nor a link",
    ),
    "pipe": ({}, [("pipe", b"", {"type": tarfile.FIFOTYPE})], "neither a file, a directory nor a link"),
    "twice": ({}, [("base.list", b"/\n")], "has base.list twice"),
    "link-out": ({}, [("x", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/shadow"})], "leads out of the package"),
    "list-is-a-link": (
        without("base.list"),
        [("base.list", b"", {"type": tarfile.SYMTYPE, "linkname": "run_main.sh"})],
        "not a file with content",
    ),
    "empty-program": (
        {**runtime_packages.members(), "ascend-docker-hook": b""},
        [],
        "ascend-docker-hook .* is not a file with content",
    ),
    "no-version": ({**runtime_packages.members(), "run_main.sh": b"#!/bin/bash\n"}, [], "says no version"),
    "two-machines": (
        {**runtime_packages.members(program=elf(62)), "ascend-docker-cli": elf(183)},
        [],
        "programs for aarch64 and x86_64",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_content(tmp_path, case):
    files, extra, told = BAD[case]
    with pytest.raises(NpuError, match=told):
        unpacked(tmp_path, files=files or None, extra=extra)


def test_a_truncated_or_damaged_package(tmp_path):
    path = runtime_packages.write(tmp_path)
    content = path.read_bytes()
    for number, (changed, told) in enumerate(
        [
            (content[:-20], "truncated"),
            (content[:-200] + bytes(200), "damaged"),
            (b"#!/bin/sh\nexit 0\n", "not a self-extracting archive"),
        ]
    ):
        path.write_bytes(changed)
        with pytest.raises(NpuError, match=told):
            runtime_package.Unpacked(str(path), str(tmp_path / str(number)), path.name)


def test_the_version_line():
    name = "https://files.example.com/Ascend-docker-runtime_7.3.0_linux-aarch64.run"
    assert runtime_package.version_in(name) == "7.3.0" and runtime_package.version_in("/srv/x.run") is None
    assert [runtime_package.version_line_of(one) for one in ("26.1.0", "7.3.0.SPC1", "26.10.1", "x")] == [
        "26.1",
        "7.3",
        "26.10",
        None,
    ]
    runtime_package.check_version_line(name, "7.3.2", "7.3")
    runtime_package.check_version_line(name, "7.3.2", "")
    with pytest.raises(
        NpuError, match="npu_mindcluster_version_line is 26.1.*set npu_runtime_package and npu_runtime_package_sha256"
    ):
        runtime_package.check_version_line(name, "7.3.0", "26.1")
