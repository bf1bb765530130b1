# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._drain import disruption_budgets
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import blocker as pod_blocker
from ansible_collections.npuops.ascend.plugins.plugin_utils._pods import pod_view

from support.kube.eviction_stub import budget, pod


@pytest.mark.parametrize(
    ("ready", "phase", "spec", "blocked"),
    [
        (True, "Running", {}, True),
        (False, "Running", {}, False),  # enough others are healthy
        (False, "Running", {"desired": 3}, True),
        (False, "Running", {"desired": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, False),
        (False, "Pending", {"desired": 3}, False),
    ],
)
def test_unhealthy_pods_under_a_budget(ready, phase, spec, blocked):
    budgets = disruption_budgets.Budgets([budget(allowed=0, **spec)])
    assert bool(budgets.objection(pod_view.Pod(pod("x", ready=ready, phase=phase)))) is blocked


def test_many_pods_with_one_cause_are_told_together():
    items = [pod_view.Pod(pod("web-%d" % number)) for number in range(5)]
    budgets = disruption_budgets.Budgets([budget()])
    text = pod_blocker.told([budgets.objection(item) for item in items])
    assert text.startswith(
        "the pods train/web-0, train/web-1, train/web-2 and 2 more (ReplicaSet train/web-5d4f) cannot be evicted"
    )
