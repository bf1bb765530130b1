# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's maintenance with the real drain: pods, budgets and Events over HTTP, Node, Lease and host in memory."""

from __future__ import annotations

from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, node_drain

from support.fleet.fake_fleet import FakeCluster
from support.fleet.maintenance_bench import Bench


class Mixed(FakeCluster):
    """Node and Lease in memory, everything else from the API server ``remote``."""

    remote = None

    def _here(self, path):
        return path.startswith(("/api/v1/nodes", "/apis/coordination.k8s.io/"))

    def get(self, path):
        return super().get(path) if self._here(path) else self.remote.get(path)

    def request(self, method, path, body=None, **params):
        if self._here(path):
            return super().request(method, path, body, **params)
        return self.remote.request(method, path, body=body, **params)

    def pieces(self, path, **params):
        return self.remote.pieces(path, **params)

    def merge_patch(self, path, body, **params):
        here = super() if self._here(path) else self.remote
        return here.merge_patch(path, body, **params)


def bench_with_drain(cluster, made=None, **settings):
    """A Bench, or ``made``, whose pods are those of the Cluster ``cluster`` on npu-a, drained for real."""

    class Here(Mixed):
        remote = cluster

    made = made or Bench()
    made.cluster = Here
    clock = made.world.clock
    policy = drain_policy.DrainPolicy.of(drain=dict({"timeout": 120}, **settings))
    made.pods = lambda patient, beat, say: node_drain.Drain(patient, "npu-a", policy, beat, say, clock)
    return made
