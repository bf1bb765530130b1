# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mountinfo of any process, with any paths in it."""

from __future__ import annotations

import os
import tempfile

from ansible_collections.npuops.ascend.plugins.module_utils._host import mounts as host_mounts
from hypothesis import given
from hypothesis import strategies as st

from support.properties import STRANGE, bounded, damaged

LINE = "36 35 98:0 %s %s rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
paths = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    st.text(STRANGE.replace("\0", "") + " \n\\#/", max_size=8),
).map("/".__add__)


def written(path):
    """As the kernel writes it: seq_path_root() with the characters " \\t\\n\\\\#"."""
    return "".join("\\%03o" % ord(one) if one in " \t\n\\#" else one for one in path)


def read(text):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mountinfo")
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as stream:
            stream.write(text)
        with bounded():
            return list(host_mounts._entries(path)), host_mounts.points(path)


@given(st.lists(st.tuples(paths, paths), max_size=4))
def test_paths_are_read_as_the_kernel_wrote_them(mounts):
    """With every character in them: a mount that is overlooked is a driver that is removed under a container."""
    entries, points = read("".join(LINE % (written(root), written(point)) for root, point in mounts))
    assert entries == mounts and points == {point for _root, point in mounts}


@given(damaged(st.tuples(paths, paths).map(lambda pair: LINE % pair), ("\\777", "\\0", "\\", "36 ")))
def test_damaged_lines_are_read_or_left_out(text):
    entries, _points = read(text)
    assert all(isinstance(one, str) for entry in entries for one in entry)
