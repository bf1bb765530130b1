# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.spec_defaults import known_variables, option
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.unknown_variables import unknown_variables

from support.paths import CHECKOUT


def test_unknown_variables():
    assert unknown_variables(["npu_driver_version", "npu_exporter_imgae", "npu_qqq"]) == [
        "unknown variable npu_exporter_imgae: did you mean npu_exporter_image?",
        "unknown variable npu_qqq",
    ]


def test_a_variable_that_was_renamed():
    sentence = "unknown variable npu_daemonset_max_unavailable: it is now called npu_rollout_max_unavailable"
    assert unknown_variables(["npu_daemonset_max_unavailable"]) == [sentence]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("npu_exporter_log_level", "npu_component_log_levels.exporter"),
        ("npu_ascend_operator_log_max_age", "npu_component_log_max_age"),
        ("npu_noded_log_max_backups", "npu_component_log_max_backups"),
    ],
)
def test_a_log_setting_of_one_component(old, new):
    assert unknown_variables([old]) == ["unknown variable %s: it is now called %s" % (old, new)]
    name, _dot, key = new.partition(".")
    assert name in known_variables() and (not key or key in option(name)["options"])


def test_a_log_setting_of_no_component_is_unknown():
    (sentence,) = unknown_variables(["npu_volcano_log_max_age"])
    assert "it is now called" not in sentence


def test_the_example_inventory_names_real_variables():
    names = set()
    for path in ("inventory/hosts.yml", "inventory/group_vars/npu_nodes.yml"):
        with open(os.path.join(CHECKOUT, path), encoding="utf-8") as stream:
            names |= set(re.findall(r"^(?:# | *)(npu_[a-z_]+):", stream.read(), re.M))
    groups = {"npu_nodes", "npu_inference"}
    assert names - groups - known_variables() == set()
    assert len(names) > 8
