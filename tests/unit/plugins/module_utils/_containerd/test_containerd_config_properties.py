# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edits that switch CDI on, in configurations in any style, judged by Python's tomllib; and what an edit shows of a file."""

from __future__ import annotations

import copy
import os
import re
import tomllib

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import config_secrets, containerd_config
from hypothesis import assume, given
from hypothesis import strategies as st

from support import toml_documents
from support.paths import UNIT
from support.properties import bounded, damaged, few, megabytes

FILES = sorted(path.read_text(encoding="utf-8") for path in (UNIT / "fixtures" / "containerd").glob("*.toml"))
SECTIONS = st.sampled_from((containerd_config.V1, containerd_config.V2, containerd_config.V3))
SECRET = "Zq7-hunter2-Zq7"


def switched_on(document, table):
    """What CDI in that table means, as of tomllib; None if something on the way is no table."""
    document = copy.deepcopy(document)
    place = document
    for name in table:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            return None
    place["enable_cdi"] = True
    directories = place.get("cdi_spec_dirs")
    if directories is not None and "/etc/cdi" not in [os.path.normpath(path) for path in directories]:
        place["cdi_spec_dirs"] = ["/etc/cdi", *directories]
    return document


@given(st.one_of(toml_documents.documents(), st.sampled_from([text for text in FILES if "broken" not in text])), SECTIONS)
def test_cdi_is_on_and_nothing_else_is_changed(text, section):
    try:
        meaning = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    wanted = switched_on(meaning, section[0])
    assume(wanted is not None)
    after = containerd_config.switch_on(text, section)
    assert tomllib.loads(after) == wanted
    assert containerd_config.switch_on(after, section) == after
    # What a revert looks for before it writes the original back, byte for byte.
    assert containerd_config.is_our_edit(text, after) == (text != after)


@given(toml_documents.documents(), st.data())
def test_no_proposal_for_a_file_changes_more_than_cdi(text, data):
    file = containerd_config.ConfigFile("/etc/containerd/config.toml", text)
    for edit in containerd_config.proposals(file.path, [file]):
        assert containerd_config.is_our_edit(edit.before, edit.after)
        assert tomllib.loads(edit.after) in [
            switched_on(tomllib.loads(text), s[0]) for s in (containerd_config.V1, containerd_config.V2, containerd_config.V3)
        ]


@st.composite
def with_secrets(draw):
    """A valid document with a password, under a key or in a comment, anywhere in it."""
    key = draw(st.sampled_from(("password", "auth", "'identity token'", '"X-Secret"', "x.credential")))
    quote = draw(st.sampled_from(("'", '"', "'''", '"""')))
    value = quote + SECRET + quote
    value = draw(st.sampled_from((value, "[%s]" % value, "[\n  %s, # x\n]" % value)))
    text = draw(toml_documents.documents()).replace("\r\n", "\n")
    line = draw(
        st.sampled_from(
            ("%s = %s\n", "# %s = %s\n", "[p.q]\n  %s = %s\n", "p.q = { a = 1, %s = %s }\n", "enable_cdi = false # %s %s\n")
        )
    )
    lines = text.splitlines(True)
    place = draw(st.integers(0, len(lines)))
    return "".join(
        [*lines[:place], *([] if not place or lines[place - 1].endswith("\n") else ["\n"]), line % (key, value), *lines[place:]]
    )


@given(with_secrets(), SECTIONS)
def test_no_diff_shows_a_password(text, section):
    try:
        after = containerd_config.switch_on(text, section)
    except ValueError:
        after = text + "x\n"
    with bounded():
        for before in (text, None):
            shown = containerd_config.Edit("/etc/containerd/config.toml", before, after).diff()
            assert SECRET not in shown


@given(with_secrets(), st.booleans())
def test_no_message_shows_a_password(text, cut):
    """containerd quotes the line that it cannot read, or the beginning of a string."""
    text = text[: text.index(SECRET) + len(SECRET) + 2] if cut else text
    line = next(line for line in text.splitlines() if SECRET in line)
    with bounded():
        assert SECRET not in config_secrets.mask("containerd: (3, 5): cannot parse %s: no value can start with x" % line, [text])


@given(
    damaged(
        st.one_of(toml_documents.documents(), st.sampled_from(FILES)),
        ('"\\UFFFFFFFF" = ', "password = ", "{", "[" * 3000, "auth = "),
    ),
    damaged(toml_documents.documents(), ("enable_cdi = true\n",)),
    SECTIONS,
)
def test_damaged_files_are_refused_as_declared(before, after, section):
    """ValueError wherever a configuration is read. Hiding what is secret must work in any case."""
    with bounded():
        for work in (
            lambda: containerd_config.switch_on(before, section),
            lambda: containerd_config.ConfigFile("/etc/containerd/config.toml", before).names("/etc/containerd/x"),
            lambda: containerd_config.Dump(before).other_differences(containerd_config.Dump(after)),
        ):
            try:
                work()
            except ValueError as exc:
                assert str(exc)
        assert containerd_config.is_our_edit(before, after) in (True, False)
        assert isinstance(config_secrets.mask(before, [before, after]), str)
        assert isinstance(config_secrets.diff("/x", before, after, containerd_config.KEYS), str)


@few
@given(
    megabytes({"[", "{a=", "[[a]]\n", "password = ", "'", '"', "x", "auth", "\\", "= ", "a = 1\n"}),
    st.sampled_from(("", "auth = ", "a = '")),
)
def test_megabytes_are_hidden_in_time(text, start):
    text = (start + text)[: 2**20]
    with bounded():
        assert isinstance(config_secrets.mask("x" * 1000, [text]), str)


@given(st.one_of(st.text(max_size=12), st.text("*?[]^-\\a/.", max_size=12)), st.text("ab/.-*", max_size=12))
def test_imports_are_patterns_or_refused(pattern, name):
    text = "imports = [%s]\n" % '"%s"' % re.sub(r'["\\\x00-\x1f\x7f\ud800-\udfff]', "", pattern)
    try:
        with bounded():
            file = containerd_config.ConfigFile("/nowhere/config.toml", text)
            assert file.names("/nowhere/" + name) in (True, False)
    except ValueError as exc:
        assert "not a valid pattern in Go" in str(exc)
    else:
        assert all(path.startswith("/") for path in file.patterns)
