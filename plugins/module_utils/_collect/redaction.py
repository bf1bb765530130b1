# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove secrets from text for a bundle that leaves the site: ``redact`` is the only function that decides what a secret is.

It goes by names, so it removes more than secrets, and cannot know a secret that nothing names. Where it is in doubt, it removes the
rest of the line. Its time grows only with the length of the text, whatever is in it: any process can write into a log.
"""

from __future__ import annotations

import re

MASK = "***"
# What the name of a key, a variable or an option with a secret has in it.
_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|authorization|cookie|(?:api|access|private|encryption|signing)[_-]?key"
    r"|key[_-]?data|certificate[_-]?(?:authority[_-]?)?data|(?:^|[_.-])(?:auths?|pass|headers?|jwt|bearer)(?:$|[_.-])",
    re.IGNORECASE,
)
# A name and what separates it from its value, or an option and a blank. The lookbehind lets a search begin once in each word.
_ASSIGNMENT = re.compile(r"(?<![\w.-])(?:([\w.-]+)(\\{0,16}[\"']?[ \t]{0,8}(?::=|[:=])[ \t]{0,8})|(--[\w-]+)([ \t]{1,8}))")
_HARMLESS = re.compile(
    r"\\{0,16}[\"']?(?:true|false|null|none|nil|/(?:etc|opt|run|usr|var)/[\w./-]{1,200})(?=[\s,;}\]\"']|\\|$)", re.IGNORECASE
)
_OPENING_QUOTE = re.compile(r"(\\{0,16})(\"\"\"|\'\'\'|\"|')")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_BARE = re.compile(r"[^\s,;&]*")
_BLANK = re.compile(r"\s*\Z")
# Up to the last @ before the path: Go takes what is before it for the user and the password.
_URL = re.compile(r"(?<=://)[^\s/\"']{1,1000}@")
_BEARER = re.compile(r"\b(bearer|basic)([ \t]{1,8})[\w.~+/=-]{8,}", re.IGNORECASE)
_JWT = re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?")
_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_BASE64 = re.compile(r"[\w+/=\\ \t]*\Z", re.ASCII)
# A variable of a container, with its name and value on lines of their own or on one.
_NAMED = re.compile(
    r"(?<![\w.-])(name\\{0,16}[\"']?[ \t]{0,8}:[ \t]{0,8}\\{0,16}[\"']?)([\w.-]{1,300})"
    r"(\\{0,16}[\"']?\s{0,80},?\s{0,80}\\{0,16}[\"']?value\\{0,16}[\"']?[ \t]{0,8}:[ \t]{0,8})"
)
# An option that is an argument of its own, before the argument that is its value.
_ARGUMENT = re.compile(r"(\\{0,16}[\"']--)([\w-]{1,300})(\\{0,16}[\"']\s{0,80},\s{0,80})(?=\\{0,16}[\"'])")
_TABLE = re.compile(r"\s*\[\[?([^\[\]]{1,400})\]\]?\s*(?:#.*)?\Z")
# Each line with a secret has one of these in it; most lines have none, and are not searched any further.
_HINTS = (
    "pass", "pwd", "secret", "token", "credential", "auth", "cookie", "key", "data", "header", "jwt", "bearer", "basic",
    "://", "eyj",
)  # fmt: skip
# How a line of a log begins. It continues no secret of the line before, which is often cut off in the middle of a bracket.
_LOG_LINE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:|[IWEF]\d{4} \d\d:|\[ {0,8}\d{1,9}\.\d{6}\] |[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|\[(?:ERROR|WARNING|INFO|DEBUG|EVENT)\] "
)
_DOCUMENT = re.compile(
    r"^[ \t]{0,8}\"?kind\"?[ \t]{0,8}:[ \t]{0,8}[\"']?(Config|Secret)[\"']?[ \t]{0,8},?[ \t]{0,8}$", re.MULTILINE
)


def is_secret_name(name):
    """Whether a key, an environment variable or an option with this name may have a secret as its value."""
    return bool(_SECRET.search(name))


def redact(text):
    """``text`` without what looks like a secret."""
    kind = _DOCUMENT.search(text)
    if kind:
        return "%s (the whole text: it contains a %s)\n" % (MASK, "kubeconfig" if kind.group(1) == "Config" else "Secret")
    text = _without_named(_without_private_keys(text))
    lines = []
    state = _State()
    for line in text.split("\n"):
        lines.append(state.shown(line))
    return "\n".join(lines)


def _without_private_keys(text):
    """Whole keys, and parts of keys whose beginning or end was cut off."""
    if "PRIVATE KEY-----" not in text:
        return text
    parts = []
    at = 0
    inside = False
    for found in _PEM.finditer(text):
        before = text[at : found.start()]
        if found.group(1) == "BEGIN":
            parts.append(MASK if inside else before)
            inside = True
        else:
            parts.append(MASK if inside else _without_base64_at_end(before))
            inside = False
        at = found.end()
    parts.append(MASK if inside else text[at:])
    return "".join(parts)


def _without_base64_at_end(text):
    lines = text.split("\n")
    while lines and _BASE64.match(lines[-1]):
        lines.pop()
    return "\n".join(lines + [MASK])


def _without_named(text):
    for pattern in (_NAMED, _ARGUMENT):
        text = _without_values(pattern, text)
    return text


def _without_values(pattern, text):
    """The second group of the ``pattern`` is a name, and what follows a match is its value."""
    parts = []
    at = 0
    for found in pattern.finditer(text):
        if found.start() < at or not is_secret_name(found.group(2)):
            continue
        end = text.find("\n", found.end())
        shown, after, _opened = _masked_value(text, found.end(), len(text) if end < 0 else end, to_end=True)
        parts += [text[at : found.end()], shown]
        at = after
    return "".join(parts) + text[at:]


class _State:
    """What the lines before say of the next one: it may continue a secret."""

    def __init__(self):
        self._forget()

    def _forget(self):
        self.table = False  # in a table of TOML that contains nothing but secrets
        self.quote = None  # what ends a string of several lines
        self.depth = 0  # brackets that are open
        self.indent = None  # a block of YAML ends with a line that is indented no further

    def shown(self, line):
        if _LOG_LINE.match(line):
            self._forget()
        if self.quote is not None:
            at = line.find(self.quote)
            if at >= 0:
                self.quote = None
            return MASK
        if self.depth:
            self.depth = max(0, self.depth + _depth(line))
            return MASK
        if self.indent is not None:
            if not line.strip():
                return line
            if _indent(line) > self.indent or line[self.indent :].startswith("- "):
                return MASK
            self.indent = None
        lowered = line.lower()
        if not self.table and not any(hint in lowered for hint in _HINTS):
            return line
        table = _TABLE.match(line)
        if table:
            self.table = any(is_secret_name(part) for part in re.split(r"[\s.\"']+", table.group(1)))
            return line
        if self.table and line.strip():
            return MASK
        return _without_forms(self._without_assignments(line))

    def _without_assignments(self, line):
        parts = []
        at = 0
        for found in _ASSIGNMENT.finditer(line):
            name, separator = found.group(1) or found.group(3), found.group(2) or found.group(4)
            if found.start() < at or not is_secret_name(name) or _HARMLESS.match(line, found.end()):
                continue
            # NAME=value ends with a blank; with blanks around the separator, or a colon, blanks may be part of the value.
            to_end = not (separator.endswith("=") or found.group(4))
            shown, after, opened = _masked_value(line, found.end(), len(line), to_end)
            parts += [line[at : found.end()], shown]
            at = after
            if opened == "block":
                self.indent = _indent(line)
            elif opened == "brackets":
                self.depth = max(0, _depth(line[found.end() :]))
            elif opened:
                self.quote = opened
        return "".join(parts) + line[at:]


def _masked_value(text, at, end, to_end):
    """(what is shown in place of the value at ``at``, where it ends, what continues it on later lines or None).

    That is the quote that ends it, "brackets", or "block" for one of YAML.
    """
    if _BLANK.match(text, at, end):
        # A key of YAML, whose value is on the lines below, or no value at all.
        return "", at, "block" if to_end else None
    quote = _OPENING_QUOTE.match(text, at, end)
    if quote:
        closing = quote.group(1) + quote.group(2)
        close = _end_of_quoted(text, quote.end(), end, closing)
        if close is not None:
            return closing + MASK + closing, close + len(closing), None
        return closing + MASK, end, quote.group(2) if len(quote.group(2)) == 3 else None
    if text[at] in "[{":
        return MASK, end, "brackets"
    if text[at] in "|>":
        return MASK, end, "block"
    if to_end:
        return MASK, end, None
    return MASK, _BARE.match(text, at, end).end(), None


def _end_of_quoted(text, at, end, closing):
    """Where the ``closing`` quote is; None if it is not before ``end``."""
    while True:
        at = text.find(closing, at, end)
        # A quote inside of the string has one more backslash before it.
        if at < 0 or text[at - 1] != "\\":
            return at if at >= 0 else None
        at += 1


def _depth(line):
    """How many more brackets are opened than closed, outside of strings."""
    line = _STRING.sub("", line)
    return sum(map(line.count, "[{")) - sum(map(line.count, "]}"))


def _without_forms(line):
    line = _URL.sub(MASK + "@", line)
    line = _BEARER.sub(r"\1\2" + MASK, line)
    return _JWT.sub(MASK, line)


def _indent(line):
    return len(line) - len(line.lstrip())
