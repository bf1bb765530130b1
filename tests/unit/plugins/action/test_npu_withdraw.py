# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with an API server behind it."""

from __future__ import annotations

import types

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.npuops.ascend.plugins.action.npu_withdraw import ActionModule
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._adopt import left_daemonset
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.kube.adoption_stub import THEIR_LABELS, their_plugin
from support.kube.eviction_stub import CLAIMS, PODS, SLICES, EvictionApi, claim, holding, pod, resource_slice
from support.kube.stub import node

NODES = "/api/v1/nodes"
CHIP = "node.kubernetes.io/npu.chip.name"


@pytest.fixture(name="api")
def fixture_api():
    with EvictionApi() as server:
        yield server


def run(api, check_mode=False, diff=False, labels=(), **options):
    api.put(NODES, node("node-a", labels={CHIP: "910B3", **dict(labels)}))
    action = ActionModule.__new__(ActionModule)
    action._task = types.SimpleNamespace(check_mode=check_mode, diff=diff)
    host = {"name": "host-a", "facts": {}, "config": {"node_name": "node-a"}}
    checked = ArgumentSpecValidator(dict(kube_client.AUTH_ARG_SPEC, **ActionModule.ARGUMENTS)).validate(
        dict(options, hosts=[host], host=api.address, api_key="token"))  # fmt: skip
    assert not checked.error_messages
    return action.act(checked.validated_parameters)


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_the_device_plugin_wrote_is_left_and_told_by_inventory_name(api, check_mode):
    result = run(api, check_mode)
    assert result["changed"] is False
    assert list(result["left"]) == ["host-a"] and CHIP in result["left"]["host-a"][0]
    assert api.objects[NODES]["node-a"]["metadata"]["labels"] == {CHIP: "910B3"}


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_the_device_plugin_wrote_is_removed_where_that_is_asked_for(api, check_mode):
    result = run(api, check_mode, device_plugin_labels=True)
    assert (result["changed"], result["left"]) == (True, {})
    assert result["msg"] == "remove %s from node node-a" % CHIP
    assert api.objects[NODES]["node-a"]["metadata"]["labels"] == ({CHIP: "910B3"} if check_mode else {})


def test_the_diff_names_what_goes(api):
    would_go = run(api, True, True, device_plugin_labels=True)["diff"]
    assert would_go == {"before": {"to_remove": ["remove %s from node node-a" % CHIP]}, "after": {}}
    assert run(api, True, True)["diff"] == {"before": {}, "after": {}}


def test_pods_that_hold_npus_by_a_claim_use_them(api):
    api.put(PODS, holding(pod("job", node="node-a"), "mine"), holding(pod("web", node="node-a"), "net"))
    api.put(CLAIMS, claim("mine"), claim("net", driver="net.example.com"))
    api.put(SLICES, resource_slice())
    with pytest.raises(NpuError, match="pods use its NPUs: train/job. Delete them"):
        run(api)
    with pytest.raises(NpuError, match="pods use its NPUs: train/web. Delete them"):
        run(api, settings={"pod_deletion": {"dra_drivers": "net.example.com"}})


def test_pods_that_may_hold_npus_by_a_claim(api):
    """The user may not list the claims, so whose devices they are is unknown."""
    api.put(PODS, holding(pod("job", node="node-a"), "mine"), holding(pod("web", node="node-b"), "net"))
    api.put(CLAIMS, claim("mine"))
    forbidden = 'User "x" cannot list resource "resourceclaims" in API group "resource.k8s.io" at the cluster scope'
    api.faults["GET", CLAIMS] = (403, "resourceclaims.resource.k8s.io is forbidden: " + forbidden)
    with pytest.raises(NpuError) as caught:
        run(api)
    assert (
        'host-a: pods may use its NPUs: train/job (pods hold ResourceClaims, but the Kubernetes user may not "list" on'
        ' "resourceclaims.resource.k8s.io"' in str(caught.value)
    )
    assert "npu_uninstall_force: true continues anyway" in str(caught.value)
    assert run(api, force=True)["done"] == []


def test_a_node_that_was_adopted_is_given_back_first(api):
    """Otherwise the DaemonSet that adoption has set aside would run nowhere for ever, unnoticed."""
    theirs = their_plugin()
    theirs["metadata"].update(namespace="kube-system", uid="u", resourceVersion="1", generation=1)
    aside = left_daemonset.holding(theirs, left_daemonset.ASIDE)
    theirs["metadata"]["annotations"] = aside["metadata"]["annotations"]
    theirs["spec"]["template"]["spec"]["affinity"] = aside["spec"]["template"]["spec"]["affinity"]
    api.put("/apis/apps/v1/daemonsets", theirs)
    adopted = {**THEIR_LABELS, "npuops.ascend/adopted": "true"}
    name = "DaemonSet kube-system/ascend-device-plugin-daemonset-910"
    with pytest.raises(NpuError) as caught:
        run(api, labels=adopted)
    assert f"host-a: the node node-a was adopted from {name}. Delete the DaemonSet if" in str(caught.value)
    assert "Or give it back first: ansible-playbook npuops.ascend.adopt -e npu_adopt=true" in str(caught.value)
    (left,) = run(api, True, labels=adopted, force=True)["left_in_cluster"]
    assert left.startswith(f"{name} is kept off nodes by its node affinity, with the update strategy OnDelete")
    # The last node was never of theirs: nothing is in the way, but their owner has to know.
    assert run(api, True, labels={"npuops.ascend/adopted": "true"})["left_in_cluster"] == [left]
    api.put(NODES, node("node-b", labels={"npuops.ascend/components": "enabled"}))
    assert run(api, True)["left_in_cluster"] == []


@pytest.mark.parametrize(
    ("expression", "labels", "stays"),
    [
        (None, THEIR_LABELS, True),
        # The label that keeps it off also goes.
        (left_daemonset.MOVING, {**THEIR_LABELS, "npuops.ascend/adopted": "true"}, True),
        (left_daemonset.ASIDE, {**THEIR_LABELS, "npuops.ascend/adopted": "true"}, False),
        (None, {}, False),
    ],
)
def test_the_config_map_of_another_device_plugin_stays(api, expression, labels, stays):
    """After adopt has given the node back, schedulers read it, and that plugin writes it."""
    theirs = their_plugin()
    theirs["metadata"].update(namespace="kube-system", uid="u", resourceVersion="1", generation=1)
    if expression:
        theirs["spec"]["template"]["spec"]["affinity"] = left_daemonset.holding(theirs, expression)["spec"]["template"]["spec"][
            "affinity"
        ]
    api.put("/apis/apps/v1/daemonsets", theirs)
    api.put("/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "mindx-dl-deviceinfo-node-a"}})
    run(api, labels=labels, force=True)
    assert bool(api.objects["/api/v1/namespaces/kube-system/configmaps"]) is stays
