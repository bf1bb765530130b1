# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import jinja2
import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults


def test_variables_by_component():
    variables = {
        "npu_exporter_enabled": "no",
        "npu_volcano_scheduler_image": "r/s:1",
        "npu_component_log_levels": {"noded": 1},
        "npu_noded_resources": None,
        "mine": 1,
    }
    found = wanted_components.given(variables)
    assert {part: settings for part, settings in found.items() if settings} == {
        "exporter": {"enabled": "no"},
        "volcano": {"scheduler_image": "r/s:1"},
        "component": {"log_levels": {"noded": 1}},
    }


@pytest.mark.parametrize("image", [jinja2.Undefined(name="npu_exporter_version"), "r/e:{{ npu_exporter_version }}"])
def test_a_variable_that_refers_to_a_default_of_its_role_counts_as_not_set(image):
    """As ansible-core 2.19, and 2.18, read it."""
    assert wanted_components.given({"npu_exporter_image": image, "npu_exporter_enabled": True})["exporter"] == {"enabled": True}


def test_what_is_not_set_has_the_default_of_the_role():
    for part, wanted in wanted_components.of({}).items():
        assert wanted.role in spec_defaults.roles()
        assert wanted.enabled == spec_defaults.default(wanted.role + "_enabled"), part
        assert wanted.version is None and set(wanted.images.values()) == {None}
    assert set(wanted_components.of({})["volcano"].images) == {"scheduler_image", "controllers_image"}


def test_values_as_text():
    wanted = wanted_components.of({"noded": {"enabled": "true", "version": "v7.3.2", "image": "", "admission_policy": "no"}})[
        "noded"
    ]
    assert (wanted.enabled, wanted.version, wanted.images) == (True, "v7.3.2", {"image": None})
    assert wanted.settings["admission_policy"] == "no"


def test_a_switch_that_is_none():
    with pytest.raises(NpuError, match="npu_clusterd_enabled is 'perhaps'; it must be true or false"):
        wanted_components.of({"clusterd": {"enabled": "perhaps"}})
