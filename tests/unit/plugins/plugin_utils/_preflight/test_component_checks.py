# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import foreign as mindcluster_foreign
from ansible_collections.npuops.ascend.plugins.plugin_utils._mindcluster import wanted_components
from ansible_collections.npuops.ascend.plugins.plugin_utils._preflight import component_checks

from support.fleet.preflight import plugin_daemonset


def test_a_device_plugin_behind_the_node_agent_is_one_too():
    daemonset = plugin_daemonset("/x", "kube-system", "/var/lib/npuops/device-plugins")
    assert len(component_checks.device_plugins([daemonset], "npu-operator")[1]) == 1


def agent_reasons(**settings):
    return component_checks.agent_reasons(wanted_components.of({"node_agent": settings})["node_agent"])


def test_the_node_agent_needs_an_image():
    assert "npu_node_agent_image is not set" in agent_reasons(image="")[0]
    assert agent_reasons(image="registry.example/agent:1") == []


def test_a_probe_of_the_node_agent_ends_before_the_next_one():
    (reason,) = agent_reasons(image="registry.example/agent:1", probe_interval="6")
    assert "timeout is 30 and npu_node_agent_probe_interval 6:" in reason
    assert agent_reasons(image="registry.example/agent:1", probe_interval=6, probe_timeout=5) == []
    (reason,) = agent_reasons(image="registry.example/agent:1", probe_interval="often")
    assert reason == "npu_node_agent_probe_interval is 'often'; it must be a whole number, 0 or more"


@pytest.mark.parametrize("value, wanted", [(True, True), ("yes", True), ("", False), ("false", False), ("perhaps", False)])
def test_whether_chips_are_tainted(value, wanted):
    """What makes no sense is told as a reason."""
    assert component_checks.device_taints({"device_taints": value}) is wanted
    assert bool(agent_reasons(image="registry.example/agent:1", device_taints=value)) is (value == "perhaps")
    assert component_checks.device_taints({}) is False


@pytest.mark.parametrize("value", ["1", "25", "1%", "100%"])
def test_nodes_at_once(value):
    assert component_checks.rollout_reasons(value) == []


@pytest.mark.parametrize("value", [None, "", "0", "-1", "1.5", "0%", "101%", "10 %", "10%%", "%", "ten", "\u0661"])
def test_nodes_at_once_that_cannot_be(value):
    (reason,) = component_checks.rollout_reasons(value)
    assert reason.startswith("npu_rollout_max_unavailable is %s: " % json.dumps(value)) and "such as 10%" in reason


def test_another_device_plugin():
    ours, reasons = component_checks.device_plugins([plugin_daemonset("/x"), plugin_daemonset("/x", "kube-system")], "npu-operator")
    assert [daemonset["metadata"]["namespace"] for daemonset in ours] == ["npu-operator"]
    assert len(reasons) == 1
    assert "Move the nodes with npuops.ascend.adopt, or delete it" in reasons[0]


def test_a_device_plugin_that_is_adopted():
    """While nodes move from it, only adoption goes on; when it runs nowhere, it does not block an install."""
    daemonset = plugin_daemonset("/x", "kube-system")
    assert component_checks.device_plugins([daemonset], "npu-operator", adopting=True) == ([], [])
    daemonset["metadata"].update(annotations={"npuops.ascend/adoption": "{}"}, generation=2)
    daemonset["status"] = {"observedGeneration": 2, "desiredNumberScheduled": 1}
    _ours, (reason,) = component_checks.device_plugins([daemonset], "npu-operator")
    assert "nodes are being moved away from the device plugin" in reason and "Continue with npuops.ascend.adopt" in reason
    daemonset["status"]["desiredNumberScheduled"] = 0
    assert len(component_checks.device_plugins([daemonset], "npu-operator")[1]) == 1, "its last node may come back"
    required = {"nodeSelectorTerms": [{"matchExpressions": [mindcluster_foreign.ASIDE]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    daemonset["spec"]["template"]["spec"]["affinity"] = affinity
    assert component_checks.device_plugins([daemonset], "npu-operator") == ([], [])


OWNER = {"apiVersion": "npu.openfuyao.com/v1", "kind": "NPUClusterPolicy", "name": "cluster", "uid": "u", "controller": True}
KEPT = [
    ({"ownerReferences": [OWNER]}, "NPUClusterPolicy cluster"),
    ({"annotations": {"argocd.argoproj.io/tracking-id": "npu:apps/DaemonSet:x/y"}}, "the Argo CD application npu"),
    ({"labels": {"kustomize.toolkit.fluxcd.io/name": "npu"}}, "the Flux Kustomization npu"),
    ({"labels": {"helm.toolkit.fluxcd.io/name": "npu"}}, "the Flux HelmRelease npu"),
]


@pytest.mark.parametrize(("metadata", "keeper"), KEPT)
@pytest.mark.parametrize("namespace", ["npu-operator", "kube-system"])
def test_a_device_plugin_that_a_controller_keeps(metadata, keeper, namespace):
    """To delete it would not help, nor to take it over."""
    daemonset = plugin_daemonset("/x", namespace)
    daemonset["metadata"].update(metadata)
    _ours, (reason,) = component_checks.device_plugins([daemonset], "npu-operator")
    assert "by %s" % keeper in reason and "remove it from that" in reason and "npu_namespace" not in reason


def test_a_device_plugin_that_helm_has_deployed():
    daemonset = plugin_daemonset("/x", "kube-system")
    daemonset["metadata"]["annotations"] = {"meta.helm.sh/release-name": "cluster"}
    _ours, (reason,) = component_checks.device_plugins([daemonset], "npu-operator")
    assert "Uninstall it with the Helm release cluster, or move the nodes with npuops.ascend.adopt" in reason
    daemonset["metadata"]["namespace"] = "npu-operator"
    assert component_checks.device_plugins([daemonset], "npu-operator") == ([daemonset], [])


def test_what_is_told_of_who_keeps_it_is_bounded():
    daemonset = plugin_daemonset("/x", "kube-system")
    daemonset["metadata"]["ownerReferences"] = [dict(OWNER, name="a\nb" + "c" * 10000)]
    _ours, (reason,) = component_checks.device_plugins([daemonset], "npu-operator")
    assert len(reason) < 500 and "\n" not in reason
