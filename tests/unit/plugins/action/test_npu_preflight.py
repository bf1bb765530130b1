# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it: hosts that are refused, and hosts that are left out."""

from __future__ import annotations

import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_preflight import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet.preflight import facts, host
from support.kube.stub import ApiServer, node

TREE = {"loaded": True, "tree": "/usr/local/Ascend/driver", "loaded_version": "25.5.0"}
NONE = {"device_plugin": {"enabled": False}, "exporter": {"enabled": False}, "node_agent": {"enabled": False}}


@pytest.fixture(name="api")
def fixture_api():
    with ApiServer() as server:
        server.put("/api/v1/nodes", *[node(name, boot_id="boot-" + name) for name in ("bad", "good", "plain", "down")])
        yield server


def given(name, tree="/usr/local/Ascend/driver", **changes):
    """A host with a driver of its own, so that no registry is asked."""
    fact = facts(boot_id="boot-" + name, driver=dict(TREE, tree=tree), **changes)
    return host(name, fact=fact, driver_source="preinstalled")


BAD, GOOD = given("bad", problems=["/var is mounted noexec"]), given("good")
PLAIN = host("plain", fact=facts(boot_id="boot-plain", chip_count=0))
DOWN = dict(host("down"), facts=None, unreachable=True, error="Permission denied (publickey)")


def run(api, *hosts, **options):
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=False, diff=False)
    asked = [dict(one, variables=[]) for one in hosts]
    whole = {"hosts": asked, "components": NONE, "host": api.address, "api_key": "token", **options}
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)).validate(whole)
    assert not checked.error_messages, checked.error_messages
    return action.act(checked.validated_parameters)


def test_install_is_refused_with_one_bad_host(api):
    with pytest.raises(NpuError, match=r"Nothing was changed: 1 of 2 hosts") as caught:
        run(api, BAD, GOOD)
    assert caught.value.details["blocked"] == ["bad"]


def test_bad_hosts_are_left_out(api):
    result = run(api, BAD, GOOD, PLAIN, DOWN, leave_out=True)
    statuses = {name: one["status"] for name, one in result["hosts"].items()}
    assert statuses == {"bad": "blocked", "good": "ready", "plain": "skipped", "down": "unreachable"}
    assert result["ready"] == ["good"] and result["no_chip"] == ["plain"] and result["blocked"] == ["bad", "down"]
    assert [list(look) for look in result["look"].values()] == [["good"], ["good"]] and result["pause"] == []
    assert result["problems"] == ["bad: /var is mounted noexec", "down: not reachable: Permission denied (publickey)"]
    assert [line.partition(": ")[0] for line in result["plan"]] == ["good", "plain", "left out", "left out"]
    assert result["plan"][-2:] == ["left out: " + problem for problem in result["problems"]]


def test_nothing_is_left_if_all_are_bad(api):
    result = run(api, BAD, DOWN, leave_out=True)
    assert result["ready"] == result["no_chip"] == [] and result["look"] == {"driver": {}, "validation": {}}


def test_a_reason_of_several_hosts_leaves_out_these(api):
    result = run(api, GOOD, given("bad", tree="/opt/driver"), PLAIN, leave_out=True)
    assert result["blocked"] == ["good", "bad"] and result["no_chip"] == ["plain"]
    (problem,) = result["problems"]
    assert problem.startswith("good, bad: one cluster needs one driver path")


def test_a_reason_of_the_cluster_is_a_failure_nevertheless(api):
    api.denied = {("patch", "nodes")}
    with pytest.raises(NpuError, match="Nothing was changed") as caught:
        run(api, BAD, GOOD, leave_out=True)
    assert '"patch" on "nodes"' in caught.value.message and caught.value.details["blocked"] == ["bad"]


def test_without_bad_hosts_it_makes_no_difference(api):
    assert run(api, GOOD, PLAIN) == run(api, GOOD, PLAIN, leave_out=True)
