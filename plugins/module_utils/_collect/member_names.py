# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the members of a bundle: made of few characters, so that no name leads out of the directory that it is unpacked in."""

from __future__ import annotations

import re

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_DEEPEST = 12


def is_member_name(name):
    """Whether ``name`` may be the name of a member."""
    parts = name.split("/") if isinstance(name, str) else []
    return 0 < len(parts) <= _DEEPEST and all(_PART.match(part) for part in parts)


def member_name(folder, parts, number):
    """The member in ``folder`` for a file of the host with the path ``parts`` below a directory; ``number`` replaces bad names."""
    name = "/".join((folder,) + tuple(parts))
    return name if is_member_name(name) else "%s/unnamed-%d" % (folder, number)
