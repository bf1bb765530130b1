# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exported symbols of a kernel: where distributions have them, in which forms, and files that are not usable."""

from __future__ import annotations

import gzip
import lzma
import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import symvers

from support.host import driver_images

RELEASE = "5.10.0-136.12.0.86.oe2203sp1.aarch64"
VERSIONS = {"module_layout": 0x2C635527, "_printk": 0x92997ED8}
CONTENT = driver_images.symvers(VERSIONS)


@pytest.mark.parametrize(
    "path, pack",
    [
        ("boot/symvers-%s.gz", gzip.compress),
        ("boot/symvers-%s.xz", lzma.compress),
        ("lib/modules/%s/symvers.gz", gzip.compress),
        ("usr/lib/modules/%s/symvers.xz", lzma.compress),
        ("lib/modules/%s/build/Module.symvers", bytes),
        ("usr/src/kernels/%s/Module.symvers", bytes),
        ("usr/src/linux-headers-%s/Module.symvers", bytes),
    ],
)
def test_where_distributions_have_it(tmp_path, path, pack):
    driver_images.write(tmp_path / (path % RELEASE), pack(CONTENT))
    found = symvers.of_kernel(RELEASE, str(tmp_path))
    assert (found.release, found.path, found.kernel) == (RELEASE, str(tmp_path / (path % RELEASE)), VERSIONS)
    assert symvers.of_kernel("5.10.0", str(tmp_path)) is None


def test_links_of_distributions_are_followed(tmp_path):
    driver_images.write(tmp_path / "lib/modules" / RELEASE / "symvers.gz", gzip.compress(CONTENT))
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / ("symvers-%s.gz" % RELEASE)).symlink_to("../lib/modules/%s/symvers.gz" % RELEASE)
    assert symvers.of_kernel(RELEASE, str(tmp_path)).kernel == VERSIONS


@pytest.mark.parametrize(
    "name, content",
    [
        ("symvers.gz", b"no gzip"),
        ("symvers.gz", gzip.compress(CONTENT)[:-9]),
        ("symvers.gz", gzip.compress(bytes(symvers._MAX_SYMVERS + 1))),
        ("symvers.xz", b""),
        ("symvers.zst", b"(\xb5/\xfd"),
        ("symvers", b"\xff\x00\n\t\t\n0x\tmodule_layout\tvmlinux\n0x1\t\xff\tvmlinux\n"),
        # CONFIG_MODVERSIONS is off.
        ("symvers", driver_images.symvers({"module_layout": 0, "_printk": 0})),
    ],
    ids=["no gzip", "truncated", "too large", "empty", "zstd", "no symbols", "no CRCs"],
)
def test_an_unusable_file_does_not_count(tmp_path, name, content):
    """What a host lacks is no reason to refuse a driver: the next file is tried."""
    directory = tmp_path / "lib/modules" / RELEASE
    driver_images.write(directory / name, content)
    os.mkfifo(str(tmp_path / "lib/modules" / RELEASE / "other"))
    (directory / "build").symlink_to("other")
    assert symvers.of_kernel(RELEASE, str(tmp_path)) is None
    driver_images.write(tmp_path / "boot" / ("symvers-%s.gz" % RELEASE), gzip.compress(CONTENT))
    assert symvers.of_kernel(RELEASE, str(tmp_path)).kernel == VERSIONS


@pytest.mark.parametrize("line", [
    b"0x1\t\x1b[31mevil\tvmlinux\n", b"0x1\tevil name\tvmlinux\n", b"-0x1\tevil\tvmlinux\n", b"0x1ffffffff\tevil\tvmlinux\n",
    b"0x%s\tevil\tvmlinux\n" % (b"1" * 100000), b"0x1\t%s\tvmlinux\n" % (b"e" * 100000), b"0x_1\tevil\tvmlinux\n", b"0x1\t../evil\tvmlinux\n",
])  # fmt: skip
def test_a_hostile_line_is_no_symbol(line):
    assert symvers.Symvers(RELEASE, "x", line + CONTENT).kernel == VERSIONS


def test_more_symbols_than_any_kernel_has(tmp_path):
    """They would fill the memory of the host; the next file is tried."""
    many = CONTENT + b"".join(b"1\ts%d\tvmlinux\n" % number for number in range(2**20))
    driver_images.write(tmp_path / "lib/modules" / RELEASE / "symvers.gz", gzip.compress(many, 1))
    assert symvers.of_kernel(RELEASE, str(tmp_path)) is None
    driver_images.write(tmp_path / "boot" / ("symvers-%s.gz" % RELEASE), gzip.compress(CONTENT))
    assert symvers.of_kernel(RELEASE, str(tmp_path)).kernel == VERSIONS


@pytest.mark.parametrize("release", ["../../etc", "..", "5.10\0", "a" * 5000])
def test_a_release_that_is_a_path(tmp_path, release):
    assert symvers.of_kernel(release, str(tmp_path)) is None


def test_a_pipe_in_its_place_does_not_block(tmp_path):
    (tmp_path / "boot").mkdir()
    os.mkfifo(str(tmp_path / "boot" / ("symvers-%s.gz" % RELEASE)))
    assert symvers.of_kernel(RELEASE, str(tmp_path)) is None


def test_only_symbols_of_the_kernel_itself_differ(tmp_path):
    """Other drivers replace the kernel's modules; Linux 5.4 to 5.6 has the namespace before the module."""
    content = CONTENT + driver_images.symvers({"ib_register_client": 7}, "drivers/infiniband/core/ib_core")
    content += b"0x00000008\tdma_buf_get\tDMA_BUF\tvmlinux\tEXPORT_SYMBOL_GPL\n"
    found = symvers.Symvers(RELEASE, "x", content)
    assert found.differing(dict(VERSIONS, ib_register_client=1, of_another_driver=1, dma_buf_get=8)) == []
    assert found.differing(dict(VERSIONS, _printk=1, dma_buf_get=1)) == ["_printk", "dma_buf_get"]
