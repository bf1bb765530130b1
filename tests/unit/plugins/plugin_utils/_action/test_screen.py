# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing that a host, a pod or a Node says moves the cursor, sets the clipboard or forges a line of the user's terminal."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import screen

from support.paths import CHECKOUT

# Up a line and erase it; the title; the clipboard; back to the begin of the line; a bell; C1's own introducer; other directions.
HOSTILE = "\x1b[1A\x1b[2Knpu-a done\x1b]0;x\x07\x1b]52;c;eA==\x07\rok\b\x9b2K\u202e\u2066"


@pytest.mark.parametrize("write", [screen.show, screen.warn])
def test_escape_sequences_are_not_written(write, capsys):
    write("npu-b  00:01  drain  %s\nsecond\tline: \u534e\u4e3a" % HOSTILE)
    written = "".join(capsys.readouterr())
    assert "npu-b" in written and "second" in written and "\u534e\u4e3a" in written
    # A warning has the colour of Ansible.
    plain = written.replace("\x1b[1;35m", "").replace("\x1b[0;35m", "").replace("\x1b[0m", "")
    assert all(letter.isprintable() or letter == "\n" for letter in plain), repr(plain)


def test_nor_are_those_of_an_error():
    assert screen.clean("a%s\nb" % HOSTILE).count("\n") == 1
    assert "\x1b" not in screen.clean("a%s\nb" % HOSTILE)


def test_no_action_writes_in_another_way():
    """Also the base of all actions, with the message of an error."""
    library = CHECKOUT / "plugins"
    for file in [*library.glob("action/*.py"), *library.glob("plugin_utils/_action/c*.py")]:
        text = file.read_text(encoding="utf-8")
        assert "isplay().display" not in text and "_display." not in text and "msg=exc.message" not in text, file
