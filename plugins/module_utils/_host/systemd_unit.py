# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Escape values for systemd unit files, so that the process gets exactly the given values. Source: systemd.syntax(7) and
systemd.service(5).

Spaces, quotation marks, backslashes and line breaks are quoted, and % and $, which systemd would expand, are doubled, each only
where it has a special meaning.
"""

from __future__ import annotations

import re

# Characters without a special meaning for systemd.
_PLAIN = re.compile(r"[A-Za-z0-9_@:,./=+-]+\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}


def is_path(text):
    """Whether ``text`` can be a path in a unit: absolute, without control characters, without spaces or a backslash at the end."""
    return text.startswith("/") and not _CONTROL.search(text) and text == text.strip() and not text.endswith("\\")


def path(text):
    """The value of ``WorkingDirectory=``; ``text``: a path (``is_path``)."""
    # The whole line is the path: quotation marks would be part of it.
    return text.replace("%", "%%")


def assignment(name, value):
    """The value of ``Environment=``; must not contain a null character."""
    return _quoted("%s=%s" % (name, value))


def command(words):
    """The value of ``ExecStart=``; the first of ``words`` is a path (``is_path``), and none contains a null character."""
    # systemd does not expand variables in the program's path, so a dollar sign is literal there.
    return " ".join([_quoted(words[0])] + [_quoted(word).replace("$", "$$") for word in words[1:]])


def paths(texts):
    """The value of ``RequiresMountsFor=``; ``texts``: paths (``is_path``)."""
    return " ".join(_quoted(text) for text in texts)


def _quoted(word):
    if _PLAIN.match(word):
        return word
    return '"%s"' % "".join(_ESCAPES.get(one) or _CONTROL.sub(_hexadecimal, one) for one in word)


def _hexadecimal(match):
    return "\\x%02x" % ord(match.group())
