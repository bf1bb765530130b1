# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import node_checks

from support.fleet.preflight import cluster_nodes, facts, host, judge, only


def test_inventory_name_and_node_are_not_the_same_machine():
    nodes = cluster_nodes("a", "b")
    verdict = only(host("a", fact=facts(boot_id="boot-b")), nodes=nodes)
    assert verdict.reasons == [
        "the host is not the node a: the host's boot ID is boot-b, the node reports boot-a. This machine is the node b."
        " Correct ansible_host or npu_node_name; right after a reboot, wait until the kubelet has reported"
    ]


def test_no_such_node():
    verdict = only(host("npu-a", fact=facts(boot_id="boot-worker-1")), nodes=cluster_nodes("worker-1"))
    assert verdict.reasons == ["the cluster has no node npu-a: this machine is the node worker-1, set npu_node_name: worker-1"]


def test_no_such_node_but_one_with_a_similar_name():
    verdict = only(host("npu-a"), nodes=cluster_nodes("npu-a1"))
    assert verdict.reasons == ["the cluster has no node npu-a: did you mean npu-a1? See npu_node_name"]


def test_the_hosts_of_another_cluster_cost_no_search_for_each(monkeypatch):
    """One among the names of 1,000 nodes takes a tenth of a second."""
    searched = []
    monkeypatch.setattr(node_checks.difflib, "get_close_matches", lambda name, *_rest: searched.append(name) or [])
    found = judge([host("worker-%d.dc1" % number) for number in range(100)], cluster_nodes("worker-1.dc2"))
    assert {verdict.status for verdict in found} == {"blocked"} and 0 < len(searched) <= 20


def test_node_name():
    verdict = only(host("a", fact=facts(boot_id="boot-w"), node_name="w"), nodes=cluster_nodes("w"))
    assert (verdict.status, verdict.node_name) == ("ready", "w")


def test_two_hosts_for_one_node():
    first, second = judge([host("a"), host("b", fact=facts(boot_id="boot-a"), node_name="a")], cluster_nodes("a"))
    assert first.reasons == ["shares the node name a with b; see npu_node_name"]
    assert second.reasons == ["shares the node name a with a; see npu_node_name"]


def test_node_not_ready():
    verdict = only(host("a"), nodes=cluster_nodes("a", ready=False))
    assert verdict.reasons == ["the node a is not Ready: Kubelet stopped posting node status"]


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        ({"kubeletVersion": "v1.22.3"}, "the kubelet is v1.22.3; at least 1.24 is needed"),
        ({"containerRuntimeVersion": "containerd://1.6.33"}, "containerd is 1.6.33; CDI needs 1.7 or newer"),
        (
            {"containerRuntimeVersion": "cri-o://1.34.0"},
            "the node runs CRI-O, but driver images are pulled and unpacked by containerd. Install the driver on the host and set"
            " npu_driver_source: preinstalled",
        ),
        (
            {"containerRuntimeVersion": "docker://24.0.7"},
            "the node runs docker; only containerd 1.7 or newer and CRI-O are supported",
        ),
    ],
)
def test_versions(info, reason):
    nodes = cluster_nodes("a")
    nodes["a"]["status"]["nodeInfo"].update(info)
    assert only(host("a"), nodes=nodes).reasons == [reason]


@pytest.mark.parametrize(
    ("version", "reasons"),
    [
        ("1.27.9", ["CRI-O is 1.27.9; at least 1.28 is needed, which takes CDI devices from the kubelet"]),
        ("1.28.0", []),
        ("1.36.3", []),
    ],
)
def test_cri_o_with_a_driver_of_the_hosts_own(version, reasons):
    nodes = cluster_nodes("a")
    nodes["a"]["status"]["nodeInfo"]["containerRuntimeVersion"] = "cri-o://" + version
    verdict = only(host("a", driver_source="preinstalled"), nodes=nodes)
    assert verdict.reasons == reasons


def test_a_newer_kubelet_is_only_noted():
    nodes = cluster_nodes("a")
    nodes["a"]["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.0"
    verdict = only(host("a"), nodes=nodes)
    assert verdict.status == "ready"
    assert "newer than MindCluster supports" in verdict.notes[0]


def test_cgroup_v1_is_only_noted():
    """A kubelet of 1.35 refuses it unless it is configured not to; this one runs, so it is configured so."""
    nodes = cluster_nodes("a")
    nodes["a"]["status"]["nodeInfo"]["kubeletVersion"] = "v1.35.4"
    verdict = only(host("a", facts(boot_id="boot-a", cgroup_version=1)), nodes=nodes)
    assert verdict.status == "ready"
    assert "unless failCgroupV1 is false" in verdict.notes[-1]


@pytest.mark.parametrize(
    "versions, apart",
    [
        (["v1.33.0", "v1.34.4"], True),
        (["v1.34.4", "v1.32.9"], False),
        (["v1.33.1+k3s1"], True),
        (["v1.34.4", None], False),
        ([], False),
    ],
)
def test_kubelets_that_tell_pods_apart(versions, apart):
    """One that does not would refuse the plugin: its right counts for all nodes."""
    nodes = [{"status": {"nodeInfo": {"kubeletVersion": version}}} for version in versions]
    assert node_checks.kubelets_tell_pods_apart(nodes) is apart


def test_only_new_nodes_wait_to_be_accepted():
    nodes = {**cluster_nodes("a"), **cluster_nodes("b", labels={"npuops.ascend/chip": "910B"})}
    new, old = judge([host("a", install_gate="2"), host("b", install_gate="2")], nodes)
    assert (new.result()["gate"], old.result()["gate"]) == (2, 0)
    assert new.line().endswith("; pods wait until npuops.ascend.accept has accepted it at level 2") and "wait" not in old.line()


def test_nodes_that_serve_with_the_components_of_others_do_not_wait():
    nodes = cluster_nodes("a")
    (verdict,) = judge([host("a", install_gate=1)], nodes, adopting=True)
    assert verdict.result()["gate"] == 0 and "wait" not in verdict.line()


@pytest.mark.parametrize("gate", [4, -1, "often", True])
def test_a_gate_that_is_no_level(gate):
    verdict = only(host("a", install_gate=gate))
    assert verdict.reasons == ["npu_install_gate is %r; it must be a whole number, 0 to 3" % gate]
