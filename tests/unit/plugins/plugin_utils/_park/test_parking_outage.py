# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an outage costs that ends no request: it is waited for once, not for each workload."""

from __future__ import annotations

import json

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import client as kube_client
from ansible_collections.npuops.ascend.plugins.plugin_utils._kube import retry as kube_retry
from ansible_collections.npuops.ascend.plugins.plugin_utils._park import parking, parking_mark, workload_kinds

from support.fleet.fake_fleet import Clock

DEPLOYMENT = next(kind for kind in workload_kinds.BUILT_IN if kind.name == "Deployment")
OUTAGES = [kube_client.TooManyRequests("429"), kube_client.Unreachable("no answer", "timed out")]


class Down:
    """A Cluster that refuses everything."""

    def __init__(self, problem):
        self._problem, self.without_retries = problem, self

    def get(self, *_arguments, **_options):
        raise self._problem

    merge_patch = request = get


def workload(name, parked):
    mark = {"run": "r", "since": "2026-11-21T12:00:00Z", "uid": name, "restore": {"spec": {"replicas": 3}}}
    metadata = {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"}
    if parked:
        metadata |= {"labels": {parking_mark.MARK: "true"}, "annotations": {parking_mark.MARK: json.dumps(mark)}}
    return workload_kinds.Workload(DEPLOYMENT, {"metadata": metadata, "spec": {"replicas": 0 if parked else 3}})


@pytest.fixture
def made():
    """made(problem): (Parking, its clock)."""

    def make(problem):
        clock = Clock()
        return parking.Parking(kube_retry.RetryingCluster(Down(problem), lambda text: None, clock), "r", 1.7e9), clock

    return make


@pytest.mark.parametrize("problem", OUTAGES)
def test_restoring(made, problem):
    parked, clock = made(problem)
    began = clock.monotonic()
    parked.restore([workload("w%d" % number, True) for number in range(10)])
    assert len(parked.outcome.left) == 10 and clock.monotonic() - began < 1000


@pytest.mark.parametrize("problem", OUTAGES)
def test_parking(made, problem):
    parked, clock = made(problem)
    began = clock.monotonic()
    with pytest.raises(NpuError):
        parked.park([workload("w%d" % number, False) for number in range(10)])
    assert clock.monotonic() - began < 1000
