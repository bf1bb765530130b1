# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role documents the default that it has: its defaults are made of its documentation, but for what that says in words."""

from __future__ import annotations

import pathlib

import pytest
import yaml

ROLES = sorted(path.parent for path in (pathlib.Path(__file__).parents[3] / "roles").glob("*/defaults"))
# Too long for a value in the documentation.
LONG = {"npu_exporter_scrapers", "npu_node_agent_scrapers"}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_what_is_said_in_words_follows_from_other_variables(role):
    has = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    in_words = {name for name, option in options.items() if "default" not in option and "options" not in option}
    assert {name for name in in_words if "{{" not in str(has[name])} <= LONG
