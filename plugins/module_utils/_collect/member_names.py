# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the members of a bundle: made of few characters, so that no name leads out of the directory that it is unpacked in."""

from __future__ import annotations

import re

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_LONGEST_PART = 100
_DEEPEST = 12


def is_member_name(name):
    """Whether ``name`` may be the name of a member."""
    parts = name.split("/") if isinstance(name, str) else []
    return 0 < len(parts) <= _DEEPEST and all(_PART.match(part) for part in parts)


def member_name(folder, parts, number):
    """The member in ``folder`` for a file of the host with the path ``parts`` below a directory; ``number`` replaces bad names."""
    name = "/".join((folder,) + tuple(parts))
    return name if is_member_name(name) else "%s/unnamed-%d" % (folder, number)


def directories_of(name):
    """All directories that the member ``name`` is in."""
    parts = name.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def free_name(name, names, directories):
    """``name``, or one like it with which no member is unpacked over another; ``names``: of the members, in ``directories``."""
    parts = name.split("/")
    for depth, part in enumerate(parts):
        taken = names if depth < len(parts) - 1 else names | directories
        number = 1
        while "/".join(parts[: depth + 1]) in taken:
            number += 1
            parts[depth] = ("%d-%s" % (number, part))[:_LONGEST_PART]
    return "/".join(parts)
