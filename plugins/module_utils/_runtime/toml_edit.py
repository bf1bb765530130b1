# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locate keys in a TOML text, and set one of them with the smallest possible edit.

Not a TOML library: values are located, not converted, and texts that containerd accepts are not validated again. An edit preserves
everything else byte for byte: comments, order, indentation and line endings.
"""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_INDENT = re.compile(r"[ \t]*")
_SCALAR = re.compile(r"[^,\]}#=\r\n]*")
_STRINGS = (('"""', True), ("'''", False), ('"', True), ("'", False))
_ESCAPE = re.compile(r'\\(?:([btnfre"\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|[ \t]*\r?\n[ \t\r\n]*)')
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}

# Levels of arrays and inline tables. Real configurations have two or three.
_MAX_DEPTH = 100


class TomlError(ValueError):
    """The text cannot be parsed; the message contains the line number."""

    def __init__(self, text, position, problem):
        super().__init__("line %d: %s" % (text.count("\n", 0, position) + 1, problem))


class TomlEntry:
    """One table header, or one key with its value.

    ``kind``: "table", "array" ([[...]]) or "key". ``path``: the whole path as a tuple; elements of an array of tables are "#0",
    "#1" and so on. ``table``: the path of the header above the key. ``start``, ``end``: offsets of the statement; ``parts``:
    offsets (start, end) of each name in the key; ``value``: offsets of the value. ``braces``: whether the value is an inline table.
    ``inline``: whether the key is inside an inline table.
    """

    def __init__(self, kind, path, table, parts, start, end, value=None, braces=False, inline=False):
        self.kind = kind
        self.path = path
        self.table = table
        self.parts = parts
        self.start = start
        self.end = end
        self.value = value
        self.braces = braces
        self.inline = inline


def scan(text):
    """All headers and keys of ``text``, in order, as a list of TomlEntry; raises TomlError."""
    return _Scanner(text).entries


def flatten(text):
    """The whole text as one dict: path -> value as written, without surrounding blanks. A header has the value "{}"."""
    values = {}
    for entry in scan(text):
        if entry.kind != "key":
            values.setdefault(entry.path, "{}")
        elif not entry.braces:
            values[entry.path] = text[entry.value[0] : entry.value[1]]
    return values


def string_list(value):
    """The strings in an array value as written, such as ``["/etc/cdi", '/var/run/cdi']``; None if it is not an array."""
    if not value.startswith("["):
        return None
    found = []
    position = 1
    while position < len(value):
        if value[position] in "\"'":
            end = _string_end(value, position)
            found.append(unquote(value[position:end]))
            position = end
        elif value[position] == "#":
            position = _line_end(value, position)
        else:
            position += 1
    return found


def unquote(string):
    """The content of a TOML string as written; other values are returned unchanged."""
    for quote, escapes in _STRINGS:
        if string.startswith(quote) and string.endswith(quote) and len(string) >= 2 * len(quote):
            inner = string[len(quote) : -len(quote)]
            if len(quote) == 3:
                # A line break after the opening quotation marks is not part of the string.
                inner = re.sub(r"\A\r?\n", "", inner)
            return _unescape(inner) if escapes else inner
    return string


def quote(string):
    """``string`` as a TOML basic string."""
    return '"%s"' % re.sub(r'["\\\x00-\x1f\x7f]', lambda match: "\\u%04X" % ord(match.group()), string)


