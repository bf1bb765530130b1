# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lock files that only root can hold."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import files as host_files
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NoVerdict, NpuError


@pytest.fixture
def lock(tmp_path):
    directory = tmp_path / "run"
    directory.mkdir(0o755)
    return directory / "x.lock"


def is_ours(path):
    info = os.lstat(str(path))
    return stat.S_ISREG(info.st_mode) and info.st_mode & 0o7777 == 0o600 and info.st_uid == os.geteuid() and info.st_nlink == 1


@contextlib.contextmanager
def taken(path):
    fd = host_files.take_lock(str(path))
    assert fd is not None
    try:
        yield
    finally:
        os.close(fd)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o640, 0o666])
def test_a_reader_of_an_older_file_holds_nothing(lock, mode):
    """flock asks for an open file, however it was opened."""
    lock.touch()
    lock.chmod(mode)
    with open(str(lock), encoding="ascii") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with taken(lock):
            assert is_ours(lock)
            assert host_files.take_lock(str(lock)) is None


def test_a_link_is_removed_and_its_target_left_alone(lock, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    lock.symlink_to(target)
    with taken(lock):
        assert is_ours(lock)
    assert target.read_text() == "precious" and target.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "make",
    [
        lambda lock: os.mkfifo(str(lock), 0o600),
        lambda lock: (lock.touch(0o600), os.link(str(lock), str(lock) + "2")),
        pytest.param(
            lambda lock: (lock.touch(0o600), os.chown(str(lock), 1, 1)),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away"),
        ),
    ],
    ids=["pipe", "second name", "other owner"],
)
def test_what_is_no_file_of_ours_makes_way(lock, make):
    make(lock)
    with taken(lock):
        assert is_ours(lock)


def test_a_file_of_ours_stays(lock):
    with taken(lock):
        pass
    # Open, for the number of one that is gone may be given to the next.
    with open(str(lock), encoding="ascii") as before, taken(lock):
        assert os.path.samestat(os.stat(str(lock)), os.fstat(before.fileno()))


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_directory_that_others_can_change_is_refused(lock, mode):
    lock.parent.chmod(mode)
    with pytest.raises(NoVerdict, match="Users other than root can change.*chown root"):
        host_files.take_lock(str(lock))
    with pytest.raises(NpuError, match="can change the directory"), host_files.exclusive(str(lock), 1, "working"):
        pass
    assert not lock.exists()


def test_exclusive_does_not_wait_for_a_reader(lock):
    lock.touch(0o644)
    with open(str(lock), encoding="ascii") as reader:
        fcntl.flock(reader, fcntl.LOCK_EX)
        with host_files.exclusive(str(lock), 0, "working"):
            assert is_ours(lock)
            with pytest.raises(NpuError, match="Another run is working") as caught, host_files.exclusive(str(lock), 0, "working"):
                pass
            assert caught.value.details == {"busy": True}
