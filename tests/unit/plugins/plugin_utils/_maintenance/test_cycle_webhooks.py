# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a broken admission webhook does to one node's maintenance: it is in the way of one object, and no outage.

Pods, budgets and Events come over HTTP from a stub that fails as the API server does; Node, Lease and host are in memory.
"""

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import smoke_pod
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client

from support.fleet.fake_fleet import EVENTS, OLD
from support.fleet.maintenance_bench import COMPONENTS, RECORD, STATE
from support.kube.eviction_stub import BUDGETS, PODS, pod
from support.kube.stub import NO_ANSWER, WEBHOOK_DOWN

SMOKE_PODS = "/api/v1/namespaces/train/pods"
SMOKE = smoke_pod.read("{apiVersion: v1, kind: Pod, metadata: {name: smoke, namespace: train}, spec: {containers: []}}")


def with_smoke_pod(bench, timeout=100):
    clock = bench.world.clock
    bench.smoke = lambda patient, beat, say: smoke_pod.SmokePod(patient, "npu-a", SMOKE, timeout, beat, say, clock)


def ready(api, bench):
    """The smoke pod succeeds two seconds after it was made, whenever that is."""

    def look():
        for item in api.objects.get(SMOKE_PODS, {}).values():
            item["status"] = {"phase": "Succeeded"}
        bench.world.clock.at(2, look)

    look()


def refuse(api, name="web", answer=WEBHOOK_DOWN):
    api.refuse[name] = (answer[0], {"kind": "Status", "message": answer[1], "code": answer[0]})


@pytest.mark.parametrize("answer", [WEBHOOK_DOWN, NO_ANSWER])
def test_a_dry_run_that_fails_defers_the_node_at_once(api, bench, answer):
    api.put(PODS, pod("web", node="npu-a"))
    refuse(api, answer=answer)
    started = bench.world.clock.now()
    outcome = bench.run()
    assert outcome["outcome"] == "deferred" and bench.world.clock.now() - started < 10
    assert "the pod train/web (ReplicaSet train/web-5d4f) cannot be evicted" in outcome["reason"]
    assert [entry["pod"] for entry in outcome["blockers"]] == ["train/web"]
    if answer is WEBHOOK_DOWN:
        assert 'failed calling webhook "guard.example.com"' in outcome["blockers"][0]["text"]
    bench.assert_nothing_left()
    assert bench.labels[STATE] == "upgrade-required" and bench.host.boots == 0


def test_a_webhook_that_hangs_is_not_asked_for_every_pod(api, bench):
    api.put(PODS, *[pod("web-%d" % number, node="npu-a") for number in range(20)])
    for number in range(20):
        refuse(api, "web-%d" % number)
    assert bench.run()["outcome"] == "deferred"
    assert len([path for _method, path in api.requests if path.endswith("/eviction")]) <= 3


def test_an_eviction_that_fails_is_tried_for_as_long_as_the_drain_may_last(api, bench):
    """And then the node is given back, with the reason; the run goes on to the next one."""
    api.put(PODS, pod("web", node="npu-a"))
    bench.world.on_write = lambda _path, body: body.get("spec", {}).get("unschedulable") and refuse(api)
    started = bench.world.clock.now()
    outcome = bench.run()
    assert outcome["outcome"] == "deferred"
    assert "web-5d4f) cannot be evicted: The Kubernetes API" in outcome["reason"]
    assert 'failed calling webhook "guard.example.com"' in outcome["reason"]
    assert 120 <= bench.world.clock.now() - started < 150
    assert not any("Trying again" in sentence for _step, sentence in bench.said)
    bench.assert_nothing_left()
    assert bench.labels[COMPONENTS] == "enabled" and bench.host.boots == 0


def test_a_webhook_that_comes_back_in_time(api, bench):
    api.put(PODS, pod("web", node="npu-a"))
    bench.world.on_write = lambda _path, body: body.get("spec", {}).get("unschedulable") and refuse(api)
    bench.world.clock.at(60, lambda: (setattr(bench.world, "on_write", lambda *_args: None), api.refuse.clear()))
    assert bench.run()["outcome"] == "done"
    assert api.evicted == ["web"]
    bench.assert_upgraded()


def test_many_evictions_that_hang_keep_to_the_limit_too(api, bench):
    """Each takes half a minute to fail."""
    clock = bench.world.clock
    names = ["web-%d" % number for number in range(40)]
    api.put(PODS, *[pod(name, node="npu-a") for name in names])
    usual = api.answer

    def slow(method, path, query, body):
        if path.endswith("/eviction") and not query.get("dryRun"):
            clock.sleep(29)
            return NO_ANSWER
        return usual(method, path, query, body)

    api.answer = slow
    started = clock.now()
    assert bench.run()["outcome"] == "deferred"
    assert clock.now() - started < 120 + 60
    bench.assert_nothing_left()


def test_a_smoke_pod_that_a_webhook_refuses_has_failed(api, bench):
    with_smoke_pod(bench)
    api.faults["POST", SMOKE_PODS] = WEBHOOK_DOWN
    outcome = bench.run()
    assert outcome["outcome"] == "failed"
    assert "the smoke pod train/smoke-" in outcome["reason"] and 'webhook "guard.example.com"' in outcome["reason"]
    assert bench.host.driver == bench.host.good == OLD and RECORD not in bench.annotations and not bench.cordoned


def test_a_smoke_pod_whose_webhook_comes_back(api, bench):
    with_smoke_pod(bench)
    ready(api, bench)
    api.faults["POST", SMOKE_PODS] = WEBHOOK_DOWN
    mended = []

    def mend():
        if bench.host.boots:
            mended.append(bench.world.clock.at(60, api.faults.clear))
        else:
            bench.world.clock.at(5, mend)

    mend()
    assert bench.run()["outcome"] == "done" and mended
    bench.assert_upgraded()
    assert api.objects[SMOKE_PODS] == {}


def test_a_smoke_pod_that_cannot_be_removed_has_run_all_the_same(api, bench):
    with_smoke_pod(bench)
    ready(api, bench)
    path = "%s/%s" % (SMOKE_PODS, smoke_pod.for_node(SMOKE, "npu-a")["metadata"]["name"])
    api.faults["DELETE", path] = WEBHOOK_DOWN
    assert bench.run()["outcome"] == "done"
    bench.assert_upgraded()
    assert any("stays: " in sentence and "guard.example.com" in sentence for _step, sentence in bench.said)


def test_what_an_earlier_run_left_cannot_be_removed(api, bench):
    """The outcome of that pod is no verdict on this driver."""
    with_smoke_pod(bench)
    left = smoke_pod.for_node(SMOKE, "npu-a")
    left["status"] = {"phase": "Succeeded"}
    api.put(SMOKE_PODS, left)
    api.faults["DELETE", "%s/%s" % (SMOKE_PODS, left["metadata"]["name"])] = WEBHOOK_DOWN
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "guard.example.com" in outcome["reason"]
    assert bench.host.good == OLD


def test_an_event_that_cannot_be_written_keeps_nobody(api, bench):
    api.faults["POST", EVENTS] = WEBHOOK_DOWN
    api.put(BUDGETS)
    assert bench.run(auto=False)["outcome"] == "awaiting-approval"
    assert bench.labels[STATE] == "approval-required"
    assert any("no Event" in sentence and "guard.example.com" in sentence for _step, sentence in bench.said)


def test_pods_that_cannot_be_listed_give_the_node_back(api, bench):
    api.put(PODS, pod("web", node="npu-a"))

    def after_the_cordon(_path, body):
        if body.get("spec", {}).get("unschedulable"):
            api.faults["GET", PODS] = (500, "etcdserver: request timed out")

    bench.world.on_write = after_the_cordon
    outcome = bench.run()
    assert outcome["outcome"] == "failed" and "etcdserver" in outcome["reason"]
    bench.assert_nothing_left()


def test_an_outage_still_is_one(api, bench):
    """No answer to a Node either: waited for, and then the run ends, as before."""
    api.put(PODS, pod("web", node="npu-a"))
    bench.world.on_write = lambda _path, body: (
        body.get("spec", {}).get("unschedulable") and setattr(bench.world, "dark_until", bench.world.clock.now() + 10_000)
    )
    with pytest.raises(kube_client.NpuError, match="run again to continue it") as caught:
        bench.run()
    assert caught.value.details["api_unreachable"]
