# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that come back onto the cordoned node, because they tolerate the cordon, are evicted and not cut off by the reboot."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets, drain_policy, node_drain
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker

from support.fleet.fake_fleet import FakeCluster
from support.fleet.maintenance_bench import COMPONENTS, STATE, Bench
from support.kube.eviction_stub import pod


class Returns(Bench):
    """With real evictions of ``pods`` (by name). ``comes_back``: pod -> how often it does, ``after`` so many seconds, or as soon as
    a run has looked and found it gone."""

    def __init__(self, pods, comes_back=None, after=15, npus=8):
        super().__init__()
        self.objects = {name: pod(name, node="npu-a", npus=npus if name.startswith("train") else 0) for name in pods}
        self.comes_back, self.after, self.evicted, self.cut_off = dict(comes_back or {}), after, [], []
        self.waiting = []
        bench, clock = self, self.world.clock

        class Cluster(FakeCluster):
            def list(self, path, label_selector=None, field_selector=None):
                if path == "/api/v1/pods":
                    found = copy.deepcopy(list(bench.objects.values()))
                    if not found and bench.waiting:
                        bench.waiting.pop()()
                    return found
                return [] if path == disruption_budgets.PATH else super().list(path, label_selector)

            def each(self, path, label_selector=None, field_selector=None):
                return iter(self.list(path, label_selector, field_selector))

            def request(self, method, path, body=None, label_selector=None, dry_run=None, **more):
                if path.endswith("/eviction"):
                    if not dry_run:
                        bench.evict(body["metadata"]["name"])
                    return {}
                if method == "get":
                    return {"metadata": {}, "items": self.list(path, label_selector)}
                return super().request(method, path, body, label_selector, **more)

        self.cluster = Cluster
        policy = drain_policy.DrainPolicy.of(None, {"timeout": 300, "force": True}, {"timeout": 300, "force": True})
        self.pods = lambda cluster, beat, say: node_drain.Drain(cluster, "npu-a", policy, beat, say, clock)
        go_down = self.host.go_down

        def cut_off():
            self.cut_off += sorted(self.objects)
            go_down()

        self.host.go_down = cut_off

    def evict(self, name):
        self.evicted.append(name)
        gone = self.objects.pop(name)
        if self.comes_back.get(name):
            self.comes_back[name] -= 1
            number = len(self.evicted)
            back = copy.deepcopy(gone)
            back["metadata"]["uid"] = "uid-%s-%d" % (name, number)
            if self.after is None:
                self.waiting.append(lambda: self.objects.update({name: back}))
            else:
                self.world.clock.at(self.after, lambda: self.objects.update({name: back}))


def test_a_pod_that_comes_back_while_others_end_is_evicted_again():
    bench = Returns(["train-0", "db"], {"train-0": 1})
    end = bench.evict

    def slow(name):
        if name == "db" and "db" not in bench.evicted:
            bench.evicted.append("db")
            bench.objects["db"]["metadata"]["deletionTimestamp"] = "2023-11-14T22:14:00Z"
            bench.world.clock.at(40, lambda: bench.objects.pop("db"))
            return
        end(name)

    bench.evict = slow
    assert bench.run()["outcome"] == "done"
    assert bench.evicted == ["train-0", "db", "train-0"] and bench.cut_off == []
    bench.assert_upgraded()


def test_a_pod_that_came_while_nobody_was_there():
    """The run that emptied the node died before its intent; hours later another one goes on."""
    bench = Returns(["train-0"])
    assert bench.run(until="reboot")["outcome"] == "under-way"
    bench.wait(7200)
    bench.objects.update({"train-1": pod("train-1", node="npu-a", npus=8), "web": pod("web", node="npu-a")})
    assert bench.run(run="run-2")["outcome"] == "done"
    assert sorted(bench.evicted) == ["train-0", "train-1", "web"] and bench.cut_off == []
    bench.assert_upgraded()


def test_a_pod_that_always_comes_back_is_named():
    bench = Returns(["train-0"], {"train-0": 99}, after=None)
    outcome = bench.run()
    assert outcome["outcome"] == "deferred"
    assert "the pod train/train-0" in outcome["reason"] and "came back" in outcome["reason"]
    assert [blocker["kind"] for blocker in outcome["blockers"]] == ["returning"]
    assert bench.host.boots == 0 and not bench.cordoned and len(bench.evicted) < 10
    assert bench.labels[STATE] == "upgrade-required" and bench.labels[COMPONENTS] == "enabled"


def test_a_pod_that_came_while_the_host_was_validated_is_evicted_before_it_goes_back():
    bench = Returns([])
    validate = bench.host.validate

    def invalid(version):
        if version == "25.5.0":
            bench.objects["train-9"] = pod("train-9", node="npu-a", npus=8)
            return {"valid": False, "checks": [], "msg": "chip 3 is missing"}
        return validate(version)

    bench.host.validate = invalid
    assert bench.run()["outcome"] == "failed"
    assert bench.host.boots == 2 and bench.evicted == ["train-9"] and bench.cut_off == []


def test_what_cannot_end_does_not_keep_a_recovery_from_its_reboot():
    """Its processes hang in the driver that does not answer."""
    bench = Returns(["train-0"])
    clock = bench.world.clock
    bench.objects["train-0"]["metadata"]["deletionTimestamp"] = "2023-11-14T22:14:00Z"
    drain = node_drain.Drain(
        bench.cluster(bench.world),
        "npu-a",
        drain_policy.DrainPolicy.of(),
        clock=clock,
        leave_stuck=True,
    )
    assert drain.evict_returned(3) == 0
    with pytest.raises(pod_blocker.Blocked):
        node_drain.Drain(bench.cluster(bench.world), "npu-a", drain_policy.DrainPolicy.of(), clock=clock).evict_returned(3)
