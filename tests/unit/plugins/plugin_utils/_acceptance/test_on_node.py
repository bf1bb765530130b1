# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._acceptance import on_node
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes import acceptance_gate
from ansible_collections.npuops.ascend.plugins.plugin_utils._nodes.acceptance_gate import TAINT

from support.kube.stub import node

NODES = "/api/v1/nodes"
PATH = NODES + "/a"


def document(verdict="PASS", level=2):
    return {"node": "a", "verdict": verdict, "level": level, "ended": "2026-11-26T10:00:05Z", "findings": ["not on the Node"]}


@pytest.fixture(name="gated")
def fixture_gated(api):
    """A node that waits to be accepted at level 2."""
    waiting = node("a", boot_id="b-1")
    waiting["spec"]["taints"] = [{"key": TAINT, "value": "2", "effect": "NoSchedule"}]
    api.put(NODES, waiting)
    return lambda: api.objects[NODES]["a"]


@pytest.mark.parametrize(
    "verdict, level, opened",
    [
        ("PASS", 2, True),
        ("WARNING", 2, True),
        ("PASS", 3, True),
        ("PASS", 1, False),
        ("UNKNOWN", 2, False),
        ("FAIL", 3, False),
    ],
)
def test_who_is_accepted_serves(cluster, gated, verdict, level, opened):
    (told,) = on_node.write(cluster, document(verdict, level), "b-1")
    assert acceptance_gate.last(gated()) == {"verdict": verdict, "level": level, "ended": "2026-11-26T10:00:05Z"}
    assert (acceptance_gate.level(gated()) is None) is opened
    assert ("was removed: pods can be scheduled" in told) is opened
    assert ("Pods wait until the node is accepted at level 2 or higher" in told) is not opened


def test_a_node_without_a_gate(api, cluster):
    api.put(NODES, node("a", boot_id="b-1"))
    assert on_node.write(cluster, document("FAIL"), "b-1") == []
    assert acceptance_gate.last(api.objects[NODES]["a"])["verdict"] == "FAIL"
    assert "spec" not in [request for request in api.requests if request[0] == "PATCH"][0]


def test_a_host_that_has_not_joined_the_cluster(api, cluster):
    api.put(NODES)
    assert on_node.write(cluster, document(), "b-1") == []


def test_the_verdict_on_another_host_is_not_written(cluster, gated):
    """A wrong ansible_host would let a node serve that was never tested."""
    with pytest.raises(NpuError, match="the host is not the node: its boot ID is b-2, the node reports b-1. Correct ansible_host"):
        on_node.write(cluster, document(), "b-2")
    assert acceptance_gate.level(gated()) == 2 and acceptance_gate.last(gated()) is None


def test_a_taint_that_comes_meanwhile_is_kept(api, cluster, gated, monkeypatch):
    original, added = cluster.merge_patch, {"key": "mine", "effect": "NoExecute"}

    def meanwhile(path, patch, **kwargs):
        if added not in gated()["spec"]["taints"]:
            changed = gated()
            changed["spec"]["taints"].append(added)
            api.put(NODES, changed)  # another resourceVersion
        return original(path, patch, **kwargs)

    monkeypatch.setattr(cluster, "merge_patch", meanwhile)
    on_node.write(cluster, document(), "b-1")
    assert gated()["spec"]["taints"] == [added]


def test_a_node_that_may_not_be_written(api, cluster, gated):
    api.denied.add(("patch", "nodes"))
    api.faults["PATCH", PATH] = (403, 'nodes "a" is forbidden: User "u" cannot patch resource "nodes" in API group ""')
    with pytest.raises(NpuError, match='Allow "patch" on "nodes" to this user'):
        on_node.write(cluster, document(), "b-1")
    assert acceptance_gate.level(gated()) == 2
