# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts


def test_mount_points_are_read_as_the_kernel_writes_them(tmp_path):
    (tmp_path / "mountinfo").write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n40 22 8:2 /sub /mnt/with\\040space rw,noexec - ext4 /dev/sdb ro\n"
    )
    assert host_mounts.points(str(tmp_path / "mountinfo")) == {"/", "/mnt/with space"}


def test_paths_are_those_of_other_namespaces_too(tmp_path):
    for process, namespace, line in (
        ("self", "mnt:[1]", "36 35 98:0 /a /b\\040c rw,noatime - ext3 /dev/root rw"),
        ("7", "mnt:[2]", "36 35 98:0 /lib/Ascend/releases/x/driver /usr/local/Ascend/driver ro - ext3 /dev/root rw"),
    ):
        directory = tmp_path / process
        (directory / "ns").mkdir(parents=True)
        os.symlink(namespace, str(directory / "ns" / "mnt"))
        (directory / "mountinfo").write_text(line + "\n")
    paths = host_mounts.paths_of_all(str(tmp_path))
    assert "/b c" in paths and "/lib/Ascend/releases/x/driver" in paths


def test_paths_of_this_machine():
    assert "/" in host_mounts.paths_of_all()


@pytest.mark.parametrize("strange", ["\r", "\x0c", "\x1e", "\x85", "\u2028"])
def test_a_path_with_what_other_texts_have_at_the_end_of_a_line(tmp_path, strange):
    """The kernel escapes blanks, tabs, line feeds and backslashes only."""
    path = tmp_path / "mountinfo"
    path.write_bytes(("36 35 98:0 / /mnt/a%sb rw - ext3 /dev/root rw\n" % strange).encode("utf-8"))
    assert host_mounts.points(str(path)) == {"/mnt/a%sb" % strange}
