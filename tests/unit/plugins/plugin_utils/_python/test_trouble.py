# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ansible-core 2.19 was seen to return with real old interpreters."""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._python.trouble import explain

NO_JSON = "Module result deserialization failed: No start of json char found"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            {
                "rc": 1,
                "msg": NO_JSON,
                "module_stderr": '  File "<stdin>", line 3\nSyntaxError: future feature annotations is not defined\n',
            },
            "its Python is too old (SyntaxError: future feature annotations is not defined). Host modules need Python 3.8",
        ),
        (
            {
                "rc": 1,
                "msg": NO_JSON,
                "module_stderr": "    def import_controller_module(_module_name: str, /) -> t.Any:\n"
                "                                                    ^\nSyntaxError: invalid syntax\n",
            },
            "its Python is too old (SyntaxError: invalid syntax). Host modules need Python 3.8",
        ),
        (
            {
                "rc": 127,
                "msg": "The module interpreter '/usr/bin/python3' was not found.",
                "module_stderr": "/bin/sh: 1: /usr/bin/python3: not found\n",
            },
            "no Python can be run there (/bin/sh: 1: /usr/bin/python3: not found). Host modules need Python 3.8",
        ),
        ({"rc": 1, "msg": NO_JSON, "module_stderr": "Killed\n"}, NO_JSON + " (Killed)"),
    ],
)
def test_the_wrapper_failed(result, text):
    assert explain(result).startswith(text)


def test_the_module_itself_failed():
    assert explain({"failed": True, "msg": "Chips of different families are in one host"}) is None


def test_our_own_python_is_missing():
    """Where the image has to come from a registry of the site, the setting tells which one that is."""
    missing = "/bin/sh: 1: /var/lib/npuops/python/current/python3: not found"
    told = explain({"rc": 127, "msg": NO_JSON, "module_stderr": missing + "\n"})
    assert told.startswith(
        "its Python is not installed yet (%s). The installation, which adds it from npu_node_agent_image," % missing
    )
    assert told.endswith(". Run npuops.ascend.install")
