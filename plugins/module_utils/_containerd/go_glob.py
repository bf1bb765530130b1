# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Path patterns with the semantics of Go's filepath.Match and filepath.Glob (https://pkg.go.dev/path/filepath#Match).

Python's glob differs: * does not match a leading dot, a negated class is written [!a], there is no escape character, and whole
paths are sorted instead of the names in each directory.
"""

from __future__ import annotations

import os
import re

_META = re.compile(r"[*?\[\\]")


def match(pattern, name):
    """Whether the whole ``name`` matches; raises ValueError for a pattern that Go rejects."""
    return re.compile(_regex(pattern), re.DOTALL).fullmatch(name) is not None


def expand(pattern):
    """The paths that match, in Go's order, without those that cannot be read. Raises ValueError like ``match``."""
    _regex(pattern)
    if not _META.search(pattern):
        return [pattern] if os.path.lexists(pattern) else []
    directory, name = os.path.split(pattern)
    if directory == pattern:
        raise _bad(pattern)
    directories = expand(directory) if _META.search(directory) else [directory or "."]
    return [os.path.join(found, entry) for found in directories for entry in _entries(found) if match(name, entry)]


def _entries(directory):
    try:
        return sorted(os.listdir(directory), key=os.fsencode)
    except OSError:
        return []


def _regex(pattern):
    """``pattern`` as a Python regular expression."""
    parts = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == "*":
            parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif char == "[":
            text, position = _class(pattern, position)
            parts.append(text)
        elif char == "\\":
            if position == len(pattern):
                raise _bad(pattern)
            parts.append(re.escape(pattern[position]))
            position += 1
        else:
            parts.append(re.escape(char))
    return "".join(parts)


def _class(pattern, position):
    """The class that starts at ``position``, and the position of its end. A class may match a slash."""
    negated = pattern.startswith("^", position)
    position += negated
    ranges = []
    while not (ranges and pattern.startswith("]", position)):
        low, position = _char(pattern, position)
        high = low
        if pattern.startswith("-", position):
            high, position = _char(pattern, position + 1)
        ranges.append((low, high))
    # An empty range, [b-a], matches nothing; in Python it would be an error.
    inside = "".join("%s-%s" % (re.escape(low), re.escape(high)) for low, high in ranges if low <= high)
    if not inside:
        return "(?s:.)" if negated else "(?!)", position + 1
    return "[%s%s]" % ("^" if negated else "", inside), position + 1


def _char(pattern, position):
    if position >= len(pattern) or pattern[position] in "-]":
        raise _bad(pattern)
    if pattern[position] == "\\":
        position += 1
    # At least the closing bracket must follow.
    if position + 1 >= len(pattern):
        raise _bad(pattern)
    return pattern[position], position + 1


def _bad(pattern):
    return ValueError("%s is not a valid pattern in Go" % pattern)
