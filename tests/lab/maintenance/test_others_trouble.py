# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the real API server says when somebody else's webhook is broken, and of who cordoned a node."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils import _maintenance
from kube_api import KubeApi
from observer import STATE, VERSION
from rollout import OTHER, proof, run, version_of, watch
from workloads import Team

TEAM = "webhook-test"


@pytest.fixture
def team(idle):
    with Team(idle, TEAM) as one:
        yield one


@pytest.fixture
def broken_webhook(idle):
    """A function that has evictions in the team's namespace decided by a service that is not there."""

    def make(dry_runs: bool):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"], "scope": "Namespaced"}
        webhook = {
            "name": "guard.example.com", "rules": [rule], "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": TEAM, "name": "gone"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": TEAM}},
        }
        if not dry_runs:
            expression = "!has(request.dryRun) || !request.dryRun"
            webhook["matchConditions"] = [{"name": "really", "expression": expression}]
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": TEAM}, "webhooks": [webhook],
        }
        idle.kubectl("apply", "-f", "-", stdin=json.dumps(configuration))

    yield make
    idle.kubectl("delete", "validatingwebhookconfiguration", TEAM, "--ignore-not-found")


@pytest.mark.parametrize("dry_runs", [True, False], ids=["in the plan", "in the drain"])
def test_a_broken_webhook_keeps_one_node_and_ends_nothing(idle, team, broken_webhook, dry_runs):
    """It blocks its pod's node, by name; the other one is upgraded, and nothing waits for an API server that is there."""
    version = OTHER[version_of(idle, "npu-b")]
    team.deploy("guarded", node="npu-a")
    broken_webhook(dry_runs)
    with watch(idle) as observer, run(idle, "--limit=npu-a,npu-b", npu_driver_version=version, npu_upgrade_on_blocked="defer",
                                      npu_upgrade_drain={"timeout": 10}, npu_upgrade_canary=False) as one:
        status = one.wait()
        text = one.text
    assert status != 0, text[-4000:]
    assert f"{TEAM}/guarded" in text and 'failed calling webhook "guard.example.com"' in " ".join(text.replace('\\"', '"').split())
    assert "Trying again" not in text
    nodes = observer.now()
    assert nodes["npu-b"].labels.get(VERSION) == version
    assert not nodes["npu-a"].cordoned and not nodes["npu-a"].record and nodes["npu-a"].labels.get(STATE) == "upgrade-required"
    idle.kubectl("delete", "validatingwebhookconfiguration", TEAM)
    with watch(idle) as observer, run(idle, "--limit=npu-a,npu-b", npu_driver_version=version) as one:
        assert one.wait() == 0, one.text[-4000:]
    assert proof(idle, observer, {"npu-a": 1, "npu-b": 0}, version) == []


def test_who_cordoned_a_node(idle):
    """What our own patch and kubectl leave in managedFields is what whose cordon it is goes by."""
    api, path = KubeApi(idle.kubeconfig), "/api/v1/nodes/npu-a"
    ours = f"{path}?fieldManager={_maintenance.CORDON_MANAGER}"
    left = json.dumps({"run": "r", "generation": 1, "times": {"left-cordoned": "2026-01-01T00:00:00Z"}})
    try:
        api.patch(ours, {"metadata": {"annotations": {_maintenance.ANNOTATION_LAST: left}}, "spec": {"unschedulable": True}})
        assert _maintenance.left_cordoned(api.get(path))
        # Setting what is set takes nothing over.
        idle.kubectl("cordon", "npu-a")
        assert _maintenance.cordoned_by(api.get(path)) == _maintenance.CORDON_MANAGER
        idle.kubectl("uncordon", "npu-a")
        assert _maintenance.cordoned_by(api.get(path)) is None
        idle.kubectl("cordon", "npu-a")
        node = api.get(path)
        assert _maintenance.cordoned_by(node).startswith("kubectl") and not _maintenance.left_cordoned(node)
        # Nor does a write of ours while it is theirs.
        api.patch(ours, {"spec": {"unschedulable": True}})
        assert not _maintenance.left_cordoned(api.get(path))
    finally:
        api.patch(ours, {"metadata": {"annotations": {_maintenance.ANNOTATION_LAST: None}}, "spec": {"unschedulable": None}})
