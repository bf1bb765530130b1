# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people read of settings is what the argument specs say: the page, the defaults of the
roles, the tables of the guides, the example inventory.
"""

from __future__ import annotations

import re
import runpy

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults

from support.paths import CHECKOUT

# Shown with another value, together with what belongs to it.
EXAMPLES: set[str] = set()
PAGES = sorted(path.name for path in (CHECKOUT / "docs").glob("*.md") if path.name != "settings.md")


def test_what_is_made_of_the_argument_specs_is_up_to_date():
    page = runpy.run_path(str(CHECKOUT / "dev" / "settings_page.py"))
    made = {**page["specs"](), **page["made"]()}
    assert len(made) > 20
    assert [path for path, text in made.items() if path.read_text(encoding="utf-8") != text] == [], "run make settings"


def test_it_has_every_variable_once():
    page = (CHECKOUT / "docs" / "settings.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `(npu_[a-z0-9_]+)` \|", page, re.M)
    assert sorted(names) == sorted(spec_defaults.known_variables())
    assert not re.search(r"\b[A-Z]{1,2}\([a-z]", page)  # markup of Ansible


@pytest.mark.parametrize("name", PAGES)
def test_defaults_in_the_guides(name):
    text = (CHECKOUT / "docs" / name).read_text(encoding="utf-8")
    for variable, shown in re.findall(r"^\| `(npu_\w+)` \| `([^`]+)` \|", text, re.M):
        if variable in spec_defaults.known_variables():
            assert yaml.safe_load(shown) == spec_defaults.default(variable), variable


def test_what_the_example_inventory_comments_out_is_the_default():
    text = (CHECKOUT / "inventory" / "group_vars" / "npu_nodes.yml").read_text(encoding="utf-8")
    shown = re.findall(r"^# (npu_\w+): (.+)$", text, re.M)
    defaults = {name: spec_defaults.default(name) for name, _value in shown}
    # Where there is no default, there is an example.
    defaults = {name: default for name, default in defaults.items() if default not in (None, "", [], {}) and name not in EXAMPLES}
    assert {name: value_of(name, text) for name, text in shown if name in defaults} == defaults
    assert "npu_driver_source" in defaults


def test_the_example_inventory_has_the_settings_of_a_first_install():
    text = (CHECKOUT / "inventory" / "group_vars" / "npu_nodes.yml").read_text(encoding="utf-8")
    page = (CHECKOUT / "docs" / "settings.md").read_text(encoding="utf-8")
    table = page.partition("## For a first install")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^(?:# )?(npu_\w+):", text, re.M)) == sorted(re.findall(r"^\| \[`(npu_\w+)`\]", table, re.M))


def value_of(variable, text):
    value = yaml.safe_load(text)
    return str(value) if spec_defaults.option(variable)["type"] == "str" else value