def set_key(text, table, key, value, header=None):
    """``text`` with ``key`` in the table ``table`` (a tuple) set to ``value`` (as written), with the smallest edit.

    ``header``: how to write the name of the table if the file does not have it (default: quoted if necessary).
    """
    entries = scan(text)
    path = table + (key,)
    for entry in entries:
        if entry.kind == "key" and entry.path == path:
            return _splice(text, entry.value[0], entry.value[1], value)
    assignment = "%s = %s" % (key, value)

    # The table, or one that contains it, is an inline table, which can only be extended inside its braces.
    around = [e for e in entries if e.braces and table[: len(e.path)] == e.path]
    if around:
        innermost = max(around, key=lambda e: len(e.path))
        rest = "".join(_key_text(part) + "." for part in table[len(innermost.path) :])
        opening = innermost.value[0] + 1
        blank = _BLANK.match(text, opening).end()
        if text[blank] == "}":
            return _splice(text, opening, blank, " %s%s " % (rest, assignment))
        return _splice(text, blank, blank, "%s%s, " % (rest, assignment))

    for entry in entries:
        if entry.kind == "table" and entry.path == table:
            inside = [e for e in entries if e.kind == "key" and e.table == table and not e.inline]
            indent = _indent_of(text, inside[0].start) if inside else _indent_of(text, entry.start) + "  "
            return _insert_line_after(text, entry.end, indent + assignment)

    # Written as plugins."...".other = value. A header would define the table a second time.
    for entry in entries:
        if entry.kind == "key" and not entry.inline and len(entry.table) < len(table) < len(entry.path):
            if entry.path[: len(table)] == table:
                last = entry.parts[len(table) - len(entry.table) - 1]
                line = _indent_of(text, entry.start) + text[entry.parts[0][0] : last[1]] + "." + assignment
                start = entry.start - len(_indent_of(text, entry.start))
                return _splice(text, start, start, line + newline_of(text))

    newline = newline_of(text)
    name = header or ".".join(_key_text(part) for part in table)
    separation = "" if not text or text.endswith("\n") else newline
    if text.strip():
        separation += newline
    return text + separation + "[%s]%s  %s%s" % (name, newline, assignment, newline)


def prepend_string(text, path, string):
    """``text`` with ``string`` inserted at the beginning of the array at ``path``; raises KeyError without that array."""
    for entry in scan(text):
        if entry.kind == "key" and entry.path == path:
            inside = entry.value[0] + 1
            empty = not string_list(text[entry.value[0] : entry.value[1]])
            follows = text[inside]
            after = "" if empty else "," if follows in " \t\r\n" else ", "
            return _splice(text, inside, inside, quote(string) + after)
    raise KeyError(path)


def replace_value(text, path, value):
    """``text`` with the value of the key at ``path`` replaced; raises KeyError without that key."""
    for entry in scan(text):
        if entry.kind == "key" and entry.path == path:
            return _splice(text, entry.value[0], entry.value[1], value)
    raise KeyError(path)


def newline_of(text):
    """The line ending of the text."""
    return "\r\n" if "\r\n" in text else "\n"


