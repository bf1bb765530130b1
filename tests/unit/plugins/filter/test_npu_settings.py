# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_settings import npu_settings
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import valid_settings


def settings(role="npu_upgrade", **variables):
    return npu_settings({"npu-a": variables, "npu-b": {"npu_upgrade_auto": True}}, "npu-a", role)


def test_nothing_is_set():
    assert settings(npu_driver_version="25.5.1") == valid_settings.settings("npu_upgrade")


def test_the_role_chooses():
    variables = {"npu_upgrade_max_parallel": 3, "npu_heal_max_parallel": "2"}
    assert settings(**variables)["max_parallel"] == 3
    assert settings("npu_heal", **variables) == {**valid_settings.settings("npu_heal"), "max_parallel": 2}


def test_what_makes_no_sense_is_refused_by_name():
    with pytest.raises(AnsibleFilterError, match="npu_upgrade_auto is 'perhaps'; it must be true or false"):
        settings(npu_upgrade_auto="perhaps")
