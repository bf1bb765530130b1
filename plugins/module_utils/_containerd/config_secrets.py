# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show an edit of a TOML file, or an error message about one, without other content such as passwords of registries."""

from __future__ import annotations

import difflib
import re

from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit

# After such a word, in a key or anywhere in a line, there may be a secret.
_WORD = re.compile(r"""(?:pass|auth|token|secret|credential|header|\bkey)[\w-]*["']?""", re.IGNORECASE)
# Values that are not secrets and that error messages need.
_HARMLESS = re.compile(r"true|false|/(?:etc|opt|run|usr|var)/.*")
_TOKENS = re.compile(r'"(?:[^"\\\r\n]|\\.)*"?|\'[^\'\r\n]*\'?|[^\s"\'=,\[\]{}#]+')

# A line on which another key or table begins. All others may be part of the value above.
_STATEMENT = re.compile(r"""\s*(?:\[\[?\s*[\w-]|[\w."' -]+=)""")

# Error messages quote only the beginning of long strings; strings shorter than this may be words of the message itself.
_QUOTED = 10
_SHORTEST = 4
_MASK = "***"


def diff(path, before, after, keys):
    """The lines that differ, with their numbers and without context, and with only the keys in ``keys``.

    ``before``: None if there is no such file. Other content of such a line is replaced with "...".
    """
    old, new = (before or "").splitlines(True), after.splitlines(True)
    shown_old, shown_new = _shown(before or "", keys), _shown(after, keys)
    lines = ["--- %s\n" % (path if before is not None else "/dev/null"), "+++ %s\n" % path]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if tag != "equal":
            lines.append("@@ -%s +%s @@\n" % (_range(start, end), _range(new_start, new_end)))
            lines.extend("-%s\n" % line for line in shown_old[start:end])
            lines.extend("+%s\n" % line for line in shown_new[new_start:new_end])
    return "".join(lines) if len(lines) > 2 else ""


def mask(text, sources):
    """``text`` without the secrets that may be in the TOML texts ``sources``, whether those are valid or not."""
    secrets = set()
    for source in sources:
        secrets.update(_secrets(source))
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret[:_QUOTED], _MASK)
    return text


def _secrets(source):
    """Everything after a word such as password up to the next key, or under such a key, in pieces."""
    found = set()
    inside = False
    for line in source.splitlines():
        match = _WORD.search(line)
        if match:
            found.update(_TOKENS.findall(line, match.end()))
            inside = True
        elif _STATEMENT.match(line):
            inside = False
        elif inside and not line.lstrip().startswith("#"):
            found.update(_TOKENS.findall(line))
    try:
        for path, value in toml_edit.flatten(source).items():
            if any(_WORD.search(name) for name in path):
                strings = toml_edit.string_list(value) if value.startswith("[") else [toml_edit.unquote(value)]
                found.update(word for string in strings for word in [string] + string.split())
    except toml_edit.TomlError:
        pass
    plain = {token[1:].rstrip(token[0]) if token[:1] in ("'", '"') else token for token in found}
    return {secret for secret in plain if len(secret) >= _SHORTEST and not _HARMLESS.fullmatch(secret)}


def _shown(text, keys):
    """Each line of ``text`` as far as it may be shown."""
    try:
        entries = toml_edit.scan(text)
    except toml_edit.TomlError:
        return ["..." for dummy in text.splitlines()]
    shown = []
    start = 0
    for line in text.splitlines(True):
        end = start + len(line)
        here = [entry for entry in entries if entry.start < end and max(entry.end, entry.start + 1) > start]
        shown.append(_line(text, line.rstrip("\r\n"), start, here, keys))
        start = end
    return shown


def _line(text, line, start, entries, keys):
    def ours(entry):
        return entry.kind == "key" and entry.path[-1] in keys and not entry.braces

    if not any(entry.inline or not (ours(entry) or entry.kind != "key") for entry in entries):
        # A comment on the line may contain a secret.
        last = max([entry.end for entry in entries] + [start])
        rest = line[max(last - start, 0) :]
        return line[: last - start] + " # ..." if _WORD.search(rest) else line
    parts = [text[entry.start : entry.end] for entry in entries if ours(entry)]
    around = next((entry for entry in entries if entry.braces and not entry.inline and entry.start >= start), None)
    if around is None:
        return ", ".join(parts + ["..."])
    opening = text[start : around.value[0]] if around.value[0] < start + len(line) else ""
    return "%s{ %s }" % (opening, ", ".join(parts + ["..."]))


def _range(start, end):
    """A range as in a unified diff without context: an empty range has the number of the line before it."""
    count = end - start
    return "%d" % (start + 1) if count == 1 else "%d,%d" % (start + 1 if count else start, count)
