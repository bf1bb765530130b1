# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Valid TOML documents in any style: quoting, dotted keys, inline tables, tables in any order, comments, blanks, line endings."""

from __future__ import annotations

import tomllib

from hypothesis import strategies as st

NAMES = ("cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
_OWN = ("a", "b-c", "1", "#0", "x y", "tür", "", 'q"', "registry")
_BARE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_BLANK = st.sampled_from(("", " ", "\t", "  "))
_COMMENT = st.sampled_from(("", "", "", " # x", "# [no.header]", ' # a = "', "#"))
_CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"])


@st.composite
def _key(draw, name):
    if name and set(name) <= _BARE and draw(st.integers(0, 3)):
        return name
    if "'" not in name and draw(st.booleans()):
        return "'%s'" % name
    return '"%s"' % name.replace('"', '\\"')


@st.composite
def _path(draw, names):
    """A key such as plugins."io.containerd.grpc.v1.cri".enable_cdi as written."""
    parts = [draw(_BLANK) + draw(_key(name)) + draw(_BLANK) for name in names]
    return ".".join(parts).strip(" \t")


@st.composite
def strings(draw):
    """A TOML string as written."""
    text = draw(st.text(_CHARACTERS, max_size=8))
    pieces = draw(
        st.lists(st.sampled_from((text, "\\n", "\\u00e9", '\\"', "\\\\", "\\U0001F600", "}", "]", "#", "=", " ")), max_size=4)
    )
    plain = text.replace("\\", "").replace('"', "")
    basic = "".join(plain if piece == text else piece for piece in pieces)
    literal = "".join(pieces).replace("'", "")
    inside = draw(st.sampled_from(("", "\n", '"', '""', "'", "\n[x]\n", "\\\n   ")))
    how = draw(st.integers(0, 3))
    if how == 0:
        return '"%s"' % basic
    if how == 1:
        return "'%s'" % literal
    if how == 2:
        return '"""%s%s%s"""' % (draw(st.sampled_from(("", "\n"))), basic, inside)
    return "'''%s%s%s'''" % (draw(st.sampled_from(("", "\n"))), literal, inside.replace("'", ""))


_SCALARS = st.one_of(
    strings(),
    st.sampled_from(
        ("true", "false", "0", "+2", "0x1f", "1_000", "1.5e3", "-inf", "1979-05-27 07:32:00", "1979-05-27T07:32:00Z", "07:32:00")
    ),
)


@st.composite
def arrays(draw, items, most=3):
    """An array as written, on one line or on several, with comments."""
    gap = st.sampled_from(("", " ", "\n  ", " # ] x\n", "\n\t"))
    listed = draw(st.lists(items, max_size=most))
    text = ",".join(draw(gap) + item + draw(gap) for item in listed)
    return "[%s%s%s]" % (text, "," if listed and draw(st.booleans()) else "", draw(gap))


@st.composite
def _inline(draw, values):
    names = draw(st.lists(st.sampled_from(_OWN + NAMES), max_size=3, unique=True))
    return "{%s}" % ",".join(" %s = %s " % (draw(_key(name)), draw(values)) for name in names)


_VALUES = st.recursive(_SCALARS, lambda inner: st.one_of(arrays(inner), _inline(inner)), max_leaves=4)
_FLAGS = st.sampled_from(("true", "false"))
_DIRECTORIES = st.sampled_from(('"/etc/cdi"', "'/etc/cdi/'", '"/var/run/cdi"', "'/x'"))


@st.composite
def _assignment(draw, names):
    """One key below the table ``names``, most often one that decides about CDI."""
    inside = list(names)
    if inside in ([], ["plugins"]) and draw(st.booleans()):
        # plugins."...".enable_cdi = ... without a header
        inside = [*([] if inside else ["plugins"]), draw(st.sampled_from(NAMES))]
        dotted = inside
    else:
        dotted = []
    cri = (list(names) + dotted)[-1:] and (list(names) + dotted)[-1] in NAMES
    if cri and draw(st.booleans()):
        name = draw(st.sampled_from(("enable_cdi", "cdi_spec_dirs")))
        value = draw(_FLAGS if name == "enable_cdi" else arrays(_DIRECTORIES))
        return "%s = %s" % (draw(_path([*dotted, name])), value)
    if not names and not dotted and draw(st.integers(0, 4)) == 0:
        return "version%s=%s%d" % (draw(_BLANK), draw(_BLANK), draw(st.integers(1, 3)))
    if names == ["plugins"] and not dotted:
        return "%s = %s" % (draw(_key(draw(st.sampled_from(NAMES)))), draw(_inline_section()))
    if not names and not dotted and draw(st.integers(0, 4)) == 0:
        if draw(st.booleans()):
            return "plugins = {%s}" % draw(st.sampled_from(("", " ", " a = 1 ")))
        return "plugins = { %s = %s }" % (draw(_key(draw(st.sampled_from(NAMES)))), draw(_inline_section()))
    more = draw(st.lists(st.sampled_from(_OWN), min_size=1, max_size=2))
    return "%s%s=%s%s" % (draw(_path([*dotted, *more])), draw(_BLANK), draw(_BLANK), draw(_VALUES))


@st.composite
def _inline_section(draw):
    """The section of a plugin as an inline table."""
    listed = draw(
        st.lists(
            st.sampled_from(("enable_cdi = %s" % draw(_FLAGS), "cdi_spec_dirs = ['/x']", "a = 1", "'x y' = { b = 2 }")),
            max_size=3,
            unique=True,
        )
    )
    blank = draw(_BLANK)
    return "{%s%s%s}" % (blank, ", ".join(listed), blank)


_TABLES = st.one_of(
    st.just(["plugins"]),
    st.sampled_from(NAMES).map(lambda name: ["plugins", name]),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(_OWN)).map(lambda pair: ["plugins", *pair]),
    st.lists(st.sampled_from(_OWN), min_size=1, max_size=3),
)


def _valid(text):
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@st.composite
def documents(draw):
    """The text of a valid document, often with sections of containerd's CRI plugin; those are always tables."""
    text, names = "", []
    for _number in range(draw(st.integers(0, 9))):
        indent = draw(_BLANK)
        if draw(st.integers(0, 2)) == 0:
            header = draw(_TABLES)
            double = header[0] != "plugins" and draw(st.booleans())
            statement = ("[[%s%s%s]]" if double else "[%s%s%s]") % (draw(_BLANK), draw(_path(header)), draw(_BLANK))
            if _valid(text + statement + "\n"):
                names = header
            else:
                continue
        else:
            statement = draw(_assignment(names))
        line = indent + statement + draw(_COMMENT) + draw(st.sampled_from(("\n", "\n", "\n\n", "\n# x\n")))
        # Some statements exclude each other, such as two headers of one table.
        if _valid(text + line):
            text += line
    if draw(st.booleans()):
        text = text.rstrip("\n") if _valid(text.rstrip("\n")) else text
    return text.replace("\n", "\r\n") if draw(st.integers(0, 4)) == 0 else text
