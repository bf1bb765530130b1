# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that says it is another one does not get that one's host rebooted."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal import recovery_plan
from ansible_collections.npuops.ascend.plugins.plugin_utils._heal.heal_settings import guards_of
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import identity as node_identity
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import checks as preflight_checks

from support.fleet.hosts import NEW_DIGEST, host
from support.fleet.maintenance_bench import Bench
from support.kube.stub import node

NOW = 1795262400


def nodes_of(**boots):
    return {name: node(name, boot_id=boot, labels={"openfuyao.com/npu.present": ""}) for name, boot in boots.items()}


def machine(nodes, **ids):
    for name, value in ids.items():
        nodes[name]["status"]["nodeInfo"]["machineID"] = value
    return nodes


def judged(hosts, nodes):
    return {verdict.name: verdict.reasons for verdict in preflight_checks.judge(hosts, nodes, lambda *_args: NEW_DIGEST)}


def test_two_nodes_with_one_boot_id():
    reasons = judged([host("a"), host("c")], nodes_of(a="boot-a", b="boot-a", c="boot-c"))
    assert reasons["c"] == []
    assert reasons["a"] == [
        "the nodes a and b report the same machine: their boot ID is boot-a. Find out which one it is. If a"
        " machine no longer exists, delete its Node: kubectl delete node <name>"
    ]


def test_two_nodes_with_one_machine_id():
    reasons = judged([host("a"), host("b")], machine(nodes_of(a="boot-a", b="boot-b", c="boot-c"), a="m", b="m", c="n"))
    for name in "ab":
        assert (
            len(reasons[name]) == 1
            and "their machine ID is m" in reasons[name][0]
            and "a unique /etc/machine-id each" in reasons[name][0]
        )


def test_nodes_that_do_not_say():
    nodes = nodes_of(a="", b="", c="boot-c")
    assert node_identity.twins(machine(nodes, a="", b="")) == {}
    assert node_identity.twins({"a": {"metadata": {"name": "a"}}, "b": {"metadata": {"name": "b"}, "status": {}}}) == {}


def test_many_of_them():
    told = node_identity.twins(nodes_of(**{"n%d" % number: "one" for number in range(9)}))
    assert len(told) == 9 and "the nodes n0, n1, n2, n3, n4 and 4 more report" in told["n8"]


def test_two_hosts_that_are_one_machine():
    """Their Nodes report two machines: only the answers of the two hosts show it."""
    reasons = judged([host("a"), host("b", boot_id="boot-a")], nodes_of(a="boot-a", b="boot-b"))
    for name in "ab":
        assert (
            "the hosts a and b are the same machine: its boot ID is boot-a. Correct ansible_host, or exclude one" in reasons[name]
        )


def test_a_recovery_is_not_begun():
    nodes = nodes_of(a="boot-a", b="boot-a", c="boot-c")
    for item in nodes.values():
        wedged = {"reason": "hangs", "since": "2026-11-21T11:00:00Z", "boot_id": item["status"]["nodeInfo"]["bootID"]}
        item["metadata"]["annotations"]["npuops.ascend/wedged"] = json.dumps(wedged)
    hosts = [host(name) for name in "abc"]
    made = recovery_plan.make(hosts, nodes, guards_of({"storm_percent": 100}), NOW, auto=True)
    verdicts = {entry.name: (entry.verdict, entry.reason) for entry in made.entries}
    assert verdicts["c"] == ("recover", None) and [entry.name for entry in made.due] == ["c"]
    for name in "ab":
        assert verdicts[name][0] == "blocked" and "The nodes a and b report the same machine" in verdicts[name][1]


@pytest.mark.parametrize("field", ["bootID", "machineID"])
def test_a_twin_that_comes_later(field):
    """Between plan and reboot, when the node is empty already: it is given back."""
    bench = Bench()
    own = bench.world.objects["/api/v1/nodes/npu-a"]["status"]["nodeInfo"]
    own.setdefault(field, "one")

    def appear():
        bench.world.add("npu-b")
        bench.world.objects["/api/v1/nodes/npu-b"]["status"]["nodeInfo"][field] = own[field]

    bench.run(until="reboot")
    appear()
    outcome = bench.run()
    assert "The host of npu-a is not rebooted: the nodes npu-a and npu-b report the same machine" in outcome["reason"]
    assert bench.host.boots == 0 and not bench.cordoned


def test_a_twin_that_is_gone_again():
    bench = Bench()
    bench.run(until="reboot")
    bench.world.add("npu-b")
    assert bench.run()["outcome"] == "done" and bench.host.boots == 1
