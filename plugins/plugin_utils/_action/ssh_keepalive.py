# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ssh that no one waits for any more, and a kept connection to a host that froze, end by themselves."""

from __future__ import annotations

import contextlib

from ansible.errors import AnsibleError
from ansible.plugins.connection import ConnectionBase

# What the user has set comes earlier on the command line, and with ssh the first one counts.
OPTIONS = "-o ServerAliveInterval=15 -o ServerAliveCountMax=3"


def add(connection: ConnectionBase) -> None:
    """Add the options to a connection of ssh, once; another connection plugin has no such option."""
    with contextlib.suppress(KeyError, AttributeError, AnsibleError):
        given = connection.get_option("ssh_extra_args") or ""
        if OPTIONS not in given:
            connection.set_option("ssh_extra_args", ("%s %s" % (given, OPTIONS)).strip())
