# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import drain_policy, node_drain

from support.kube.eviction_stub import EvictionApi


@pytest.fixture
def api():
    with EvictionApi() as server:
        yield server


class Time:
    """A clock that only moves during a sleep. ``events``: second -> function."""

    def __init__(self):
        self.now, self.events, self.beats, self.said = 0.0, {}, [], []

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)
        for when in sorted(self.events):
            if when <= self.now:
                self.events.pop(when)()

    def monotonic(self):
        return self.now

    def drain(self, cluster, node="a", leave_stuck=False, namespace="npu-operator", **variables):
        return node_drain.Drain(
            cluster,
            node,
            drain_policy.DrainPolicy.of(**variables),
            beat=lambda: self.beats.append(self.now),
            say=self.said.append,
            clock=self,
            leave_stuck=leave_stuck,
            namespace=namespace,
        )


@pytest.fixture
def time():
    return Time()
