# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run writes on the terminal of its user. Hosts, pods and Nodes have a part in it: an escape sequence of theirs could hide
a line, or forge one.
"""

from __future__ import annotations

from ansible.utils.display import Display
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import printable

# Characters of a line.
_LONGEST = 64 * 1024


def clean(text: str) -> str:
    """The text without control characters; its lines stay."""
    return "\n".join(printable(line.expandtabs(), _LONGEST) for line in str(text).split("\n"))


def show(text: str) -> None:
    Display().display(clean(text))


def warn(text: str) -> None:
    Display().warning(clean(text))
