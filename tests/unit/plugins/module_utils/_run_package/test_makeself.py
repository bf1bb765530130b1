# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages are read, never run, and nothing of them is written outside of the directory that they are extracted to."""

from __future__ import annotations

import bz2
import lzma
import os
import stat
import tarfile
import tracemalloc
import zlib

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.module_utils._run_package import makeself

from support.host import driver_packages

LINK, HARD, FIFO, DEVICE = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE


@pytest.fixture(autouse=True)
def never_run():
    assert not driver_packages.RAN.exists()
    yield
    assert not driver_packages.RAN.exists()


def extract(path, tmp_path, **more):
    target = tmp_path / "extracted"
    size = makeself.Package(str(path)).extract(str(target), **more)
    return size, target


@pytest.mark.parametrize("options", [("--gzip",), ("--bzip2",), ("--xz",), ("--nocomp",)], ids=lambda options: options[0])
def test_what_makeself_makes(tmp_path, options):
    size, target = extract(driver_packages.makeself(tmp_path, options=options), tmp_path)
    assert (target / "version.info").read_text().startswith("Version=25.5.0")
    assert (target / "driver" / "lib64" / "driver" / "libdcmi.so").is_file()
    assert size == sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


@pytest.mark.parametrize("lines", [b'skip="%d"', b'offset=`head -n %d "$0" | wc -c`', b"skip=%d"])
def test_how_versions_of_makeself_tell_where_the_archive_begins(tmp_path, lines):
    script = driver_packages.SCRIPT.replace(b'skip="%d"', lines)
    extract(driver_packages.by_hand(tmp_path / "x.run", [("a", b"1")], script=script), tmp_path)
    assert (tmp_path / "extracted" / "a").read_bytes() == b"1"


def test_a_signature_behind_the_archive_is_ignored(tmp_path):
    path = driver_packages.by_hand(tmp_path / "x.run", [("a", b"1")])
    path.write_bytes(path.read_bytes() + b"signature")
    assert extract(path, tmp_path)[0] == 1


