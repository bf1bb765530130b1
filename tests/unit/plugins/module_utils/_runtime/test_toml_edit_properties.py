# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits of TOML documents in any style, judged by Python's tomllib, and texts that are no TOML."""

from __future__ import annotations

import tomllib

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit
from hypothesis import assume, example, given
from hypothesis import strategies as st

from support import toml_documents
from support.paths import UNIT
from support.properties import STRANGE, bounded, damaged, few, megabytes

FILES = sorted(path.read_text(encoding="utf-8") for path in (UNIT / "fixtures" / "containerd").glob("*.toml"))


def value_of(written):
    return tomllib.loads("x = " + written)["x"]


def at(value, path):
    """What is at a path of ``flatten``."""
    for name in path:
        value = value[int(name[1:])] if isinstance(value, list) else value[name]
    return value


def leaves(value, path=()):
    """The paths of all keys whose value has no tables in it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict) or (isinstance(inner, list) and "{" in repr(inner).replace("'", "")):
                yield from leaves(inner, (*path, name))
            else:
                yield (*path, name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, "#%d" % number))


def removed_and_added(before, after):
    """What one edit took away, and what it put there."""
    start = next((n for n, (x, y) in enumerate(zip(before, after)) if x != y), min(len(before), len(after)))
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return before[start : len(before) - end], after[start : len(after) - end]


def with_key(document, table, key, value):
    """``document`` (as of tomllib) with that key; None if something there is no table."""
    if not isinstance(document, dict):
        return None
    if not table:
        return {**document, key: value}
    inner = with_key(document.get(table[0], {}), table[1:], key, value)
    return None if inner is None else {**document, table[0]: inner}


@given(toml_documents.documents())
def test_flatten_finds_what_a_toml_library_finds(text):
    meaning = tomllib.loads(text)
    found = toml_edit.flatten(text)
    for path, written in found.items():
        if written == "{}":
            assert isinstance(at(meaning, path), dict)
        else:
            assert value_of(written) == at(meaning, path)
    assert set(leaves(meaning)) <= set(found)


@given(toml_documents.strings())
def test_unquote_gives_what_a_toml_library_gives(written):
    assert toml_edit.unquote(written) == value_of(written)


@given(toml_documents.arrays(toml_documents.strings(), 5))
def test_string_list_gives_what_a_toml_library_gives(written):
    assert toml_edit.string_list(written) == value_of(written)


@given(st.one_of(st.text(st.characters(exclude_categories=["Cs"])), st.text(STRANGE)))
def test_a_quoted_string_is_that_string(string):
    assert value_of(toml_edit.quote(string)) == string == toml_edit.unquote(toml_edit.quote(string))


@given(
    toml_documents.documents(),
    st.one_of(
        st.sampled_from(toml_documents.NAMES).map(lambda name: ("plugins", name)), st.just(("plugins",)), st.just(("a", "x y"))
    ),
    st.sampled_from(("enable_cdi", "new")),
    st.sampled_from(("true", "[ 'x' ]", '"y"')),
)
@example("plugins = {}\n", ("plugins", "cri"), "enable_cdi", "true")
@example("a = 1\nplugins = { b.c = 1 } # x", ("plugins", "io.containerd.cri.v1.runtime"), "enable_cdi", "true")
def test_set_key_changes_this_key_and_nothing_else(text, table, key, value):
    wanted = with_key(tomllib.loads(text), table, key, value_of(value))
    assume(wanted is not None and not isinstance(wanted[table[0]].get(key), dict))
    old = toml_edit.flatten(text).get((*table, key))
    after = toml_edit.set_key(text, table, key, value)
    assert tomllib.loads(after) == wanted
    assert toml_edit.set_key(after, table, key, value) == after
    removed, _added = removed_and_added(text, after)
    assert removed == "" or removed in old, "something else was taken away"
    assert ("\r" in text) or "\r" not in after
    assert "\r" not in text or "\n" not in after.replace("\r\n", "")


@given(
    toml_documents.documents(), toml_documents.arrays(st.sampled_from(('"a"', "'b'", '"]"')), 4), st.text(max_size=5), st.booleans()
)
def test_prepend_string_changes_this_array_and_nothing_else(text, array, string, first):
    assume("z" not in tomllib.loads(text) and "\ud800" > max(string, default=""))
    text = "z = %s\n%s" % (array, text) if first else "%s\n[z]\nz = %s # x\n" % (text, array)
    path = ("z",) if first else ("z", "z")
    meaning = tomllib.loads(text)
    after = toml_edit.prepend_string(text, path, string)
    at(meaning, path).insert(0, string)
    assert tomllib.loads(after) == meaning
    assert removed_and_added(text, after)[0] == ""


def check(text):
    try:
        with bounded():
            found = toml_edit.flatten(text)
            for value in found.values():
                assert isinstance(toml_edit.unquote(value), str)
                assert toml_edit.string_list(value) is None or value[0] == "["
    except toml_edit.TomlError as exc:
        assert str(exc).startswith("line ")


PIECES = ('"""', "'''", "[", "]]", "{", "}", "=", ".", ",", "#", "\\U00110000", "\\ud800", '"\\UFFFFFFFF"', "a = ", "\r")


@given(damaged(st.one_of(toml_documents.documents(), st.sampled_from(FILES)), PIECES))
def test_a_damaged_text_is_read_or_refused_with_its_line(text):
    check(text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_tokens_are_read_or_refused_with_their_line(text):
    check(text)


@few
@given(
    megabytes({"[", "{a=", "[[a]]\n", "a.", '"', "'''", "#", "x", "a = [\n", " ", "\\", "1, ", "= "}),
    st.sampled_from(("", "a = ", "[", 'a = "')),
)
def test_megabytes_are_read_or_refused_in_time(text, start):
    check(start + text)


@pytest.mark.parametrize("open_", ["[", "{a=", "[{a="])
@pytest.mark.parametrize("depth", [100, 3000, 100000])
def test_a_text_nested_without_end_is_read_or_refused(open_, depth):
    check("a = " + open_ * depth)
    check("a = " + open_ * depth + "1" + "".join({"[": "]", "{": "}"}.get(one, "") for one in reversed(open_)) * depth)
