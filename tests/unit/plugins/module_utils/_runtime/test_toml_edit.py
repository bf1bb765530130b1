# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit

TABLE = ("plugins", "io.containerd.grpc.v1.cri")


def test_finds_what_a_toml_library_finds():
    text = (
        'a = 1\n"b.c" = "x" # comment\nd.e = [1, [2, 3], "]"]\n[t]\nf = { g = 1, h = { i = "}" } }\n'
        "[[list]]\nk = 1\n[list.sub]\nl = 2\n[[list]]\nk = 3\n[ u . 'v w' ]\nz = '''\n[no.header]\n'''\n"
    )
    assert toml_edit.flatten(text) == {
        ("a",): "1",
        ("b.c",): '"x"',
        ("d", "e"): '[1, [2, 3], "]"]',
        ("t",): "{}",
        ("t", "f", "g"): "1",
        ("t", "f", "h", "i"): '"}"',
        ("list", "#0"): "{}",
        ("list", "#0", "k"): "1",
        ("list", "#0", "sub"): "{}",
        ("list", "#0", "sub", "l"): "2",
        ("list", "#1"): "{}",
        ("list", "#1", "k"): "3",
        ("u", "v w"): "{}",
        ("u", "v w", "z"): "'''\n[no.header]\n'''",
    }


def test_quotation_marks_before_the_end_of_a_string():
    assert toml_edit.flatten('a = """x"""""\nb = \'\'\'\'y\'\'\'\n') == {("a",): '"""x"""""', ("b",): "''''y'''"}


@pytest.mark.parametrize(
    "text, line",
    [
        ("a = 1\n[b\nc = 2\n", 2),
        ("a = 1\nb\n", 2),
        ("a =\n", 1),
        ('\n\na = "x\n', 3),
        ("a = [1,\n2\n", 1),
        ("a = {b = 1\n", 1),
        ("a = 1 b = 2\n", 1),
        ('a = """x\n', 1),
        ("a = 1\nb = " + "[" * 3000, 2),
        ("b = " + "{ a = " * 3000, 1),
    ],
)
def test_says_the_line_it_cannot_follow(text, line):
    with pytest.raises(toml_edit.TomlError, match="line %d:" % line):
        toml_edit.scan(text)


@pytest.mark.parametrize(
    "written, string",
    [
        ('"a"', "a"),
        ("'a\\n'", "a\\n"),
        (r'"\u00e9\"\\\n"', 'é"\\\n'),
        ('"""a"b"""', 'a"b'),
        ("bare", "bare"),
        ('"""\n/etc/a"""', "/etc/a"),
        ("'''\r\n/etc/a'''", "/etc/a"),
        ('"""/etc/\\\n    a"""', "/etc/a"),
        ('"\\UFFFFFFFF\\ud800"', "\\UFFFFFFFF\\ud800"),
        ('""', ""),
    ],
)
def test_unquote(written, string):
    assert toml_edit.unquote(written) == string


def test_quote_is_undone_by_unquote():
    string = 'C:\\dir "x"\n\x7f'
    assert toml_edit.unquote(toml_edit.quote(string)) == string


@pytest.mark.parametrize(
    "value, strings",
    [
        ("[\"/etc/cdi\", '/var/run/cdi']", ["/etc/cdi", "/var/run/cdi"]),
        ('[\n  "a", # "no"\n  "b",\n]', ["a", "b"]),
        ("[]", []),
        ('"/etc/cdi"', None),
    ],
)
def test_string_list(value, strings):
    assert toml_edit.string_list(value) == strings


def test_set_key_keeps_the_other_bytes():
    text = 'version = 2\r\n[plugins."io.containerd.grpc.v1.cri"]\t# x\r\n\tother = 1 \r\n'
    after = toml_edit.set_key(text, TABLE, "enable_cdi", "true")
    assert after == text.replace("# x\r\n", "# x\r\n\tenable_cdi = true\r\n")
    assert toml_edit.set_key(after, TABLE, "enable_cdi", "true") == after


def test_set_key_makes_the_table_at_the_end():
    assert toml_edit.set_key("a = 1", TABLE, "k", "1") == ('a = 1\n\n[plugins."io.containerd.grpc.v1.cri"]\n  k = 1\n')


def test_prepend_string_needs_the_array():
    with pytest.raises(KeyError):
        toml_edit.prepend_string("a = []\n", ("b",), "x")
