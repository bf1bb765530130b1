# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd makes of it: tests/lab/test_heal_service.py."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host import systemd_unit


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
    ],
)
def test_a_word_of_a_command(word, written):
    assert systemd_unit.command(["/bin/x", word]) == "/bin/x " + written


def test_the_program_of_a_command():
    assert systemd_unit.command(["/opt/a b%/$x"]) == '"/opt/a b%%/$x"'


def test_environment():
    assert systemd_unit.assignment("A", "1") == "A=1"
    # No variable is looked for in an assignment.
    assert systemd_unit.assignment("A", '$x 5% "') == '"A=$x 5%% \\""'


def test_path():
    assert systemd_unit.is_path('/a b/"c" 5%')
    assert systemd_unit.path('/a b/"c" 5%') == '/a b/"c" 5%%'


@pytest.mark.parametrize("path", ["", "relative", "-/optional", "/a\nExecStart=/b", "/a ", "/a\\", "/a\0b"])
def test_what_is_no_path(path):
    assert not systemd_unit.is_path(path)