def test_owners_and_modes(tmp_path):
    members = [("d", b"", {"type": tarfile.DIRTYPE, "mode": 0o000}), ("d/a", b"1", {"mode": 0o6777, "uid": 4711})]
    _size, target = extract(driver_packages.by_hand(tmp_path / "x.run", members), tmp_path)
    assert stat.S_IMODE((target / "d" / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((target / "d").stat().st_mode) == 0o755
    assert (target / "d" / "a").stat().st_uid == os.geteuid()


def test_links_that_stay_inside(tmp_path):
    members = [
        ("./d/a", b"1"),
        ("./d/link", b"", {"type": LINK, "linkname": "a"}),
        ("./hard", b"", {"type": HARD, "linkname": "./d/a"}),
    ]
    size, target = extract(driver_packages.by_hand(tmp_path / "x.run", members), tmp_path)
    assert (target / "d" / "link").read_bytes() == (target / "hard").read_bytes() == b"1" and size == 2
    assert (target / "hard").stat().st_nlink == 1


@pytest.mark.parametrize(
    "members, text",
    [
        ([("../outside", b"1")], "leads out of the package"),
        ([("d/../../outside", b"1")], "leads out of the package"),
        ([("/outside", b"1")], "leads out of the package"),
        ([("l", b"", {"type": LINK, "linkname": "/etc"})], "leads out of the package"),
        ([("l", b"", {"type": LINK, "linkname": "../outside"})], "leads out of the package"),
        ([("l", b"", {"type": LINK, "linkname": "."}), ("l/outside", b"1")], "is a link and also a directory"),
        # Each link by itself stays inside, both together do not.
        (
            [
                ("d/e/up", b"", {"type": LINK, "linkname": "../.."}),
                ("l", b"", {"type": LINK, "linkname": "d/e/up/../outside"}),
            ],
            "leads out of the driver tree",
        ),
        (
            [
                ("d/e/up", b"", {"type": LINK, "linkname": "../.."}),
                ("h", b"", {"type": HARD, "linkname": "d/e/up/../outside"}),
            ],
            "leads out of the package",
        ),
        ([("d/l", b"", {"type": LINK, "linkname": ".."}), ("h", b"", {"type": HARD, "linkname": "d/l/h2"})], "leads out"),
        ([("h", b"", {"type": HARD, "linkname": "/etc/passwd"})], "leads out of the package"),
        ([("p", b"", {"type": FIFO})], "neither a file, a directory nor a link"),
        ([("p", b"", {"type": DEVICE, "devmajor": 1, "devminor": 8})], "neither a file, a directory nor a link"),
        ([("a", b"1"), ("a", b"2")], "has a twice"),
        ([("a", b"1"), ("a/b", b"2")], "also a directory"),
        ([("d/" * 70 + "a", b"1")], "more than 64 levels"),
        ([("a", b"0" * 100), ("b", b"0" * 100)], "more than 0 MiB"),
        ([("l", b"", {"type": LINK, "linkname": "a/" * 3000})], "an invalid path"),
        ([("a" * 300, b"1")], "an invalid path"),
        ([("d/" + "a" * 200 + "/" + "b" * 200 + "/c" * 40 + "/d" * 300 + "e" * 200, b"1")], "an invalid path"),
    ],
)
def test_what_no_package_has(tmp_path, members, text):
    (tmp_path / "outside").write_bytes(b"secret")
    path = driver_packages.by_hand(tmp_path / "x.run", members)
    with pytest.raises(NpuError, match=text):
        extract(path, tmp_path, limit=150)
    assert (tmp_path / "outside").read_bytes() == b"secret"
    assert sorted(os.listdir(tmp_path)) == ["extracted", "outside", "x.run"]


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz", "w:"])
def test_every_truncation_is_found(tmp_path, mode):
    members = [("a", os.urandom(3000)), ("b", os.urandom(3000))]
    path = driver_packages.by_hand(tmp_path / "x.run", members, mode)
    content = path.read_bytes()
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(NpuError, match="truncated|cannot be read without running it"):
            extract(path, tmp_path / str(size))


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_a_flipped_byte_is_found(tmp_path, mode):
    path = driver_packages.by_hand(tmp_path / "x.run", [("a", os.urandom(3000)), ("b", b"b" * 3000)], mode)
    content = bytearray(path.read_bytes())
    for place in range(len(content) - 60, len(content) - 2000, -211):
        changed = bytearray(content)
        changed[place] ^= 0x55
        path.write_bytes(changed)
        with pytest.raises(NpuError, match="damaged|leads out|neither|cannot be read"):
            extract(path, tmp_path)
        driver_packages.shutil.rmtree(tmp_path / "extracted", ignore_errors=True)


@pytest.mark.parametrize(
    "content, text",
    [
        (b"", "not a self-extracting archive"),
        (b"#!/bin/sh\ntouch /x\n", "not a self-extracting archive"),
        (b"\x7fELF" + b"\0" * 100, "not a self-extracting archive"),
        (b'#!/bin/sh\nfilesizes="1"\nskip="99999"\n0', "has fewer lines"),
        (b'#!/bin/sh\nfilesizes="%d"\nskip="3"\n' % 600 + b"(\xb5/\xfd" + b"0" * 600, "not compressed with gzip, bzip2 or xz"),
    ],
)
def test_what_is_no_package(tmp_path, content, text):
    (tmp_path / "x.run").write_bytes(content)
    with pytest.raises(NpuError, match="x.run cannot be read without running it: .*%s.*build_driver_image" % text):
        makeself.Package(str(tmp_path / "x.run"))


def test_a_link_to_a_package_is_not_followed(tmp_path):
    driver_packages.by_hand(tmp_path / "x.run", [("a", b"1")])
    (tmp_path / "link.run").symlink_to(tmp_path / "x.run")
    with pytest.raises(NpuError, match="not a regular file"):
        makeself.Package(str(tmp_path / "link.run"))


def header(name, size, kind):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def with_nul():
    info = tarfile.TarInfo("l")
    info.type, info.pax_headers = LINK, {"linkpath": "a\0b"}
    return info.tobuf(tarfile.PAX_FORMAT)


# 16 MiB. Streams of bzip2, one after the other, are one.
ZEROS = bz2.compress(bytes(2**24))
END = bytes(1024)


@pytest.mark.parametrize(
    "archive, text",
    [
        # The names that come before a file are kept in memory.
        ([bz2.compress(header("x", 2**30, tarfile.GNUTYPE_LONGNAME))] + [ZEROS] * 64, "more than 64 KiB"),
        ([bz2.compress(header("x", 2**30, tarfile.GNUTYPE_LONGLINK))] + [ZEROS] * 64, "more than 64 KiB"),
        ([bz2.compress(header("x", 2**30, tarfile.XHDTYPE))] + [ZEROS] * 64, "more than 64 KiB"),
        ([bz2.compress(header("x", 2**30, tarfile.XGLTYPE))] + [ZEROS] * 64, "more than 64 KiB"),
        ([bz2.compress(header("x", 0, tarfile.XHDTYPE) * 5000)], "more than 64 KiB|damaged"),
        # One that is in order before it.
        (
            [bz2.compress(header("f", 2**26, tarfile.REGTYPE)), *[ZEROS] * 4]
            + [bz2.compress(header("x", 2**26, tarfile.GNUTYPE_LONGNAME)), *[ZEROS] * 4],
            "more than 64 KiB",
        ),
        ([bz2.compress(header("f", 0, tarfile.REGTYPE) + END)] + [ZEROS] * 64, "after the end of its archive"),
        ([bz2.compress(header("f", 2**30, tarfile.REGTYPE))] + [ZEROS] * 64 + [bz2.compress(END)], "content has more than"),
        # Python 3.14 itself does not go backwards.
        ([bz2.compress(header("n", -512, tarfile.REGTYPE) + END)], "negative size|damaged: invalid offset"),
        ([bz2.compress(header("n", -(2**40), LINK) + END)], "negative size"),
        ([bz2.compress(with_nul() + END)], "an invalid path"),
    ],
)
def test_small_files_that_become_large(tmp_path, archive, text):
    """Neither memory nor time is what the package says: some KiB unpack to any size."""
    content = b"".join(archive)
    (tmp_path / "x.run").write_bytes(b'#!/bin/sh\nfilesizes="%d"\nskip="3"\n' % len(content) + content)
    tracemalloc.start()
    try:
        with pytest.raises(NpuError, match="x.run .*(%s)" % text):
            for _member in makeself.Package(str(tmp_path / "x.run")).members():
                pass
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_xz_that_asks_for_gigabytes(tmp_path):
    """The header of a block says how much memory its dictionary takes."""
    path = driver_packages.by_hand(tmp_path / "x.run", [("a", b"1")], "w:xz")
    content = bytearray(path.read_bytes())
    block = content.index(b"\xfd7zXZ\x00") + 12
    end = block + (content[block] + 1) * 4 - 4
    content[block + 4] = 37  # 1.5 GiB
    content[end : end + 4] = zlib.crc32(content[block:end]).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(NpuError, match="x.run is damaged: Memory usage limit exceeded"):
        extract(path, tmp_path)


def test_xz_in_several_streams(tmp_path):
    """As pxz makes it, with padding."""
    path = driver_packages.by_hand(tmp_path / "x.run", [("a", os.urandom(3000)), ("b", b"b" * 3000)], "w:")
    archive = path.read_bytes()[-tarfile.RECORDSIZE :]
    content = b"".join(lzma.compress(archive[start : start + 5000]) + bytes(8) for start in range(0, len(archive), 5000))
    path.write_bytes(driver_packages.SCRIPT % (bytes(driver_packages.RAN), len(content), driver_packages.LINES) + content)
    assert extract(path, tmp_path)[0] == 6000
