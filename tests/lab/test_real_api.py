# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the real API server says of a webhook that is down, and of who cordoned a node: unit tests have it from a stub."""

from __future__ import annotations

import json
import threading
import time

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, node_drain
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.api_watch import Watch
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import Clock, RetryingCluster
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import record as maintenance_record

from support.kube.api import KubeApi
from support.lab.workloads import Team

TEAM, NODE = "webhook-test", "npu-a"
# What a run watches while it waits.
WATCHED = [
    ("/api/v1/nodes", "metadata.name=" + NODE),
    ("/api/v1/pods", "spec.nodeName=" + NODE),
    ("/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases", "metadata.name=npu-maintenance"),
]


@pytest.fixture
def team(lab):
    with Team(lab, TEAM) as one:
        yield one


@pytest.fixture
def guarded(lab, team):
    """Evictions in the team's namespace are decided by a service that is not there."""
    team.deploy("guarded", node=NODE)
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/eviction"],
        "scope": "Namespaced",
    }
    webhook = {
        "name": "guard.example.com",
        "rules": [rule],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": TEAM, "name": "gone"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": TEAM}},
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": TEAM},
        "webhooks": [webhook],
    }
    lab.kubectl("apply", "-f", "-", stdin=json.dumps(configuration))
    yield
    lab.kubectl("delete", "validatingwebhookconfiguration", TEAM, "--ignore-not-found")


@pytest.fixture
def said():
    return []


@pytest.fixture
def drain(lab, said):
    """The drain of a maintenance, which takes its time; only the team's pods are looked at."""
    cluster = RetryingCluster(kube_client.connect({"kubeconfig": str(lab.controller_kubeconfig)}), said.append, Clock())
    policy = drain_policy.DrainPolicy.of(drain={"timeout": 15, "skip_selector": "app!=guarded"})
    return node_drain.Drain(cluster, NODE, policy, say=said.append)


def until(what, seconds=60):
    """A webhook counts a moment after it was made."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.core
def test_a_webhook_that_is_down_is_a_blocker_and_no_outage(guarded, drain, said):
    until(drain.simulate)
    (blocker,) = drain.simulate()
    assert blocker.kind == pod_blocker.FAILING and blocker.pod.label.startswith(TEAM + "/guarded-")
    assert 'failed calling webhook "guard.example.com"' in blocker.why
    with pytest.raises(pod_blocker.Blocked, match='is not drained after 15 s: .*failed calling webhook "guard.example.com"'):
        drain.evict_others()
    assert not [sentence for sentence in said if "Trying again" in sentence]


def test_it_goes_on_when_the_webhook_is_mended(lab, guarded, drain):
    until(drain.simulate)
    lab.kubectl("delete", "validatingwebhookconfiguration", TEAM)
    until(lambda: not drain.simulate())


class Watchful(Clock):
    """Its owner waits by a watch: without one it would sleep."""

    @staticmethod
    def sleep(seconds):
        assert seconds == 0


@pytest.mark.core
@pytest.mark.parametrize("path, selector", WATCHED)
def test_the_account_of_the_playbooks_may_watch(lab, path, selector):
    cluster = kube_client.connect({"kubeconfig": str(lab.controller_kubeconfig)})
    watch = Watch(cluster, Watchful(), path, field_selector=selector)
    watch.read(lab.api.get(path)["metadata"]["resourceVersion"])
    watch.wait(3600, 0, 0)
    watch.end()


@pytest.mark.core
def test_a_watch_ends_a_wait(lab):
    path, selector = WATCHED[0]
    watch = Watch(kube_client.connect({"kubeconfig": str(lab.controller_kubeconfig)}), Watchful(), path, field_selector=selector)

    def annotate(value):
        lab.api.patch(f"{path}/{NODE}", {"metadata": {"annotations": {"example.com/watched": value}}})

    change = threading.Timer(0.5, annotate, ["yes"])
    change.start()
    try:
        while "example.com/watched" not in watch.list()[0]["metadata"].get("annotations", {}):
            assert watch.wait(3600, 0, 60), "the server has not reported the change"
    finally:
        change.join()
        annotate(None)
        watch.end()


@pytest.mark.core
def test_who_cordoned_a_node(lab):
    """What our own patch and kubectl leave in managedFields is what whose cordon it is goes by."""
    api, path = KubeApi(lab.kubeconfig), "/api/v1/nodes/" + NODE
    ours = f"{path}?fieldManager={maintenance_record.CORDON_MANAGER}"
    before = api.get(path)["metadata"].get("annotations", {}).get(maintenance_record.ANNOTATION_LAST)
    left = json.dumps({"run": "r", "generation": 1, "times": {"left-cordoned": "2026-01-01T00:00:00Z"}})
    try:
        api.patch(ours, {"metadata": {"annotations": {maintenance_record.ANNOTATION_LAST: left}}, "spec": {"unschedulable": True}})
        assert maintenance_record.cordoned_by(api.get(path)) == maintenance_record.CORDON_MANAGER
        assert maintenance_record.left_cordoned(api.get(path))
        # Setting what is set takes nothing over.
        lab.kubectl("cordon", NODE)
        assert maintenance_record.cordoned_by(api.get(path)) == maintenance_record.CORDON_MANAGER
        lab.kubectl("uncordon", NODE)
        assert maintenance_record.cordoned_by(api.get(path)) is None
        lab.kubectl("cordon", NODE)
        node = api.get(path)
        assert maintenance_record.cordoned_by(node).startswith("kubectl") and not maintenance_record.left_cordoned(node)
        # Nor does a write of ours while it is theirs.
        api.patch(ours, {"spec": {"unschedulable": True}})
        assert not maintenance_record.left_cordoned(api.get(path))
    finally:
        api.patch(
            ours, {"metadata": {"annotations": {maintenance_record.ANNOTATION_LAST: before}}, "spec": {"unschedulable": None}}
        )
