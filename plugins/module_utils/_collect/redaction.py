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
_QUOTE_BEFORE = re.compile(r"\\{0,16}[\"']\Z")
_LONGEST_QUOTE = 17
# Not the quote that ends "NAME=" without a value.
_VALUE_IN_QUOTES = re.compile(r"\\{0,16}[\"'](?![\\,\]}]|\Z)")
_OPENING_QUOTE = re.compile(r"(\\{0,16})(\"\"\"|\'\'\'|\"|')")
# A string in double quotes that does not end is found up to the end of the line.
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*(?:(\")|\\?\Z)|'[^']*'")
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_BARE = re.compile(r"[^\s,;&]*")
_BLANK = re.compile(r"\s*\Z")
# Up to the last @ before the path: Go takes what is before it for the user and the password.
_URL = re.compile(r"(?<=://)[^\s/\"']{1,1000}@")
_BEARER = re.compile(r"\b(bearer|basic)([ \t]{1,8})[\w.~+/=-]{8,}", re.IGNORECASE)
# What may be a JSON Web Token, searched for once in each word, then where in that word it begins, and what follows the word.
_DOTTED = re.compile(r"(?<![\w-])[\w-]{11,}(?=\.[\w-]{8,})")
_JWT = re.compile(r"\beyJ")
_REST_OF_JWT = re.compile(r"\.[\w-]+(?:\.[\w-]*)?")
_PEM = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_BASE64 = re.compile(r"[\w+/=\\ \t]*\Z", re.ASCII)
# A variable of a container, with its name and value on lines of their own or on one: in JSON, YAML, or as Go prints it.
_NAMED = re.compile(
    r"(?<![\w.-])[Nn]ame\\{0,16}[\"']?[ \t]{0,8}:[ \t]{0,8}\\{0,16}[\"']?([\w.-]{1,300})"
    r"\\{0,16}[\"']?\s{0,80},?\s{0,80}\\{0,16}[\"']?[Vv]alue\\{0,16}[\"']?[ \t]{0,8}:[ \t]{0,8}"
)
# Go prints a value without quotes, whatever is in it: EnvVar{Name:DB_PASSWORD,Value:a, b},ValueFrom:nil,}
_IN_GO = "Go"
_END_IN_GO = re.compile(r"(?:, ?| )ValueFrom:")
# An option that is an argument of its own, before the argument that is its value.
_ARGUMENT = re.compile(r"(\\{0,16}[\"']--)([\w-]{1,300})(\\{0,16}[\"']\s{0,80},\s{0,80})(?=\\{0,16}[\"'])")
_TABLE = re.compile(r"\s*\[\[?([^\[\],=]{1,400})\]\]?\s*(?:#.*)?\Z")
# Each line with a secret has one of these in it; most lines have none, and are not searched any further.
_HINTS = (
    "pass", "pwd", "secret", "token", "credential", "auth", "cookie", "key", "data", "header", "jwt", "bearer", "basic",
    "://", "eyj",
)  # fmt: skip
# How a line of a log begins. It continues no secret of the line before, which is often cut off in the middle of a bracket.
_LOG_LINE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:|[IWEF]\d{4} \d\d:|\[ {0,8}\d{1,9}\.\d{6}\] |[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    r"|\[(?:ERROR|WARN(?:ING)?|INFO|DEBUG|EVENT|CRITICAL)\] |time=\"\d{4}-"
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
    text = _without_arguments(_without_private_keys(text))
    state = _State({found.end() for found in _NAMED.finditer(text) if is_secret_name(found.group(1))})
    lines = []
    offset = 0
    for line in text.split("\n"):
        lines.append(state.shown(line, offset))
        offset += len(line) + 1
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


def _without_arguments(text):
    """Without the values of options that are arguments of their own."""
    parts = []
    at = end = 0
    for found in _ARGUMENT.finditer(text):
        if found.start() < at or not is_secret_name(found.group(2)):
            continue
        if end < found.end():
            end = text.find("\n", found.end())
            end = len(text) if end < 0 else end
        shown, after, _opened = _masked_value(text, found.end(), end, to_end=True)
        parts += [text[at : found.end()], shown]
        at = after
    return "".join(parts) + text[at:]


class _State:
    """What the lines before say of the next one: it may continue a secret. ``values``: where those with a secret's name begin."""

    def __init__(self, values):
        self._values = values
        self._forget()

    def _forget(self):
        self.table = False  # in a table of TOML that contains nothing but secrets
        self.quote = None  # what ends a string of several lines, or _IN_GO
        self.depth = 0  # brackets that are open
        self.indent = None  # a block of YAML ends with a line that is indented no further

    def shown(self, line, offset):
        """The line, which begins at ``offset`` of the text, without secrets."""
        if _LOG_LINE.match(line):
            self._forget()
        if self.quote is not None:
            if _ends(line, self.quote):
                self.quote = None
                # What follows the end may begin the next one.
                self._without_assignments(line, offset)
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
        if not self.table and not any(hint in lowered for hint in _HINTS) and not (self._values and "value" in lowered):
            return line
        table = _TABLE.match(line)
        if table:
            self.table = any(is_secret_name(part) for part in re.split(r"[\s.\"']+", table.group(1)))
        elif self.table and line.strip():
            return MASK
        return _without_forms(self._without_assignments(line, offset))

    def _without_assignments(self, line, offset):
        parts = []
        at = 0
        for found in _ASSIGNMENT.finditer(line):
            name, separator = found.group(1) or found.group(3), found.group(2) or found.group(4)
            named = offset + found.end() in self._values
            if found.start() < at or not (named or (is_secret_name(name) and not _HARMLESS.match(line, found.end()))):
                continue
            # NAME=value ends with a blank; with blanks around the separator, or a colon, blanks may be part of the value.
            to_end = not (separator.endswith("=") or found.group(4))
            around = separator == "=" and _QUOTE_BEFORE.search(line, max(0, found.start() - _LONGEST_QUOTE), found.start())
            if named and name == "Value" and separator == ":":
                shown, after, opened = _masked_in_go(line, found.end())
            elif around and not (line.startswith(around.group(), found.end()) and _VALUE_IN_QUOTES.match(line, found.end())):
                # "NAME=value with blanks"
                shown, after, opened = _masked_string(line, found.end(), len(line), around.group())
            else:
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


def _masked_in_go(line, at):
    """As _masked_value, of a value that Go printed."""
    end = _END_IN_GO.search(line, at)
    if end:
        return MASK, end.start(), None
    # A header has no ValueFrom. What ends nowhere has several lines, or was cut off.
    return MASK, len(line), None if line.find(",}", at) >= 0 else _IN_GO


def _masked_value(text, at, end, to_end):
    """(what is shown in place of the value at ``at``, where it ends, what continues it on later lines or None).

    That is the quote that ends it, "brackets", or "block" for one of YAML.
    """
    if _BLANK.match(text, at, end):
        # A key of YAML, whose value is on the lines below, or no value at all.
        return "", at, "block" if to_end else None
    quote = _OPENING_QUOTE.match(text, at, end)
    if quote:
        shown, after, opened = _masked_string(text, quote.end(), end, quote.group())
        return quote.group() + shown, after, opened
    if text[at] in "[{":
        return MASK, end, "brackets"
    if text[at] in "|>":
        return MASK, end, "block"
    if to_end:
        return MASK, end, None
    return MASK, _BARE.match(text, at, end).end(), None


def _masked_string(text, at, end, closing):
    """As _masked_value, of what is after the quote of a string."""
    close = _end_of_quoted(text, at, end, closing)
    if close is None:
        return MASK, end, closing
    return MASK + closing, close + len(closing), None


def _ends(line, quote):
    if quote == _IN_GO:
        return bool(_END_IN_GO.search(line))
    return _end_of_quoted(line, 0, len(line), quote) is not None


def _end_of_quoted(text, at, end, closing):
    """Where the ``closing`` quote, with the backslashes before it, is; None if it is not before ``end``."""
    quote = closing.lstrip("\\")
    depth = len(closing) - len(quote)
    while True:
        found = text.find(quote, at, end)
        if found < 0:
            return None
        begin = found
        while begin > at and text[begin - 1] == "\\":
            begin -= 1
        at = found + len(quote)
        # A quote inside of the string has more backslashes before it; a backslash inside has them in pairs.
        if (found - begin - depth) % (2 * (depth + 1)) or found - begin < depth:
            continue
        # YAML and others double a quote inside of the string.
        if depth or len(quote) > 1 or text[at : at + 1] != quote:
            return found - depth
        at += 1


def _depth(line):
    """How many more brackets are opened than closed, outside of strings."""
    line = _without_strings(line)
    return sum(map(line.count, "[{")) - sum(map(line.count, "]}"))


def _without_strings(line):
    parts = []
    at = 0
    strings = _STRING
    while True:
        found = strings.search(line, at)
        if not found:
            return "".join(parts) + line[at:]
        parts.append(line[at : found.start()])
        at = found.end()
        if found.group().startswith('"') and not found.group(1):
            # Without an end it is none, and a search from a later quote would find no end either.
            strings = _SINGLE_QUOTED
            at = found.start() + 1


def _without_forms(line):
    line = _URL.sub(MASK + "@", line)
    line = _BEARER.sub(r"\1\2" + MASK, line)
    return _without_jwts(line)


def _without_jwts(line):
    parts = []
    at = 0
    for found in _DOTTED.finditer(line):
        begin = _JWT.search(line, max(at, found.start()), found.end() - 8)
        if begin:
            parts += [line[at : begin.start()], MASK]
            at = _REST_OF_JWT.match(line, found.end()).end()
    return "".join(parts) + line[at:]


def _indent(line):
    return len(line) - len(line.lstrip())
