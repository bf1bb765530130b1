# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver and the MindCluster that the cluster runs, as the images of its pods tell."""

from __future__ import annotations

import pytest

from support.fleet.hosts import NEW, NEW_DIGEST, host, release
from support.fleet.planning import backward, make, nodes_of, only
from support.kube.eviction_stub import pod

ADVICE = (
    'Set npu_mindcluster_version_line: "26.1", which supports it, and run npuops.ascend.install first if this run leaves the '
    "components"
    " unchanged (https://"
)


def component(tag, node="a", daemonset="ascend-device-plugin-daemonset", namespace="npu-operator"):
    made = pod("%s-%s" % (daemonset, node), node=node, owner=("DaemonSet", daemonset), namespace=namespace)
    made["spec"]["containers"][0]["image"] = "registry.example/mirror/image" + tag
    return made


def wants(version, name="a", **changes):
    return host(name, config={"driver_version": version}, **changes)


def refusals(entry):
    return [reason for reason in entry.reasons if ADVICE in reason]


@pytest.mark.parametrize("daemonset", ["ascend-device-plugin-daemonset", "ascend-device-plugin310p-daemonset", "npu-exporter"])
@pytest.mark.parametrize(
    ("tag", "driver", "refused"),
    [
        (":v7.3.2", "25.5.2", False),
        (":v7.3.2", "26.0.0", True),
        (":v7.3.0", "26.1.0", True),
        (":v26.0.1", "26.0.0", False),
        (":v26.0.1", "26.1.0", True),
        (":v26.1.0", "26.1.0", False),
        (":v26.1.0", "25.5.2", False),
        ("@sha256:" + "ab" * 32, "26.1.0", False),
    ],
)
def test_a_driver_that_the_running_mindcluster_does_not_support(daemonset, tag, driver, refused):
    entry = only(wants(driver), pods=[component(tag, daemonset=daemonset)])
    assert (entry.verdict, len(refusals(entry))) == (("blocked", 1) if refused else ("ready", 0))


def test_it_is_the_own_pod_that_counts():
    """While MindCluster itself is changed, one node has the new version line and another the old one."""
    pods = [component(":v26.1.0", "a"), component(":v7.3.2", "b")]
    plan = make([wants("26.0.0", "a"), wants("26.0.0", "b")], pods=pods)
    assert [entry.verdict for entry in plan.entries] == ["ready", "blocked"]


def test_a_node_whose_pod_is_gone_is_judged_by_the_others():
    plan = make([wants("26.0.0", "a"), wants("26.0.0", "b")], pods=[component(":v7.3.2", "b")])
    assert [entry.verdict for entry in plan.entries] == ["blocked", "blocked"]


def test_pods_of_others_do_not_count():
    pods = [component(":v7.3.2", namespace="kube-system"), component(":v7.3.2", daemonset="npu-node-agent")]
    assert only(wants("26.0.0"), pods=pods).verdict == "ready"


def test_nothing_keeps_a_node_from_going_back_nor_from_a_reboot():
    entry = only(backward(), reason="rollback", pods=[component(":v26.9.0")])
    assert entry.verdict == "ready" and any("nothing is known of MindCluster 26.9" in note for note in entry.notes)
    loaded = release("26.0.0", NEW_DIGEST)
    requested = nodes_of("a", labels={"npuops.ascend/maintenance-requested": "true"})
    entry = only(wants("26.0.0", loaded=loaded), nodes=requested, pods=[component(":v7.3.2")])
    assert entry.verdict == "ready" and any(ADVICE in note for note in entry.notes)


def test_an_image_without_a_release_is_told():
    plan = make([wants(NEW)], pods=[component(":latest")])
    assert plan.green
    assert plan.cluster_notes == [
        "the tags of MindCluster's images name no release (a); whether it supports the driver was not checked there"
    ]
    assert make([wants(NEW)], pods=[component(":v26.1.0")]).cluster_notes == []


def test_the_advice_is_followed():
    """With the version line that the message names, the upgrade changes the components first; or install has, where this run may
    not."""
    pods = [component(":v7.3.2")]
    (reason,) = refusals(only(wants("26.0.0"), pods=pods))
    assert 'Set npu_mindcluster_version_line: "26.1"' in reason
    changes = ["change DaemonSet npu-operator/ascend-device-plugin-daemonset"]
    plan = make([wants("26.0.0")], pods=pods, components={"version_line": "26.1", "changes": changes})
    assert plan.green and plan.result()["components"]["order"] == "before"
    assert make([wants("26.0.0")], pods=[component(":v26.1.0")]).green
