# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._action import many_hosts


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"conn_pass": "c", "become_pass": "b"}),
        ({"ansible_password": "c"}, {"become_pass": "b"}),
        ({"ansible_ssh_pass": "c", "ansible_become_password": "b"}, {}),
        ({"ansible_become_pass": "b", "ansible_user": "u"}, {"conn_pass": "c"}),
    ],
)
def test_a_password_of_the_controller_is_for_no_host(own, expected):
    """Of the context of a task that is delegated, Ansible makes the password what the host that it is delegated to has."""
    context = types.SimpleNamespace(password="c", become_pass="b")
    assert many_hosts.passwords(context, {"ansible_delegated_vars": {"localhost": own}}, "localhost") == expected
