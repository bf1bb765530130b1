# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: npu_unit
short_description: A value as a systemd unit file wants it
version_added: 0.1.0
author:
  - npuops.ascend maintainers (@npuops)
description:
  - Quotes spaces, quotation marks, backslashes and line breaks, and doubles what systemd would replace, C(%) and C($), each only
    where it has a meaning. So the process gets exactly the value that was given.
positional: kind
options:
  _input:
    description: For V(command) the list of its words, otherwise a text.
    type: raw
    required: true
  kind:
    description:
      - V(command) for C(ExecStart), V(environment) for one C(NAME=VALUE) of C(Environment), V(path) for C(WorkingDirectory).
      - The first word of a command and a path must be absolute paths, without line breaks and the like.
    type: str
    choices: [command, environment, path]
    required: true
"""

EXAMPLES = r"""
- name: Show a line of a unit file
  ansible.builtin.debug:
    msg: "ExecStart={{ ['/usr/bin/printf', '100 %'] | npuops.ascend.npu_unit('command') }}"  # ExecStart=/usr/bin/printf "100 %%"
"""

RETURN = r"""
_value:
  description: What stands behind the equals sign.
  type: str
"""

import re

from ansible.errors import AnsibleFilterError

# Nothing in these has a meaning to systemd, wherever it stands.
_PLAIN = re.compile(r"[A-Za-z0-9_@:,./=+-]+\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}


def npu_unit(value, kind):
    """See DOCUMENTATION."""
    if kind == "command":
        words = [str(word) for word in value]
        # The program itself may name no environment variable, so a dollar sign stands for itself there.
        return " ".join([_quoted(_path(words[0]))] + [_quoted(word).replace("$", "$$") for word in words[1:]])
    if kind == "environment":
        return _quoted(str(value))
    if kind == "path":
        # All of the line is the path: quotation marks would be a part of it.
        return _path(str(value)).replace("%", "%%")
    raise AnsibleFilterError("npu_unit knows the kinds command, environment and path, not %r" % kind)


def _path(path):
    if not path.startswith("/") or _CONTROL.search(path) or path != path.strip() or path.endswith("\\"):
        raise AnsibleFilterError(
            "%r cannot be a path in a systemd unit: it must be absolute, and without line breaks, control characters, and spaces"
            " or a backslash at its end" % path
        )
    return path


def _quoted(word):
    if "\0" in word:
        raise AnsibleFilterError("%r cannot be in a systemd unit: it holds a null character" % word)
    if _PLAIN.match(word):
        return word
    return '"%s"' % "".join(_ESCAPES.get(one) or (_CONTROL.sub(_hexadecimal, one)) for one in word)


def _hexadecimal(match):
    return "\\x%02x" % ord(match.group())


class FilterModule:
    """The filter above."""

    def filters(self):
        return {"npu_unit": npu_unit}