class _Scanner:
    def __init__(self, text):
        self.text = text
        self.entries = []
        self.arrays = {}
        self.depth = 0
        self._run()

    def _run(self):
        text = self.text
        position = 1 if text.startswith("\ufeff") else 0
        table = ()
        while True:
            position = self._skip_space(position)
            if position >= len(text):
                return
            if text[position] == "[":
                table, position = self._header(position)
            else:
                position = self._assignment(position, table, table, False)
            self._expect_line_end(position)

    def _skip_space(self, position):
        """The position after blanks, line endings and comments."""
        text = self.text
        while position < len(text):
            if text[position] in " \t\r\n":
                position += 1
            elif text[position] == "#":
                position = _line_end(text, position)
            else:
                break
        return position

    def _expect_line_end(self, position):
        position = _BLANK.match(self.text, position).end()
        if position < len(self.text) and self.text[position] not in "#\r\n":
            raise TomlError(self.text, position, "unexpected text at the end of the line")

    def _header(self, position):
        start = position
        double = self.text.startswith("[[", position)
        position += 2 if double else 1
        names, parts, position = self._key(position)
        closing = "]]" if double else "]"
        if not self.text.startswith(closing, position):
            raise TomlError(self.text, start, "a table header does not end with %s" % closing)
        path: tuple = ()
        for name in names[:-1]:
            path = self._element(path + (name,))
        path += (names[-1],)
        end = position + len(closing)
        if double:
            self.arrays[path] = self.arrays.get(path, -1) + 1
        path = self._element(path)
        self.entries.append(TomlEntry("array" if double else "table", path, (), parts, start, end))
        return path, end

    def _element(self, path):
        """``path``, or its last element if it is an array of tables."""
        return path + ("#%d" % self.arrays[path],) if path in self.arrays else path

    def _key(self, position):
        """Names, offsets and end of a key such as ``plugins."io.containerd.grpc.v1.cri".enable_cdi``."""
        text = self.text
        names, parts = [], []
        while True:
            position = _BLANK.match(text, position).end()
            start = position
            if position < len(text) and text[position] in "\"'":
                position = _string_end(text, position)
            else:
                match = _BARE.match(text, position)
                if not match:
                    raise TomlError(text, position, "a key was expected")
                position = match.end()
            names.append(unquote(text[start:position]))
            parts.append((start, position))
            position = _BLANK.match(text, position).end()
            if position >= len(text) or text[position] != ".":
                return names, parts, position
            position += 1

    def _assignment(self, position, base, table, inline):
        start = position
        names, parts, position = self._key(position)
        if position >= len(self.text) or self.text[position] != "=":
            raise TomlError(self.text, start, "a key without a value")
        begin = _BLANK.match(self.text, position + 1).end()
        path = base + tuple(names)
        entry = TomlEntry("key", path, table, parts, start, start, inline=inline)
        self.entries.append(entry)
        entry.braces = self.text.startswith("{", begin)
        end = self._value(begin, path, table)
        entry.value = (begin, end)
        entry.end = end
        return end

    def _value(self, position, path, table):
        """The end of the value at ``position``. Records keys of inline tables."""
        text = self.text
        if position >= len(text):
            raise TomlError(text, position, "a value was expected")
        if text[position] in "\"'":
            return _string_end(text, position)
        if text[position] in "[{":
            if self.depth >= _MAX_DEPTH:
                raise TomlError(text, position, "arrays and inline tables are nested more than %d levels deep" % _MAX_DEPTH)
            self.depth += 1
            end = (self._array if text[position] == "[" else self._braces)(position, path, table)
            self.depth -= 1
            return end
        end = position + len(_SCALAR.match(text, position).group().rstrip())
        if end == position:
            raise TomlError(text, position, "a value was expected")
        return end

    def _array(self, position, path, table):
        start = position
        position += 1
        count = 0
        while True:
            position = self._skip_space(position)
            if position >= len(self.text):
                raise TomlError(self.text, start, "an array does not end")
            if self.text[position] == "]":
                return position + 1
            if self.text[position] == ",":
                position += 1
                continue
            position = self._value(position, path + ("#%d" % count,), table)
            count += 1

    def _braces(self, position, path, table):
        start = position
        position += 1
        while True:
            position = self._skip_space(position)
            if position >= len(self.text):
                raise TomlError(self.text, start, "an inline table does not end")
            if self.text[position] == "}":
                return position + 1
            if self.text[position] == ",":
                position += 1
                continue
            position = self._assignment(position, path, table, True)


def _string_end(text, position):
    """The offset after the string that starts at ``position``."""
    for quote_mark, escapes in _STRINGS:
        if not text.startswith(quote_mark, position):
            continue
        multiline = len(quote_mark) == 3
        end = position + len(quote_mark)
        while end < len(text):
            if escapes and text[end] == "\\":
                end += 2
            elif text.startswith(quote_mark, end):
                end += len(quote_mark)
                # There may be up to two more quotation marks before the three that end the string.
                while multiline and text.startswith(quote_mark[0], end):
                    end += 1
                return end
            elif text[end] == "\n" and not multiline:
                break
            else:
                end += 1
        break
    raise TomlError(text, position, "a string does not end")


def _unescape(inner):
    def one(match):
        code = match.group(1)
        if code is None:
            return ""  # a backslash at the end of a line joins it with the next
        if code in _ESCAPES:
            return _ESCAPES[code]
        number = int(code[1:], 16)
        # The escape of what is not a character is left unchanged; containerd rejects such a file.
        return match.group() if number > 0x10FFFF or 0xD800 <= number < 0xE000 else chr(number)

    return _ESCAPE.sub(one, inner)


def _line_end(text, position):
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _indent_of(text, position):
    """The blanks before ``position`` on its line."""
    start = text.rfind("\n", 0, position) + 1
    return _INDENT.match(text, start, position).group()


def _insert_line_after(text, position, line):
    end = _line_end(text, position)
    newline = newline_of(text)
    if end == len(text):
        return text + newline + line + newline
    return _splice(text, end + 1, end + 1, line + newline)


def _key_text(part):
    return part if _BARE.fullmatch(part) else quote(part)


def _splice(text, start, end, replacement):
    return text[:start] + replacement + text[end:]
