# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._settings import spec_defaults, valid_settings

from support.paths import CHECKOUT

ROLES = ("npu_upgrade", "npu_heal")
DRAIN = {"enable": True, "force": False, "timeout": 300, "delete_empty_dir": False, "skip_selector": ""}


def settings(**given):
    return valid_settings.settings("npu_upgrade", given)


@pytest.mark.parametrize("role", ROLES)
def test_without_values_it_is_what_the_role_has(role):
    defaults = yaml.safe_load((CHECKOUT / "roles" / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
    assert {role + "_" + name: value for name, value in valid_settings.settings(role).items()} == defaults


@pytest.mark.parametrize("role", ROLES)
def test_what_came_out_may_go_in_again(role):
    once = valid_settings.settings(role, {"auto": "true", "max_parallel": "7"})
    assert valid_settings.settings(role, once) == once


@pytest.mark.parametrize("empty", ["", "  ", None])
def test_empty_values_stand_for_the_default(empty):
    assert settings(**dict.fromkeys(settings(), empty)) == settings()
    assert settings(drain=dict.fromkeys(DRAIN, empty))["drain"] == DRAIN


def test_zero_and_false_are_values():
    assert settings(max_parallel=0)["max_parallel"] == 0
    assert settings(drain={"enable": False})["drain"]["enable"] is False


def test_strings_become_what_they_mean():
    found = settings(
        auto="true",
        max_parallel="0",
        max_failures=" 2 ",
        pod_deletion={"force": "yes", "timeout": "5"},
        drain='{"enable": "false", "timeout": 60}',
        reboot="timeout=900",
    )
    assert (found["auto"], found["max_parallel"], found["max_failures"], found["reboot"]) == (True, 0, 2, {"timeout": 900})
    assert found["pod_deletion"] == {"force": True, "timeout": 5, "delete_empty_dir": False, "dra_drivers": "npu.huawei.com"}
    assert found["drain"] == dict(DRAIN, enable=False, timeout=60)
    for names, meant in (("Ceph.*", ["Ceph.*"]), ('["a", "b{1,2}"]', ["a", "b{1,2}"])):
        assert settings(alerts={"names": names})["alerts"]["names"] == meant


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("auto", "perhaps", "npu_upgrade_auto is 'perhaps'; it must be true or false"),
        ("max_parallel", "many", "npu_upgrade_max_parallel is 'many'; it must be a whole number, 0 or more"),
        ("max_parallel", -1, "npu_upgrade_max_parallel is -1; it must be a whole number, 0 or more"),
        ("max_parallel", True, "npu_upgrade_max_parallel is True; it must be a whole number, 0 or more"),
        ("max_parallel", 1.5, "npu_upgrade_max_parallel is 1.5; it must be a whole number, 0 or more"),
        *(
            (
                "max_parallel",
                value,
                "npu_upgrade_max_parallel is %r; it must be a whole number, 0 or more, or a percentage, 1%% to 100%%" % value,
            )
            for value in ("0%", "101%", "10 %", "2.5%", "-5%", "%", "010%")
        ),
        *(
            (name, value, "%s is .*; it must be a whole number" % name.join(("npu_upgrade_", "")))
            for name in ("max_failures", "max_parallel")
            for value in (
                "1e999999999",
                "-1e999999999",
                "0e999999999",
                "9" * 5000,
                "inf",
                "nan",
                float("inf"),
                float("nan"),
                "1e-9",
            )
        ),
        ("max_parallel", [1], r"npu_upgrade_max_parallel is \[1\]; it must be a whole number"),
        ("heartbeat_limit", "0", "npu_upgrade_heartbeat_limit is '0'; it must be a whole number, 1 or more"),
        ("on_blocked", "ignore", "npu_upgrade_on_blocked is 'ignore'; it must be refuse or defer"),
        ("smoke_pod", {"kind": "Pod"}, "npu_upgrade_smoke_pod is .*; it must be text"),
        ("drain", "quickly", "npu_upgrade_drain is 'quickly'; it must be a mapping with enable, "),
        ("drain", "{not: json}", "npu_upgrade_drain is '{not: json}'; it must be a mapping"),
        ("drain", [5], r"npu_upgrade_drain is \[5\]; it must be a mapping"),
        ("drain", {"timout": 5}, "npu_upgrade_drain has no 'timout'; it has enable, force, timeout, "),
        ("drain", {5: 5}, "npu_upgrade_drain has no '5'; it has "),
        ("alerts", {"names": [5]}, r"npu_upgrade_alerts.names is \[5\]; it must be a list of texts"),
        ("alerts", {"names": ["a", ""]}, "npu_upgrade_alerts.names is .*; it must be a list of texts"),
        ("alerts", {"names": {"a": 1}}, "npu_upgrade_alerts.names is .*; it must be a list of texts"),
        ("reboot", {"timeout": "soon"}, "npu_upgrade_reboot.timeout is 'soon'; it must be a whole number, 0 or more"),
        ("parallel", 2, "npu_upgrade has no 'parallel'; it has .*, max_parallel, "),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(name, value, message):
    with pytest.raises(NpuError, match=message):
        settings(**{name: value})


@pytest.mark.parametrize(("given", "value"), [("1e3", 1000), ("2.0", 2), (2.0, 2), ("1e-999999999", None), ("9" * 18, 10**18 - 1)])
def test_a_whole_number_may_be_written_in_several_ways(given, value):
    if value is None:
        with pytest.raises(TypeError):
            valid_settings.whole_number(given)
    else:
        assert valid_settings.whole_number(given) == value


@pytest.mark.parametrize(("given", "value"), [("10%", "10%"), (" 100% ", "100%"), ("1%", "1%"), ("10", 10), (3, 3)])
def test_how_many_at_once_may_be_a_percentage(given, value):
    assert settings(max_parallel=given)["max_parallel"] == value


def test_a_share_has_two_ends():
    assert valid_settings.settings("npu_heal", {"storm_percent": "100"})["storm_percent"] == 100
    with pytest.raises(NpuError, match="npu_heal_storm_percent is 101; it must be a whole number, 0 to 100"):
        valid_settings.settings("npu_heal", {"storm_percent": 101})


def test_paths_are_those_of_whoever_starts_the_command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ops")
    found = settings(hook_before="tasks/before.yml", smoke_pod="/x/pod.yml", report_dir="~/reports")
    assert found["hook_before"] == str(tmp_path / "tasks/before.yml")
    assert (found["hook_after"], found["smoke_pod"], found["report_dir"]) == ("", "/x/pod.yml", "/home/ops/reports")


def test_of_a_host_only_the_roles_own_variables_count():
    variables = {"npu_upgrade_auto": "true", "npu_heal_auto": "false", "npu_driver_version": "25.5.1", "max_parallel": 9}
    assert valid_settings.of_host("npu_upgrade", variables) == {**valid_settings.settings("npu_upgrade"), "auto": True}


def test_nobody_can_change_a_default():
    valid_settings.settings("npu_upgrade")["drain"]["timeout"] = 5
    assert (
        valid_settings.settings("npu_upgrade")["drain"]["timeout"] == spec_defaults.default("npu_upgrade_drain")["timeout"] == 300
    )
