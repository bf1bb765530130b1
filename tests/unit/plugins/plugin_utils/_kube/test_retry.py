# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a pause is, and what is an outage of the API server. What comes of an outage is in test_cycle.py."""

from __future__ import annotations

import types

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube.retry import RetryingCluster, gather_seconds, pause_after

from support.fleet.fake_fleet import Clock
from support.kube.stub import NO_ANSWER, WEBHOOK_DOWN, node

NODES = "/api/v1/nodes"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases/npu-maintenance"
POD = "/api/v1/namespaces/train/pods/web"
EVICTION = POD + "/eviction"


@pytest.mark.parametrize(("waited", "pause"), [(0, 1), (10, 1), (40, 2), (60, 3), (100, 5), (100000, 5)])
def test_a_pause_grows_with_what_was_waited(waited, pause):
    assert pause_after(waited) == pause


@pytest.mark.parametrize(("at_once", "pause"), [(1, 1), (20, 1), (50, 2.5), (100, 5), (1000, 5)])
def test_many_that_wait_look_seldom(at_once, pause):
    assert pause_after(0, at_once=at_once) == pause


@pytest.mark.parametrize(("at_once", "pause"), [(1, 0.2), (20, 1), (50, 2.5)])
def test_changes_are_gathered_for_longer_where_many_wait(at_once, pause):
    assert gather_seconds(at_once) == pause


def test_few_looks_at_a_long_wait():
    waited = looks = 0
    while waited < 600:
        waited += pause_after(waited)
        looks += 1
    assert looks < 160


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def said():
    return []


@pytest.fixture
def patient(api, cluster, clock, said):
    api.put(NODES, node("a"))
    return RetryingCluster(cluster, said.append, clock)


@pytest.mark.parametrize(
    ("method", "path", "longest"), [("post", EVICTION, 0), ("post", POD, 60), ("get", POD, 60), ("patch", POD, 60)]
)
@pytest.mark.parametrize("fault", [WEBHOOK_DOWN, (503, "etcdserver: leader changed"), NO_ANSWER])
def test_one_object_that_fails_is_no_outage(api, patient, clock, said, method, path, longest, fault):
    api.faults[method.upper(), path] = fault
    started = clock.now()
    with pytest.raises(kube_client.Failing):
        patient.request(method, path, body={"metadata": {"name": "x"}})
    assert clock.now() - started <= longest
    assert said == []


def test_the_servers_words_and_the_webhook_are_told(api, patient):
    api.faults["POST", EVICTION] = WEBHOOK_DOWN
    with pytest.raises(kube_client.Failing) as caught:
        patient.request("post", EVICTION, body={"metadata": {"name": "x"}})
    assert 'failed calling webhook "guard.example.com"' in caught.value.message
    assert "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations" in caught.value.message


def test_a_request_without_an_answer_is_told_as_what_it_is(api, patient):
    api.faults["POST", EVICTION] = NO_ANSWER
    with pytest.raises(kube_client.Failing, match="answers other requests, but not POST %s" % EVICTION):
        patient.request("post", EVICTION, body={"metadata": {"name": "x"}})


def test_a_failure_that_passes_is_waited_for(api, patient, clock):
    api.put("/api/v1/namespaces/train/pods", {"metadata": {"name": "web"}})
    api.faults["GET", POD] = (500, "etcdserver: request timed out")
    clock.at(10, api.faults.clear)
    assert patient.get(POD)["metadata"]["name"] == "web"


@pytest.mark.parametrize("path", [EVICTION, POD, NODES + "/a", LEASE])
@pytest.mark.parametrize("fault", [(503, "etcdserver: no leader"), NO_ANSWER])
def test_an_outage_is_waited_for(api, patient, clock, said, path, fault):
    """Requests for Node and Lease also fail, or are the request itself."""
    method = "post" if path == EVICTION else "get"
    api.faults.update({("GET", NODES): fault, (method.upper(), path): fault})
    clock.at(300, api.faults.clear)
    collection, _slash, name = path.rpartition("/")
    if method == "get":
        api.put(collection, node(name))
    patient.request(method, path, body={"metadata": {"name": "x"}} if method == "post" else None)
    assert clock.now() - 1_700_000_000 >= 300
    assert ["answers again" in sentence for sentence in said] == [False, True]


@pytest.mark.parametrize("path", [NODES + "/a", LEASE])
def test_node_and_lease_decide(api, patient, clock, path):
    api.faults["GET", path] = (500, "Internal error occurred")
    with pytest.raises(kube_client.Unreachable):
        patient.get(path)
    assert clock.now() - 1_700_000_000 >= 600


def test_a_budget_that_forbids_is_an_answer(api, patient, clock):
    api.faults["POST", EVICTION] = (429, "Cannot evict pod as it would violate the pod's disruption budget.")
    with pytest.raises(kube_client.TooManyRequests):
        patient.request("post", EVICTION, body={"metadata": {"name": "x"}})
    assert clock.now() == 1_700_000_000


MAY_NOT = 'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope'
STARTING = 'nodes "a" is forbidden: not yet ready to handle request'


@pytest.mark.parametrize("fault", [(401, "Unauthorized"), (403, MAY_NOT), (403, STARTING)])
def test_who_is_in_the_middle_of_something_waits_for_what_is_denied(api, cluster, clock, said, fault):
    """As for seconds by an API server that has just started."""
    inside = RetryingCluster(cluster, said.append, clock, denial_retry_seconds=60)
    api.put(NODES, node("a"))
    api.faults["GET", NODES] = fault
    clock.at(20, api.faults.clear)
    assert len(inside.list(NODES)) == 1
    assert len(said) == 1 and said[0].endswith("Trying again for 60 s")


def test_what_is_denied_for_good_is_waited_for_once(api, cluster, clock, said):
    inside = RetryingCluster(cluster, said.append, clock, denial_retry_seconds=60)
    api.faults["GET", NODES] = (403, MAY_NOT)
    for waited in (60, 60):
        with pytest.raises(NpuError, match='Allow "list" on "nodes"'):
            inside.list(NODES)
        assert waited <= clock.now() - 1_700_000_000 < waited + 10


def test_who_is_in_the_middle_of_nothing_does_not(api, patient, clock):
    api.faults["GET", NODES] = (401, "Unauthorized")
    with pytest.raises(kube_client.Unauthorized):
        patient.list(NODES)
    assert clock.now() == 1_700_000_000


@pytest.mark.parametrize(("value", "seconds"), [("10", 10), ("\u00b2", None), ("9" * 5000, None), ("soon", None), ("", None)])
def test_when_to_try_again_is_a_number_or_nothing(value, seconds):
    exc = types.SimpleNamespace(headers={"Retry-After": value})
    assert kube_client._retry_after(exc) == seconds
