# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_unit import npu_unit


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("--forks=2", "--forks=2"),
        ("", '""'),
        ("two words", '"two words"'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ("${HOME}", '"$${HOME}"'),
        ('{"a": "b"}', '"{\\"a\\": \\"b\\"}"'),
        ("it's", '"it\'s"'),
        ("back\\slash", '"back\\\\slash"'),
        ("a\nb\tc", '"a\\nb\\tc"'),
        ("\x1b", '"\\x1b"'),
        (";", '";"'),
        ("ä", '"ä"'),
        (7, "7"),
    ],
)
def test_a_word_of_a_command(word, written):
    assert npu_unit(["/bin/x", word], "command") == "/bin/x " + written


def test_the_program_of_a_command():
    assert npu_unit(["/opt/a b%/$x"], "command") == '"/opt/a b%%/$x"'


def test_environment():
    assert npu_unit("A=1", "environment") == "A=1"
    # No variable is looked for in an assignment.
    assert npu_unit('A=$x 5% "', "environment") == '"A=$x 5%% \\""'


def test_path():
    assert npu_unit('/a b/"c" 5%', "path") == '/a b/"c" 5%%'


@pytest.mark.parametrize("path", ["", "relative", "-/optional", "/a\nExecStart=/b", "/a ", "/a\\"])
def test_what_is_no_path(path):
    for value, kind in ((path, "path"), ([path, "x"], "command")):
        with pytest.raises(AnsibleFilterError, match="cannot be a path"):
            npu_unit(value, kind)


def test_what_cannot_be_written():
    with pytest.raises(AnsibleFilterError, match="null"):
        npu_unit(["/bin/x", "a\0b"], "command")
    with pytest.raises(AnsibleFilterError, match="kinds"):
        npu_unit("x", "other")
