# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edit that makes a runtime the default one, in configurations in any style, judged by Python's tomllib; and its inverse."""

from __future__ import annotations

import copy
import tomllib

from ansible_collections.npuops.ascend.plugins.module_utils._containerd import containerd_config
from ansible_collections.npuops.ascend.plugins.module_utils._containerd import default_runtime_text as text_of
from ansible_collections.npuops.ascend.plugins.module_utils._runtime import toml_edit
from hypothesis import assume, given
from hypothesis import strategies as st

from support import toml_documents
from support.paths import UNIT
from support.properties import damaged

PROGRAM = "/usr/local/Ascend/Ascend-Docker-Runtime/ascend-docker-runtime"
FILES = sorted(path.read_text(encoding="utf-8") for path in (UNIT / "fixtures" / "containerd").glob("*.toml"))
VALID = [text for text in FILES if "broken" not in text]
SECTIONS = st.sampled_from((containerd_config.V1, containerd_config.V2, containerd_config.V3))


def parsed(text):
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


@given(st.one_of(toml_documents.documents(), st.sampled_from(VALID)), SECTIONS)
def test_nothing_else_changes_and_the_inverse_is_exact(text, section):
    before = parsed(text)
    assume(before is not None and not text_of.is_registered(text))
    like = text_of.settings_of(toml_edit.flatten(text), section, "runc")
    changed = text_of.register(text, section, PROGRAM, like)
    assert text_of.is_registered(changed)
    after = parsed(changed)
    # Of some styles there is no such edit: then containerd does not accept it either, and nothing is changed.
    assume(after is not None)
    assert text_of.unregister(changed) in (text, text + toml_edit.newline_of(text))
    wanted = copy.deepcopy(before)
    place = wanted
    for name in (*section[0], "containerd"):
        place = place.setdefault(name, {})
    place["default_runtime_name"] = "ascend"
    runtime = after
    for name in (*section[0], "containerd", "runtimes", "ascend"):
        runtime = runtime[name]
    place.setdefault("runtimes", {})["ascend"] = runtime
    assert runtime["options"]["BinaryName"] == PROGRAM and runtime["runtime_type"]
    assert str(after) == str(wanted) or after == wanted  # NaN differs from itself


@given(damaged(st.sampled_from(VALID)))
def test_the_inverse_never_fails(text):
    text_of.unregister(text if isinstance(text, str) else text.decode("utf-8", "replace"))
