# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.npuops.ascend.plugins.filter.npu_policy import MAINTENANCE, npu_policy, specs
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings.specs import known_variables

ROLE = os.path.join(os.path.dirname(__file__), *[os.pardir] * 4, "roles", "npu_upgrade")
DEFAULTS = {
    "auto": False,
    "approval_wait": 0,
    "approval_max_age": 0,
    "max_parallel": 1,
    "max_failures": 1,
    "wait_for_jobs": {"selector": "", "timeout": 0},
    "pod_deletion": {"force": False, "timeout": 300, "delete_empty_dir": False},
    "drain": {"enable": True, "force": False, "timeout": 300, "delete_empty_dir": False, "skip_selector": ""},
    "reboot_timeout": 1800,
    "smoke_pod": "",
    "smoke_timeout": 300,
}


def settings(**values):
    return npu_policy({"npu_upgrade_" + name: value for name, value in values.items()})


def test_nothing_is_set():
    assert npu_policy({"npu_driver_version": "25.5.1"}) == DEFAULTS


def test_empty_strings_stand_for_the_default():
    empty = dict.fromkeys(MAINTENANCE, "")
    assert settings(**empty) == DEFAULTS
    assert settings(drain={"timeout": "", "skip_selector": "", "enable": None}, approval_wait=" ") == DEFAULTS


def test_zero_and_false_are_values():
    assert settings(max_parallel=0)["max_parallel"] == 0
    assert settings(drain={"enable": False})["drain"]["enable"] is False


def test_strings_become_what_they_mean():
    found = settings(
        auto="true",
        max_parallel="0",
        max_failures="2",
        pod_deletion={"force": "yes", "timeout": "5"},
        drain='{"enable": "false", "timeout": 60}',
        reboot="timeout=900",
    )
    assert (found["auto"], found["max_parallel"], found["max_failures"], found["reboot_timeout"]) == (True, 0, 2, 900)
    assert found["pod_deletion"] == {"force": True, "timeout": 5, "delete_empty_dir": False}
    assert found["drain"] == dict(DEFAULTS["drain"], enable=False, timeout=60)


@pytest.mark.parametrize(
    "name, value",
    [
        ("auto", "perhaps"),
        ("max_parallel", "many"),
        ("drain", "quickly"),
        ("drain", {"timout": 5}),
        ("reboot", {"timeout": "soon"}),
        ("on_blocked", "ignore"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(name, value):
    with pytest.raises(AnsibleFilterError, match="npu_upgrade_" + name):
        settings(**{name: value})


def test_only_what_is_asked_for():
    assert npu_policy({"npu_upgrade_retry": "true"}, ["retry", "smoke_pod"]) == {"retry": True, "smoke_pod": ""}


def test_paths_are_those_of_whoever_starts_the_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = npu_policy(
        {"npu_upgrade_hook_before": "tasks/before.yml", "npu_upgrade_smoke_pod": "/x/pod.yml"},
        ["hook_before", "hook_after", "smoke_pod"],
    )
    assert found == {"hook_before": str(tmp_path / "tasks/before.yml"), "hook_after": "", "smoke_pod": "/x/pod.yml"}


def test_the_role_says_each_default_once_more():
    with open(os.path.join(ROLE, "defaults", "main.yml"), encoding="utf-8") as stream:
        defaults = yaml.safe_load(stream)
    for name, spec in specs().items():
        inner = spec.get("options")
        assert defaults.pop(name) == ({key: one["default"] for key, one in inner.items()} if inner else spec["default"]), name
    assert defaults == {}


def test_no_setting_is_called_unknown():
    assert set(specs()) <= known_variables()
