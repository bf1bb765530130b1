# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Directories of logs that users can write to: what they put there is read as text, or not at all."""

from __future__ import annotations

import os
import socket

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._collect import host_files

SECRET = "outside"


@pytest.fixture
def top(tmp_path):
    (tmp_path / "outside").write_text(SECRET)
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def search(top, has_time=lambda: True, skip=()):
    return host_files.search(str(top), has_time, skip)


def names(found):
    return ["/".join(file.parts) for file in found]


def test_regular_files_wherever_they_are(top):
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "one.log").write_text("1")
    (top / "two.log").write_text("2")
    assert sorted(names(search(top)[0])) == ["a/b/one.log", "two.log"]


def test_what_is_below_a_directory_that_is_skipped(top):
    """The Python of npu_python, thousands of files. A directory of that name elsewhere is another one."""
    for directory in (top / "python" / "lib", top / "other" / "python"):
        directory.mkdir(parents=True)
        (directory / "it").write_text("1")
    assert names(search(top, skip=("python",))[0]) == ["other/python/it"]


def hard_link(top, outside):
    os.link(outside, top / "it")


def pipe(top, _outside):
    os.mkfifo(top / "it")


def unix_socket(top, _outside):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(top / "it"))


def device(top, _outside):
    try:
        os.mknod(top / "it", 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


def link(top, outside):
    (top / "it").symlink_to(outside)


def directory(top, _outside):
    (top / "it").mkdir()


@pytest.mark.parametrize("make", [link, hard_link, pipe, unix_socket, device, directory])
def test_what_is_no_file_of_that_directory_is_not_read(top, make):
    make(top, top.parent / "outside")
    found, others = search(top)
    # A socket has nothing to read, so the bundle lacks nothing.
    assert found == [] and [path for path, _why in others] == ([] if make in (directory, unix_socket) else [str(top / "it")])
    # Nor if it was one when the directory was searched.
    for read in (host_files.read_tail, host_files.read_whole):
        with pytest.raises(host_files.Unreadable):
            read(str(top), ("it",), 100)


def test_a_directory_that_becomes_a_link_is_not_followed(top):
    (top / "inner").symlink_to(top.parent)
    assert names(search(top)[0]) == []
    with pytest.raises(host_files.Unreadable):
        host_files.read_tail(str(top), ("inner", "outside"), 100)
    (top.parent / "other").symlink_to(top.parent)
    with pytest.raises(host_files.Unreadable):
        host_files.read_tail(str(top.parent / "other"), ("outside",), 100)


def test_the_end_of_a_huge_file(top):
    with open(top / "huge", "wb") as stream:
        stream.truncate(2**40)
        stream.seek(0, os.SEEK_END)
        stream.write(b"password=begun\nthe last line\n")
    assert host_files.read_tail(str(top), ("huge",), 20) == ("the last line\n", True)
    with pytest.raises(host_files.Unreadable, match="more than"):
        host_files.read_whole(str(top), ("huge",), 1000)


def test_what_is_not_text_is_left_out(top):
    (top / "dump").write_bytes(b"password=x\0\1\2")
    with pytest.raises(host_files.Unreadable, match="not text"):
        host_files.read_tail(str(top), ("dump",), 1000)


def test_directories_without_end(top, monkeypatch):
    deep = top.joinpath(*["d"] * 20)
    deep.mkdir(parents=True)
    (deep / "it").write_text("x")
    found, others = search(top)
    assert found == [] and "too deeply" in others[0][1]
    monkeypatch.setattr(host_files, "_MOST_ENTRIES", 4)
    for number in range(10):
        (top / str(number)).write_text("x")
    found, others = search(top)
    assert len(found) in (3, 4) and others == [(str(top), "it has more than 4 files and directories: the others are left out")]


@pytest.mark.parametrize("make", [os.mkdir, lambda path: open(path, "w").close()])
def test_millions_of_entries_are_not_even_listed(top, monkeypatch, make):
    """Directories also count, and what a directory has is not read to its end."""
    for number in range(30):
        make(str(top / str(number)))
    original, seen = os.scandir, []

    class Listing:
        def __init__(self, descriptor):
            self._inner = original(descriptor)

        def __enter__(self):
            return self

        def __exit__(self, *_exception):
            self._inner.close()

        def __iter__(self):
            for entry in self._inner:
                seen.append(entry.name)
                yield entry

    monkeypatch.setattr(os, "scandir", Listing)
    monkeypatch.setattr(host_files, "_MOST_ENTRIES", 5)
    found, others = search(top)
    assert len(seen) == 6 and len(found) in (0, 5)
    assert others == [(str(top), "it has more than 5 files and directories: the others are left out")]


def test_a_search_ends_when_the_time_is_over(top):
    for number in range(30):
        (top / str(number)).mkdir()
        (top / str(number) / "log").write_text("x")
    left = iter([True] * 35)
    found, others = search(top, lambda: next(left, False))
    assert 0 < len(found) <= 5 and others == [
        (str(top), "the time limit was reached while it was searched: the others are left out")
    ]


@pytest.fixture
def mounted(top, monkeypatch):
    """A directory at which something is mounted."""
    (top / "mnt" / "inner").mkdir(parents=True)
    for place in (top, top / "mnt", top / "mnt" / "inner"):
        (place / "it").write_text("x")
    below = {os.stat(place).st_ino for place in (top / "mnt", top / "mnt" / "inner")}
    monkeypatch.setattr(host_files, "_mount", lambda descriptor: os.fstat(descriptor).st_ino in below)
    return top / "mnt"


def test_what_is_mounted_below_is_another_directory(top, mounted):
    found, others = search(top)
    assert names(found) == ["it"] and others == [(str(mounted), "something else is mounted there")]
    assert sorted(names(search(mounted)[0])) == ["inner/it", "it"]
    # Nor if it is mounted after the search.
    with pytest.raises(host_files.Unreadable, match="mounted"):
        host_files.read_tail(str(top), ("mnt", "inner", "it"), 100)


def test_mounts_of_this_host(top):
    """/proc is a mount everywhere; a directory is none."""
    (top / "inner").mkdir()
    mounts = []
    for place in ("/", "/proc", top, top / "inner"):
        descriptor = os.open(place, os.O_RDONLY)
        mounts.append(host_files._mount(descriptor))
        os.close(descriptor)
    assert mounts[0] != mounts[1] and mounts[2] == mounts[3]


def test_no_descriptor_stays_open(top, mounted):
    (top / "a" / "b").mkdir(parents=True)
    before = os.listdir("/proc/self/fd")
    for has_time in (lambda: True, lambda: False):
        search(top, has_time)
    assert len(os.listdir("/proc/self/fd")) == len(before)
