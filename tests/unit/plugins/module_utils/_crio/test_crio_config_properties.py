# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a text sets, in any style of TOML, judged by Python's tomllib; and texts that are no TOML."""

from __future__ import annotations

import tomllib

from ansible_collections.npuops.ascend.plugins.module_utils._crio import crio_config
from hypothesis import given
from hypothesis import strategies as st

from support import toml_documents
from support.host.crio import ANSWER, DROP_IN
from support.properties import STRANGE, bounded, damaged

DIRECTORIES = st.lists(toml_documents.strings(), max_size=4)
PLACES = st.sampled_from(("[crio.runtime]\n{}\n", "[crio]\nruntime.{}\n", "crio.runtime.{}\n", "crio = {{ runtime = {{ {} }} }}\n"))


@given(DIRECTORIES, PLACES, st.sampled_from(("", "[other]\ncdi_spec_dirs = ['/x']\n")))
def test_the_list_as_written(written, place, rest):
    text = place.format("cdi_spec_dirs = [%s]" % ", ".join(written)) + rest
    expected = tomllib.loads(text)["crio"]["runtime"]["cdi_spec_dirs"]
    assert crio_config.in_text(text, "x") == expected


@given(st.one_of(damaged(st.sampled_from((DROP_IN, ANSWER % '["/etc/cdi"]'))), st.text(STRANGE), st.text()))
def test_other_texts_are_refused_with_their_name(text):
    with bounded():
        try:
            found = crio_config.in_text(text, "the file")
        except ValueError as exc:
            assert str(exc).startswith("the file")
        else:
            assert found is None or all(isinstance(directory, str) for directory in found)
