# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.filter.npu_hosts import npu_hosts

CHIPS = {"chip_count": 8, "kernel": "6.6.0", "boot_id": "boot-a"}
VARIABLES = {
    "ansible_host": "10.0.0.1",
    "npu_driver_version": "25.5.0",
    "npu_registry_username": "reader",
    "npu_registry_password": "s3cret",
    "npu_driver_verison": "25.5.1",
    "__npu_facts": {"npu": dict(CHIPS), "changed": False},
    "__npu_validation": {"valid": True, "checks": [], "invocation": {"module_args": {}}},
}


def one(variables, **kwargs):
    (host,) = npu_hosts(["a"], {"a": variables}, **kwargs)
    return host


def test_a_host():
    assert one(VARIABLES) == {
        "name": "a",
        "facts": CHIPS,
        "validation": {"valid": True, "checks": []},
        "unreachable": False,
        "error": None,
        "config": {"driver_version": "25.5.0"},
        "variables": ["npu_driver_version", "npu_registry_username", "npu_registry_password", "npu_driver_verison"],
    }


def test_credentials_only_where_asked_for():
    assert one(VARIABLES, credentials=True)["config"]["registry_password"] == "s3cret"
    assert "s3cret" not in str(one(VARIABLES))


def test_an_empty_answer_in_a_survey_is_the_default():
    assert one({"npu_driver_version": "", "npu_registry_plain_http": "", "npu_node_name": "n"})["config"] == {"node_name": "n"}


def test_virtual_npus_that_install_has_created_since():
    made = {"vnpus": [{"chip": 0, "id": 100, "template": "vir04", "resource": "huawei.com/Ascend310P-4c"}], "changed": True}
    plan = {"changed": True, "target": [], "destroy": [], "create": [], "problem": None}
    facts = {"npu": {**CHIPS, "vnpus": [], "vnpu_plan": plan}}
    host = one({"__npu_facts": facts, "__npu_vnpu": made})
    assert host["facts"] == {**CHIPS, "vnpus": [{"chip": 0, "id": 100, "template": "vir04"}], "vnpu_plan": None}
    for nothing in ({"skipped": True}, dict(made, failed=True)):
        assert one({"__npu_facts": facts, "__npu_vnpu": nothing})["facts"] == facts["npu"]
    for wrong in ("all", ["all"], [{"chip": 0}]):
        assert "facts are not valid" in one({"__npu_facts": facts, "__npu_vnpu": {"vnpus": wrong}})["error"]


def test_whole_chips_are_a_value():
    assert one({"npu_vnpu": []})["config"] == {"vnpu": []}
    assert one({"npu_vnpu": ""})["config"] == {}


def test_an_unreachable_host():
    host = one({"__npu_facts": {"unreachable": True, "msg": "no route to host"}})
    assert (host["unreachable"], host["error"], host["facts"]) == (True, "no route to host", None)


def test_a_host_where_no_module_runs():
    host = one({"__npu_facts": {"failed": True, "msg": "The module interpreter '/usr/bin/python3' was not found."}})
    assert not host["unreachable"]
    assert host["error"].startswith("no Python can be run there")


def test_a_host_that_was_never_asked():
    assert one({})["error"] == "its facts were not read"


def test_hosts_that_were_not_all_asked():
    assert npu_hosts(["a"], {"a": {}}, asked=False)[0]["error"] is None
    failed = {"__npu_facts": {"failed": True, "msg": "no space left"}}
    assert npu_hosts(["a"], {"a": failed}, asked=False)[0]["error"] == "no space left"


def test_a_validation_that_came_with_the_facts():
    told = {"npu": CHIPS, "validation": {"valid": False, "checks": []}}
    assert one({"__npu_facts": told})["validation"] == told["validation"]
    assert one(dict(VARIABLES, __npu_facts=told))["validation"] == {"valid": True, "checks": []}


def test_a_host_that_went_away_between_the_two_calls():
    gone = {"unreachable": True, "msg": "connection refused"}
    host = one(dict(VARIABLES, __npu_validation=gone))
    assert (host["unreachable"], host["error"]) == (True, "connection refused")


OURS = "/var/lib/npuops/python/current/python3"


def test_a_host_to_which_no_python_could_be_brought():
    host = one({"__npu_python": {"failed": True, "msg": "Python could not be installed on this host: no ctr"}})
    assert (host["error"], "pending" in host) == ("Python could not be installed on this host: no ctr", False)
    gone = one({"__npu_python": {"unreachable": True, "msg": "no route"}})
    assert (gone["unreachable"], gone["error"]) == (True, "no route")


def test_a_host_that_check_mode_brings_no_python():
    host = one({"__npu_python": {"changed": True, "python": False, "msg": "bring it"}, "__npu_facts": {"skipped": True}})
    assert (host["error"], host["pending"]) == (None, "has no Python: bring it")


def test_a_host_with_a_python_of_its_own_has_only_skipped_that_task():
    assert "pending" not in one({"__npu_python": {"skipped": True, "changed": False}, **VARIABLES})


def test_our_python_is_missing():
    host = one({"__npu_facts": {"rc": 127, "msg": f"The module interpreter '{OURS}' was not found."}})
    assert "Run npuops.ascend.install" in host["error"]


@pytest.mark.parametrize(("facts", "why"), [
    ({"chip_count": "8"}, "chip_count is a string, not a number"),
    ({"chip_count": 8, "boot_id": "b"}, "kernel is missing"),
    ({"chip_count": 8, "kernel": "6.6", "boot_id": None}, "boot_id is missing"),
    ({"chip_count": 2**40}, "chip_count is 1099511627776, which is not between 0 and 1024"),
    ({"chip_count": True}, "chip_count is true or false, not a number"),
    ({"family": {"name": "910B", "accelerator": "../x"}}, "which this version does not know"),
    ({"driver": []}, "driver is a list, not an object"),
    ({"driver": {"tree": "/x\n---\nkind: ClusterRoleBinding"}}, "which is not a path"),
    ({"problems": [{}]}, "problems[0] is an object, not a string"),
    ({"upgrade": {"staged": {"r": 1}}}, "upgrade.staged.r is a number, not an object"),
    ({"uptime": "9"}, "uptime is a string, not a number"),
    ([], "it is a list, not an object"),
])  # fmt: skip
def test_facts_that_are_none(facts, why):
    """Of this host; they must not affect the verdicts on all the others."""
    host = one({"__npu_facts": {"npu": facts}})
    assert host["facts"] is None and why in host["error"] and "Check that its address belongs to the right host" in host["error"]


def test_a_validation_that_is_none():
    host = one({"__npu_facts": {"npu": {"chip_count": 8}, "validation": {"checks": [1]}}})
    assert (host["facts"], host["validation"]) == (None, None) and "validation.checks[0] is a number, not an object" in host[
        "error"
    ]


class Evaluated(dict):
    """As hostvars: what is read is evaluated, which may ask a vault."""

    def __getitem__(self, name):
        assert "password" not in name, "%s was looked up" % name
        return super().__getitem__(name)


def test_secrets_that_nothing_needs_are_not_looked_up():
    assert npu_hosts(["a"], {"a": Evaluated(VARIABLES)})[0]["config"]["driver_version"] == VARIABLES["npu_driver_version"]
