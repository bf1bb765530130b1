# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The default that a role documents is the one it has."""

from __future__ import annotations

import pathlib

import pytest
import yaml

ROLES = sorted(path.parent for path in (pathlib.Path(__file__).parents[3] / "roles").glob("*/defaults"))
# What follows from other variables, or is too long for a value: their descriptions say it in words.
IN_WORDS = {
    "npu_ascend_operator_image",
    "npu_ascend_operator_version",
    "npu_clusterd_image",
    "npu_clusterd_version",
    "npu_device_plugin_image",
    "npu_device_plugin_version",
    "npu_exporter_image",
    "npu_exporter_scrapers",
    "npu_exporter_version",
    "npu_node_agent_scrapers",
    "npu_noded_image",
    "npu_noded_version",
    "npu_volcano_controllers_image",
    "npu_volcano_scheduler_image",
    "npu_volcano_version",
}


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_are_those_that_are_documented(role):
    has = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options = specs["argument_specs"]["main"]["options"]
    assert set(has) == set(options)
    assert {name: default(option) for name, option in options.items() if name not in IN_WORDS} == {
        name: value for name, value in has.items() if name not in IN_WORDS
    }
    assert not any("default" in options[name] for name in IN_WORDS & set(options))


def default(option):
    """Of a dictionary it is documented key by key."""
    if "options" in option and "default" not in option:
        return {name: default(part) for name, part in option["options"].items()}
    return option.get("default")
