# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Patterns as Go's filepath.Match and filepath.Glob understand them; the answers are Go's own."""

from __future__ import annotations

import os

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import go_glob


@pytest.mark.parametrize(
    "pattern, name, expected",
    [
        ("*", ".hidden", True),
        ("*", "a/b", False),
        ("a*/b", "a/b", True),
        ("?", "/", False),
        ("[^a]*.toml", "b.toml", True),
        ("[^a]*.toml", "a.toml", False),
        ("[!a]*.toml", "b.toml", False),
        ("[!a]*.toml", "!.toml", True),
        ("[a-c-e]", "-", None),
        ("[a-ce]", "b", True),
        ("[b-a]", "a", False),
        ("[^b-a]", "a", True),
        ("[\\]]", "]", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("a.c", "abc", False),
        ("**", "ab", True),
        ("[", "", None),
        ("[]a]", "]", None),
        ("[-a]", "-", None),
        ("[a-]", "-", None),
        ("a\\", "a", None),
        ("", "", True),
    ],
)
def test_match(pattern, name, expected):
    if expected is None:
        with pytest.raises(ValueError, match="Go"):
            go_glob.match(pattern, name)
    else:
        assert go_glob.match(pattern, name) is expected


def test_directories_come_in_the_order_of_their_names(tmp_path):
    """Not in that of the whole paths, where a-b/x stands before a/x."""
    for path in ("a-b/x", "a/x", "a/.y", ".h/x", "a.b/x", "a/z/x"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    found = [os.path.relpath(path, str(tmp_path)) for path in go_glob.expand(str(tmp_path) + "/*/*")]
    assert found == [".h/x", "a/.y", "a/x", "a/z", "a-b/x", "a.b/x"]


def test_what_is_not_there_does_not_match(tmp_path):
    (tmp_path / "a").touch()
    os.symlink("nowhere", str(tmp_path / "b"))
    assert go_glob.expand(str(tmp_path / "none" / "*")) == []
    assert go_glob.expand(str(tmp_path / "a" / "*")) == []
    assert go_glob.expand(str(tmp_path / "[b]")) == [str(tmp_path / "b")]
    assert go_glob.expand(str(tmp_path / "b")) == [str(tmp_path / "b")]
    with pytest.raises(ValueError):
        go_glob.expand(str(tmp_path / "none" / "["))
