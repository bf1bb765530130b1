# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that were made to hang the host that looks at them, to fill it, or to get at what is its own.

Each of these is refused with a sentence. A test that would hang is ended by its alarm, and its memory is limited.
"""

from __future__ import annotations

import lzma
import os
import resource
import signal
import socket
import stat
import struct
import zlib

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._chips import kernel_modules
from ansible_collections.npuops.ascend.plugins.module_utils._driver import staging
from ansible_collections.npuops.ascend.plugins.module_utils._driver import tree as driver_tree
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._image import image_files
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import version_info

from support.host import driver_images

KERNEL = driver_images.KERNEL
MACHINE = os.uname().machine


@pytest.fixture(autouse=True)
def no_end_is_no_end():
    """What hangs, or takes all of the memory, fails instead of taking the machine with it."""

    def over(number, frame):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, over)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, limits[1]))
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def whole(top, tree=None):
    """What staging does with an image, up to the copy."""
    found = driver_tree.find(str(top), tree)
    return driver_tree.inspect(str(top), found, KERNEL, MACHINE)


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(str(path))


def zeros(path):
    """What /dev/zero is: a character device that can be read for ever."""
    path.unlink(missing_ok=True)
    os.mknod(str(path), stat.S_IFCHR | 0o666, os.makedev(1, 5))


def unix_socket(path):
    path.unlink(missing_ok=True)
    # Its path may be longer than what fits into an address.
    directory = os.open(str(path.parent), os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("/proc/self/fd/%d/%s" % (directory, path.name))
    finally:
        os.close(directory)


PLACES = (
    "lib64/driver/libdcmi.so",
    "lib64/libnew.so.1",
    "host/drv_pcie_host.ko",
    "host/drv_new.ko.xz",
    "tools/npu-smi",
    "version.info",
    "script/specific_func.inc",
    "device/firmware.bin",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make, words", [(pipe, "named pipe"), (zeros, "character device"), (unix_socket, "socket")])
def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path, place, make, words):
    tree = driver_images.write_tree(tmp_path / "driver")
    (tree / place).parent.mkdir(exist_ok=True)
    make(tree / place)
    with pytest.raises(NpuError, match=words if place != "version.info" else "no driver tree|" + words) as caught:
        whole(tmp_path)
    assert os.path.basename(place) in caught.value.message


@pytest.mark.parametrize("make, words", [(pipe, "named pipe"), (zeros, "character device")])
def test_a_module_outside_of_the_tree_that_is_no_file(tmp_path, make, words):
    driver_images.write_tree(tmp_path / "driver", modules={})
    (tmp_path / "lib").mkdir()
    make(tmp_path / "lib" / "drv_x.ko")
    with pytest.raises(NpuError, match=r"drv_x\.ko.* is a %s" % words):
        whole(tmp_path)


@pytest.mark.parametrize(
    "place, end",
    [
        ("lib64", "/proc/self"),
        ("lib64/libx.so", "/dev/zero"),
        ("host/drv_x.ko", "/dev/zero"),
        ("tools/npu-smi", "/dev/zero"),
        ("tools", "/usr/bin"),
        ("version.info", "/dev/zero"),
        ("script/specific_func.inc", "/dev/zero"),
        ("script/specific_func.inc", "../../outside"),
        ("script", "../outside"),
    ],
)
def test_a_link_out_of_the_tree_is_not_followed(tmp_path, place, end):
    tree = driver_images.write_tree(tmp_path / "driver")
    (tree / place).parent.mkdir(exist_ok=True)
    if (tree / place).is_dir():
        (tree / place).rename(tmp_path / "elsewhere")
    (tree / place).unlink(missing_ok=True)
    (tree / place).symlink_to(end)
    with pytest.raises(NpuError, match="leads out of the driver tree|no driver tree"):
        whole(tmp_path)
    with pytest.raises(NpuError, match="leads out of the driver tree|no driver tree"):
        whole(tmp_path, "/driver")


def test_an_npu_smi_of_the_host_is_not_taken_for_the_images(tmp_path):
    """usr/local/sbin is a link of the image to a directory of the host."""
    host = tmp_path / "host"
    driver_images.write(host / "npu-smi", driver_images.elf(), 0o755)
    top = tmp_path / "image"
    tree = driver_images.write_tree(top / "driver")
    (tree / "tools" / "npu-smi").unlink()
    (top / "usr" / "local").mkdir(parents=True)
    (top / "usr" / "local" / "sbin").symlink_to(str(host))
    with pytest.raises(NpuError, match="has no tools/npu-smi"):
        whole(top)


def test_links_that_go_on_and_on(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver")
    for number in range(1500):
        (tree / ("l%d" % number)).symlink_to("l%d" % (number + 1))
    (tree / "l1500").symlink_to("l0")
    with pytest.raises(NpuError, match="in the image is one of a loop, or of more than 40 in a row"):
        whole(tmp_path)


def test_directories_without_end(tmp_path):
    driver_images.write_tree(tmp_path / "driver")
    here = os.open(str(tmp_path / "driver"), os.O_RDONLY)
    for dummy in range(3000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        with pytest.raises(NpuError, match="directories more than 64 levels deep"):
            whole(tmp_path)
    finally:
        # pytest's own way to remove it would not come to the end.
        os.system("rm -rf '%s'" % (tmp_path / "driver" / "d"))


def test_more_files_than_any_driver_has(tmp_path, monkeypatch):
    driver_images.write_tree(tmp_path / "driver")
    monkeypatch.setattr(image_files, "MAX_ENTRIES", 5)
    with pytest.raises(NpuError, match="more than 5 files and directories"):
        whole(tmp_path)


@pytest.mark.parametrize("place", ["version.info", "script/specific_func.inc"])
def test_a_text_of_a_gigabyte_is_not_read(tmp_path, place):
    tree = driver_images.write_tree(tmp_path / "driver")
    (tree / place).parent.mkdir(exist_ok=True)
    (tree / place).touch()
    (tree / place).chmod(0o644)
    os.truncate(str(tree / place), 2**30)
    with pytest.raises(NpuError, match=r"%s has more than \d+ bytes" % os.path.basename(place)):
        whole(tmp_path)


def test_a_module_of_a_terabyte_is_not_read(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tree / "host" / "drv_x.ko", b"\x7fELF")
    os.truncate(str(tree / "host" / "drv_x.ko"), 2**33)
    with pytest.raises(NpuError, match=r"drv_x\.ko has more than \d+ bytes"):
        whole(tmp_path)


def test_a_driver_larger_than_any_is_not_copied(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tree / "device" / "x.bin", b"")
    os.truncate(str(tree / "device" / "x.bin"), 2**42)
    with pytest.raises(NpuError, match="have 4096 GiB in total"):
        whole(tmp_path)


def test_the_copy_opens_no_pipe_either(tmp_path):
    driver_images.write(tmp_path / "source" / "file", b"x")
    os.mkfifo(str(tmp_path / "pipe"))
    with pytest.raises(NpuError, match="is a named pipe, not a regular file"):
        staging.copy_file(str(tmp_path / "pipe"), str(tmp_path / "copy"))


# --- what is packed ---

SIZE = 272 * 2**20


def gzip_bomb():
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = b"\0" * 2**24
    return b"".join(packer.compress(block) for dummy in range(SIZE // len(block))) + packer.flush()


def xz_bomb():
    packer = lzma.LZMACompressor(preset=0)
    block = b"\0" * 2**24
    return b"".join(packer.compress(block) for dummy in range(SIZE // len(block))) + packer.flush()


@pytest.mark.parametrize("suffix, bomb", [(".ko.gz", gzip_bomb), (".ko.xz", xz_bomb)])
def test_a_module_that_unpacks_to_gigabytes(tmp_path, suffix, bomb):
    path = tmp_path / ("drv_x" + suffix)
    path.write_bytes(bomb())
    assert path.stat().st_size < 16 * 2**20
    with pytest.raises(NpuError, match=r"drv_x%s unpacks to more than \d+ MiB" % suffix):
        kernel_modules.Module(str(path))


def test_an_xz_that_asks_for_a_dictionary_of_gigabytes(tmp_path):
    packer = lzma.LZMACompressor(filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**20}])
    content = bytearray(packer.compress(driver_images.module()) + packer.flush())
    # The block header's only filter: LZMA2, one byte of properties, the size of the dictionary; then the header's CRC.
    at = content.index(b"\x21\x01", 12) + 2
    content[at] = 40
    size = (content[12] + 1) * 4
    content[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(bytes(content[12 : 12 + size - 4])))
    path = tmp_path / "drv_x.ko.xz"
    path.write_bytes(bytes(content))
    with pytest.raises(NpuError, match=r"drv_x\.ko\.xz cannot be read.*[Mm]emory"):
        kernel_modules.Module(str(path))


def test_modules_packed_with_zstd_are_named(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver", modules={})
    driver_images.write(tree / "host" / "drv_pcie_host.ko.zst", b"\x28\xb5\x2f\xfd" + b"x" * 100)
    with pytest.raises(NpuError, match=r"drv_pcie_host\.ko\.zst.*zstd.*\.ko\.xz"):
        whole(tmp_path)


# --- what a module says about itself ---


def test_section_names_without_an_end(tmp_path):
    """A table of names without a zero byte, searched once per section, is hours of work."""
    count, names = 65000, b"x" * (64 * 2**20)
    header = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    table = 64 + len(names)
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, count, 0)
    rows = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, len(names), 0, 0, 1, 0) * count
    path = tmp_path / "drv_x.ko"
    path.write_bytes(header + names + rows)
    with pytest.raises(NpuError, match=r"drv_x\.ko is not a kernel module"):
        kernel_modules.Module(str(path))


def modinfo(**fields):
    content = b"\0".join(("%s=%s" % pair).encode("utf-8") for pair in fields.items()) + b"\0"
    return driver_images.elf([(".modinfo", content)])


@pytest.mark.parametrize("kernel", ["6.6\x1b[2J", "../../etc", "x" * 300, "6.6;reboot", "-v"])
def test_a_kernel_that_is_no_kernels_name(tmp_path, kernel):
    path = tmp_path / "drv_x.ko"
    path.write_bytes(modinfo(vermagic=kernel + " SMP"))
    with pytest.raises(NpuError, match=r"drv_x\.ko does not state the kernel") as caught:
        kernel_modules.Module(str(path))
    assert "\x1b" not in caught.value.message and len(caught.value.message) < 500


@pytest.mark.parametrize("depends", ["a\ninsmod /tmp/evil.ko required", "a b", "-C /tmp/evil", "../x", "$(reboot)", "x" * 300])
def test_dependencies_that_would_become_lines_of_the_load_plan(tmp_path, depends):
    path = tmp_path / "drv_x.ko"
    path.write_bytes(modinfo(vermagic=KERNEL, depends=depends))
    with pytest.raises(NpuError, match=r"drv_x\.ko depends on .* not a valid module name"):
        kernel_modules.Module(str(path))


@pytest.mark.parametrize("name", ["drv x.ko", "drv\nx.ko", "dr\udcffv.ko", "$(x).ko", ".ko"])
def test_file_names_that_would_become_lines_of_the_load_plan(tmp_path, name):
    tree = driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tree / "host" / name, driver_images.module())
    with pytest.raises(NpuError, match="not a valid module name"):
        whole(tmp_path)


def test_directory_names_that_would_become_lines_of_the_load_plan(tmp_path):
    tree = driver_images.write_tree(tmp_path / "driver")
    driver_images.write(tree / "a b" / "drv_new.ko", driver_images.module())
    with pytest.raises(NpuError, match="its path is not valid for a module"):
        whole(tmp_path)


def test_a_modinfo_of_many_megabytes(tmp_path):
    path = tmp_path / "drv_x.ko"
    path.write_bytes(driver_images.elf([(".modinfo", b"a=b\0" * (3 * 2**20))]))
    with pytest.raises(NpuError, match=r"drv_x\.ko is damaged or not a kernel module"):
        kernel_modules.Module(str(path))


@pytest.mark.parametrize("version", ["x" * 300, "25.5.0\x1b[2J", "25/5", "..", "-1"])
def test_a_version_that_is_none(tmp_path, version):
    tree = driver_images.write_tree(tmp_path / "driver")
    (tree / "version.info").chmod(0o644)
    (tree / "version.info").write_text("Version=%s\n" % version)
    with pytest.raises(NpuError, match="version.info") as caught:
        version_info.read(str(tree))
    assert "\x1b" not in caught.value.message and len(caught.value.message) < 500
