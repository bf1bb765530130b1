# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A default runtime in the text of containerd's configuration: the smallest edit that adds it, and its exact inverse.

The edit is marked, and records the previous value, so it can be undone whatever else in the file has changed since:

    default_runtime_name = "ascend" # npuops.ascend: was "runc"

    # BEGIN npuops.ascend: ascend
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.ascend]
      ...
    # END npuops.ascend: ascend
"""

from __future__ import annotations

import re

from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit

# As Huawei's installer calls it.
NAME = "ascend"

_BEGIN, _END = ("# %s npuops.ascend: %s" % (word, NAME) for word in ("BEGIN", "END"))
_SET = '"%s" # npuops.ascend: was ' % NAME
_UNSET = "unset"
_BLOCK = re.compile(r"(?:\r?\n)?^%s\r?\n.*?^%s(?:\r?\n|\Z)" % (_BEGIN, _END), re.MULTILINE | re.DOTALL)
_ADDED = re.compile(r"^[ \t]*default_runtime_name = %s%s\r?\n" % (re.escape(_SET), _UNSET), re.MULTILINE)
_STRING = r"""("(?:[^"\\\r\n]|\\.)*"|'[^'\r\n]*')"""
_CHANGED = re.compile(re.escape(_SET) + _STRING)


def is_registered(text):
    """Whether the edit is in ``text``."""
    return _SET in text or _BEGIN in text


def register(text, section, program, like):
    """``text`` with ``program`` as the default runtime, in ``section`` (one of containerd_config.SECTIONS).

    ``like``: what is known of the runtime that it stands before: path within its table -> value as written.
    """
    table = section[0] + ("containerd",)
    key = table + ("default_runtime_name",)
    prefix = _header(text, section)
    values = toml_edit.flatten(text)
    lines = []
    if key in values:
        text = toml_edit.replace_value(text, key, _SET + _on_one_line(values[key]))
    elif _has_header(text, table):
        text = toml_edit.set_key(text, table, key[-1], _SET + _UNSET)
    else:
        lines += ["[%s.containerd]" % prefix, '  default_runtime_name = "%s"' % NAME, ""]
    settings = {path: value for path, value in like.items() if path != ("options", "BinaryName")}
    settings.setdefault(("runtime_type",), '"io.containerd.runc.v2"')
    settings[("options", "BinaryName")] = toml_edit.quote(program)
    lines += ["[%s.containerd.runtimes.%s]" % (prefix, NAME)]
    lines += ["  %s = %s" % (path[0], value) for path, value in sorted(settings.items()) if len(path) == 1]
    lines += ["", "  [%s.containerd.runtimes.%s.options]" % (prefix, NAME)]
    lines += ["    %s = %s" % (path[1], value) for path, value in sorted(settings.items()) if path[:1] == ("options",)]
    newline = toml_edit.newline_of(text)
    start = "" if not text or text.endswith("\n") else newline
    return text + start + newline + newline.join([_BEGIN, *lines, _END]) + newline


def unregister(text):
    """``text`` without the edit."""
    return _CHANGED.sub(lambda match: match.group(1), _ADDED.sub("", _BLOCK.sub("", text)))


def settings_of(values, section, runtime):
    """What the flattened ``values`` say of the ``runtime``, as ``register`` takes it."""
    table = section[0] + ("containerd", "runtimes", runtime)
    found = {path[len(table) :]: value for path, value in values.items() if path[: len(table)] == table and value != "{}"}
    return {path: value for path, value in found.items() if len(path) == 1 or (len(path) == 2 and path[0] == "options")}


def _on_one_line(value):
    """A string as written, which a comment is to hold."""
    return value if re.fullmatch(_STRING, value) else toml_edit.quote(toml_edit.unquote(value))


def _header(text, section):
    """The name of the section as the headers of ``text`` write it."""
    depth = len(section[0])
    for entry in toml_edit.scan(text):
        if entry.kind == "table" and entry.path[:depth] == section[0]:
            return text[entry.parts[0][0] : entry.parts[depth - 1][1]]
    return section[1]


def _has_header(text, table):
    return any(entry.kind == "table" and entry.path == table for entry in toml_edit.scan(text))
