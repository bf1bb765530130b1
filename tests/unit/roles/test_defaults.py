# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The default that a role documents is the one it has."""

from __future__ import annotations

import pathlib

import pytest
import yaml

ROLES = sorted(path.parent for path in (pathlib.Path(__file__).parents[3] / "roles").glob("*/defaults"))


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_are_those_that_are_documented(role):
    has = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert set(has) <= set(options)
    # Some defaults follow from other variables; a description says how.
    documented = {name: option["default"] for name, option in options.items() if "default" in option}
    assert documented == {name: has.get(name) for name in documented}
