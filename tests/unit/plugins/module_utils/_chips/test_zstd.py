# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""zstd as kernels have it: read within limits, by Python 3.14 or by the host's own program."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules, symvers, zstd
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError

from support.host import driver_images

RELEASE = "6.8.0-45-generic"
_BLOCK = 2**17
reads_zstd = pytest.mark.skipif(
    zstd._library is None and not any(map(os.path.exists, zstd.PROGRAMS)), reason="neither Python 3.14 nor zstd is here"
)


def pack(content, repeated=0, window=0x38):
    """A frame of blocks that are not compressed, then `repeated` blocks of 128 KiB of one byte."""
    blocks = [(0, content[at : at + _BLOCK]) for at in range(0, len(content), _BLOCK)] + [(1, b"\0")] * repeated
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([window])
    for number, (kind, data) in enumerate(blocks):
        size = _BLOCK if kind else len(data)
        frame += (size << 3 | kind << 1 | (number == len(blocks) - 1)).to_bytes(3, "little") + data
    return frame


@reads_zstd
def test_what_is_packed_is_read():
    content = os.urandom(300_000)
    assert zstd.unpack(pack(content), 2**20) == content
    assert zstd.unpack(pack(content), len(content)) == content


@reads_zstd
def test_a_bomb_is_read_up_to_the_limit():
    """A few KiB that unpack to a GiB."""
    assert len(zstd.unpack(pack(b"x", repeated=8192), 2**20)) == 2**20 + 1
    with pytest.raises(NpuError, match="unpacks to more than 1 MiB"):
        kernel_modules.unpack(pack(b"x", repeated=8192), "x.ko.zst", 2**20, "Kernel module")


@reads_zstd
@pytest.mark.parametrize(
    "content",
    [b"", b"no zstd", pack(b"x" * 1000)[:-9], pack(b"x", window=0xF8), b"\x28\xb5\x2f\xfd" + b"\xff" * 100],
    ids=["empty", "none", "truncated", "window of 2 TiB", "nonsense"],
)
def test_what_is_none(content):
    with pytest.raises(NpuError, match=r"^Kernel module x\.ko\.zst cannot be read: "):
        kernel_modules.unpack(content, "x.ko.zst", 2**20, "Kernel module")


def test_without_a_program_it_says_so(monkeypatch):
    monkeypatch.setattr(zstd, "_library", None)
    monkeypatch.setattr(zstd, "PROGRAMS", ("/nowhere/zstd",))
    with pytest.raises(NpuError, match="neither /nowhere/zstd nor Python 3.14"):
        kernel_modules.unpack(pack(b"x"), "x.ko.zst", 2**20, "Kernel module")


def test_a_program_that_hangs(monkeypatch, tmp_path):
    program = tmp_path / "zstd"
    program.write_text("#!/bin/sh\nexec sleep 600\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(zstd, "_library", None)
    monkeypatch.setattr(zstd, "PROGRAMS", (str(program),))
    monkeypatch.setattr(zstd, "_SECONDS", 0.2)
    with pytest.raises(NpuError, match="did not end within"):
        zstd.unpack(pack(b"x"), 100)


@reads_zstd
def test_the_flags_of_a_kernel_whose_modules_are_packed_with_it(tmp_path):
    """Ubuntu's. Modules of a sibling release are accepted only if their flags are those of this kernel."""
    versions = {"module_layout": 0x2C635527}
    directory = tmp_path / "lib/modules" / RELEASE
    driver_images.write(directory / "kernel/fs/ext4.ko.zst", pack(driver_images.module(RELEASE)))
    driver_images.write(directory / "symvers.zst", pack(driver_images.symvers(versions)))
    found = symvers.of_kernel(RELEASE, str(tmp_path))
    assert (found.kernel, found.flags) == (versions, "SMP preempt mod_unload modversions")


def test_a_kernel_none_of_whose_modules_can_be_read_is_not_tried_for_long(tmp_path):
    directory = tmp_path / "lib/modules" / RELEASE
    driver_images.write(directory / "symvers", driver_images.symvers({"module_layout": 1}))
    for number in range(50):
        driver_images.write(directory / "kernel" / ("m%d.ko.zst" % number), b"x")
    assert symvers.of_kernel(RELEASE, str(tmp_path)).flags is None
