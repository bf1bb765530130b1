# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network in validate: each host is asked, a sample of them pings, and one wrong address is named."""

from __future__ import annotations

import json

import pytest

from support.fleet.ports import as_hosts, changed, fleet
from support.scripted import Scripted

HOSTS = ["npu-%02d" % number for number in range(4)]
FAMILY = {
    "name": "910B", "key": "910b", "resource": "huawei.com/Ascend910", "accelerator": "huawei-Ascend910",
}  # fmt: skip
FLEET = {"fleet": [], "rollouts": [], "storm": None, "halted": None, "problems": [], "table": ["<<the table>>"]}


def answers(ports, mode="warn", received=3, checks=()):
    """What the hosts say of themselves, and of their pings."""
    facts = {
        host["name"]: [{"npu": {"family": FAMILY, "driver": {"tree": "/opt/Ascend/driver"}}, "validation": host["validation"]}]
        for host in as_hosts(ports, mode, checks)
    }
    pings = [
        {"chip": port.chip, "address": other.address, "sent": 3, "received": received, "problem": None}
        for port in ports if port.host == "npu-00" for other in ports if other.host == "npu-01" and other.chip == port.chip
    ]  # fmt: skip
    return {
        "npu_facts": {"*": [{"npu": {}}], **facts},
        "npu_status": {"*": [FLEET]},
        "npu_hccn_ping": {
            "npu-00": [{"results": pings}],
            "npu-03": [{"unreachable": True, "msg": "no route"}],
            "*": [{"failed": True}],
        },
    }


def run(tmp_path, said, *arguments):
    scripted = Scripted(tmp_path, said)
    return scripted.run("npuops.ascend.validate", dict.fromkeys(HOSTS, {"ansible_connection": "local"}), *arguments), scripted


def test_a_fleet_in_order(tmp_path):
    done, scripted = run(tmp_path, answers(list(fleet("rails", 4).values())))
    assert done.returncode == 0 and "Network ports" not in done.stdout and "<<the table>>" in done.stdout, done.stdout
    assert {arguments["network"] for _host, arguments in scripted.calls("npu_facts")} == {"warn"}
    calls = dict(scripted.calls("npu_hccn_ping"))
    # One that is down meanwhile, and one that cannot, end nothing.
    assert sorted(calls) == HOSTS and {arguments["tree"] for arguments in calls.values()} == {"/opt/Ascend/driver"}
    assert {"chip": 3, "address": "10.3.0.12"} in calls["npu-01"]["pings"] and len(calls["npu-01"]["pings"]) == 8


@pytest.mark.parametrize("mode", ["warn", "strict"])
def test_one_wrong_address_is_named(tmp_path, mode):
    ports = changed(fleet("rails", 4), (2, 5), address="10.99.0.5", configured=None)
    done, _scripted = run(tmp_path, answers(ports, mode))
    assert "The address of chip 5 of npu-02, 10.99.0.5, is not in 10.5.0.0/24" in done.stdout, done.stdout
    assert (done.returncode == 0) == (mode == "warn"), done.stdout


def test_pings_that_are_not_answered(tmp_path):
    done, _scripted = run(tmp_path, answers(list(fleet("rails", 4).values()), received=0))
    assert "Chip 3 of npu-00 (10.3.0.10) does not reach chip 3 of npu-01 (10.3.0.11)" in done.stdout, done.stdout


# YAML takes off for false, and Ansible, where it checks the arguments of a module, takes false for off.
@pytest.mark.parametrize("given, passed", [("off", "off"), (False, False), ("strict", "strict"), ("", "warn"), (None, "warn")])
def test_the_setting(tmp_path, given, passed):
    done, scripted = run(tmp_path, answers([]), "-e", json.dumps({"npu_validate_network": given}))
    assert done.returncode == 0, done.stdout
    assert {arguments["network"] for _host, arguments in scripted.calls("npu_facts")} == {passed}
    assert not scripted.calls("npu_hccn_ping")


def test_no_pings(tmp_path):
    done, scripted = run(tmp_path, answers(list(fleet("rails", 4).values())), "-e", "npu_validate_network_pings=0")
    assert done.returncode == 0 and not scripted.calls("npu_hccn_ping"), done.stdout


def test_what_hosts_say_is_shown_and_not_evaluated(tmp_path):
    canary = tmp_path / "canary"
    text = "{{ lookup('ansible.builtin.pipe', 'touch %s') }}" % canary
    check = {"name": "network_link", "ok": False, "expected": text, "seen": text, "message": text}
    done, _scripted = run(tmp_path, answers(list(fleet("rails", 4).values()), checks=[check]))
    assert done.returncode == 0 and not canary.exists() and "lookup(" in done.stdout, done.stdout


def test_an_address_that_is_none_reaches_no_other_host(tmp_path):
    """Other hosts would be told to ping it. Nothing of what such a host says is used."""
    ports = fleet("rails", 4)
    said = answers(list(ports.values()))
    said["npu_facts"]["npu-02"][0]["validation"]["network"]["chips"][5]["address"] = "10.5.0.1 -s"
    _done, scripted = run(tmp_path, said)
    told = json.dumps(scripted.calls("npu_hccn_ping"))
    assert "-s" not in told and "10.0.0.12" not in told and "10.0.0.13" in told
