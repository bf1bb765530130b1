# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller takes from hosts is what their modules make, and what their documentation tells."""

from __future__ import annotations

import ast
import types
import typing

import pytest
import yaml
from ansible_collections.npuops.ascend.plugins.module_utils._activation import trial_boot
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import facts as host_facts
from ansible_collections.npuops.ascend.plugins.module_utils._inspect import host_validation
from ansible_collections.npuops.ascend.plugins.plugin_utils._data import host_answers

from support.host.fake_host import Host
from support.paths import CHECKOUT

ROOT = "/var/lib/Ascend"


def members(kind):
    """The fields of a TypedDict with their types, or None for anything else."""
    while not typing.is_typeddict(kind):
        inside = [entry for entry in typing.get_args(kind) if entry is not types.NoneType]
        if not inside or typing.get_origin(kind) is dict:
            return None
        kind = inside[0]
    return typing.get_type_hints(kind, include_extras=True)


def documented(module):
    for statement in ast.parse((CHECKOUT / "plugins" / "modules" / (module + ".py")).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "RETURN":
            return yaml.safe_load(statement.value.value)
    raise AssertionError(module)


def differences(contains, kind, where):
    """The places where documentation and type do not name the same fields."""
    fields = members(kind)
    found = [] if set(contains) == set(fields) else ["%s: %s" % (where, sorted(set(contains) ^ set(fields)))]
    for name, entry in contains.items():
        if name in fields and "contains" in entry and members(fields[name]) is not None:
            found += differences(entry["contains"], fields[name], "%s.%s" % (where, name))
    return found


def test_they_are_documented():
    assert differences(documented("npu_facts")["npu"]["contains"], host_answers.Facts, "facts") == []
    assert differences(documented("npu_validate"), host_answers.Validation, "validation") == []
    boot = documented("npu_trial_boot")
    assert differences(boot["view"]["contains"], host_answers.View, "view") == []
    assert set(host_answers.RebootAnswer.__annotations__) == set(boot) - {"view", "msg"}


@pytest.fixture
def npu_host(tmp_path, monkeypatch):
    """A host with a driver that is in use and good, and another one staged."""
    host = Host(tmp_path)
    for name in ("PATH", "NPU_HOST_ROOT", "FAKE"):
        monkeypatch.setenv(name, host.env[name])
    old = host.release("a")
    host.release("b", version="25.5.1")
    for link in ("driver", "good"):
        host.link(link, old)
    host.write("proc/uptime", "12.50 40.00\n")
    return host


def test_what_a_host_says(npu_host):
    facts = dict(host_facts.gather(ROOT, "image", npu_host.fs), upgrade=host_facts.upgrade_facts(ROOT, npu_host.fs))
    assert facts["upgrade"]["staged"]
    assert host_answers.why_not(facts, host_validation.validate(ROOT, "image", fs=npu_host.fs)) is None
    view = trial_boot.view(ROOT, npu_host.fs)
    assert host_answers.view(view) == view


CHIP = {"npu": 0, "chip": 0, "bus_id": "0000:c1:00.0", "health": "Alarm"}


@pytest.mark.parametrize(("validation", "why"), [
    ({"checks": [{"name": "chips", "expected": "", "seen": "", "message": None}]}, "validation.checks[0].ok is missing"),
    ({"checks": [{"name": "chips", "ok": "no", "expected": "", "seen": "", "message": None}]}, "ok is a string, not true or false"),
    ({"checks": [{"ok": False}]}, "validation.checks[0].expected is missing"),
    ({"firmware_version": 7}, "validation.firmware_version is a number, not a string"),
    ({"network": {"chips": [{"address": "10.0.0.1; reboot"}]}}, "address has 16 characters, which is more than 15"),
    ({"network": {"chips": [{"address": "$(reboot)"}]}}, "address is '$(reboot)', which is not an IPv4 address"),
    ({"network": {"chips": [{"chip": -1}]}}, "validation.network.chips[0].chip is -1"),
    ({"network": {"mode": "off"}}, "validation.network.mode is 'off', which this version does not know"),
    ({"chip_health": [dict(CHIP, codes=["80E01801; reboot"])]}, "validation.chip_health[0].codes[0] has 16 characters"),
    ({"chip_health": [dict(CHIP, codes=["{{ 7 }}"])]}, "codes[0] is '{{ 7 }}', which is not a fault code"),
    ({"chip_health": [dict(CHIP, codes=["80E01801"] * 9)]}, "codes has 9 entries, which is more than 8"),
])  # fmt: skip
def test_a_validation_that_nobody_could_read(validation, why):
    assert why in host_answers.why_not({}, validation)


@pytest.mark.parametrize(("upgrade", "why"), [
    ({"holders": [{"pid": 1, "command": "python train.py"}]}, "upgrade.holders[0].device is missing"),
    ({"staged": {"a": {"firmware": ["7.7"]}}}, "upgrade.staged.a.firmware has 1 entries, not two"),
    ({"staged": {"a": {"firmware": ["7.7", None]}}}, "upgrade.staged.a.firmware[1] is null, not a string"),
])  # fmt: skip
def test_facts_for_an_upgrade_that_nobody_could_read(upgrade, why):
    assert why in host_answers.why_not({"upgrade": upgrade})


def test_a_host_where_everything_is_wrong():
    """Nineteen failed checks with what to do about each are more than a sentence."""
    check = {"name": "chips", "ok": False, "expected": "x" * 200, "seen": "x" * 200, "message": "x" * 200}
    failed = [dict(check) for _index in range(19)]
    assert host_answers.why_not({}, {"valid": False, "checks": failed, "msg": host_validation.summary(failed)}) is None
