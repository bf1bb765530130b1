# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever stands in an inventory: each setting is a value of its type, or is refused by name."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults, valid_settings
from hypothesis import example, given
from hypothesis import strategies as st

from support import properties  # noqa: F401  pylint: disable=unused-import

KINDS = {"str": str, "path": str, "int": int, "bool": bool, "dict": dict, "list": list}
WORDS = st.sampled_from(
    ["", "abc", "1", "-1", "true", "no", "10%", "[", "{", "{}", "[]", '["a"]', '[{"a": 1}]', '{"a": 1}', "a=1", "~/x"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), WORDS, st.text(max_size=8))
KEYS = st.one_of(st.text(max_size=8), st.integers(0, 3), st.sampled_from(["timeout", "enable", "label", "device_plugin", "start"]))
VALUES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)))


@given(st.sampled_from(sorted(spec_defaults.known_variables())), VALUES)
@example("npu_node_agent_scrapers", "abc")
@example("npu_awx_verbosity", 9)
def test_it_has_its_type_or_is_refused_by_name(name, value):
    option = spec_defaults.option(name)
    try:
        found = valid_settings.of_variable(name, value)
    except NpuError as exc:
        assert exc.message.startswith(name)
        return
    if option["type"] in KINDS:
        assert found is None or isinstance(found, KINDS[option["type"]]), (option["type"], found)
        assert not isinstance(found, bool) or option["type"] == "bool", "Python takes it for a number"
    if "choices" in option and option["type"] != "list":
        assert found is None or found in option["choices"]
