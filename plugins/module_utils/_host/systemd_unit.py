# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as a systemd unit file wants them, so that the process gets exactly what was given. Source: systemd.syntax(7) and
systemd.service(5).

Spaces, quotation marks, backslashes and line breaks are quoted, and what systemd would replace, % and $, is doubled, each only
where it has a meaning.
"""

from __future__ import annotations

import re

# Nothing in these has a meaning to systemd, wherever it stands.
_PLAIN = re.compile(r"[A-Za-z0-9_@:,./=+-]+\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}


def is_path(text):
    """Whether ``text`` can be a path in a unit: absolute, without control characters, and spaces or a backslash at its end."""
    return text.startswith("/") and not _CONTROL.search(text) and text == text.strip() and not text.endswith("\\")


def path(text):
    """What stands behind ``WorkingDirectory=``; ``text``: a path (``is_path``)."""
    # All of the line is the path: quotation marks would be a part of it.
    return text.replace("%", "%%")


def assignment(name, value):
    """What stands behind ``Environment=``; no null character can be in it."""
    return _quoted("%s=%s" % (name, value))


def command(words):
    """What stands behind ``ExecStart=``; the first of ``words`` is a path (``is_path``), none holds a null character."""
    # The program itself may name no environment variable, so a dollar sign stands for itself there.
    return " ".join([_quoted(words[0])] + [_quoted(word).replace("$", "$$") for word in words[1:]])


def paths(texts):
    """What stands behind ``RequiresMountsFor=``; ``texts``: paths (``is_path``)."""
    return " ".join(_quoted(text) for text in texts)


def _quoted(word):
    if _PLAIN.match(word):
        return word
    return '"%s"' % "".join(_ESCAPES.get(one) or _CONTROL.sub(_hexadecimal, one) for one in word)


def _hexadecimal(match):
    return "\\x%02x" % ord(match.group())
