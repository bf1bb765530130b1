# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest
from ansible_collections.npuops.ascend.plugins.plugin_utils._record import run_liveness

from support.fleet.fake_fleet import Clock

LEASES = "/apis/coordination.k8s.io/v1/namespaces/npu-operator/leases"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def life(api, cluster, clock):
    api.objects[LEASES] = {}
    return lambda run="run-1": run_liveness.Life(cluster, "npu-operator", run, clock)


def writes(api):
    return sum(method in ("PATCH", "POST") for method, _path in api.requests)


@pytest.mark.parametrize("run", ["awx-812", "20261121T174346Z-0c1f2e", "by hand", "x" * 300, "../../nodes", "-", "a/b"])
def test_any_name_of_a_run_makes_an_annotation(api, life, run):
    life(run).begin()
    (key,) = life().signs()
    assert re.fullmatch(r"npuops\.ascend/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", key)
    life(run).end()
    assert life().signs() == {}


def test_many_workers_of_one_run_renew_one_sign(api, life, clock):
    life().begin()
    workers = [life() for _number in range(30)]
    before, signs = writes(api), set()
    for _second in range(120):
        clock.sleep(1)
        for worker in workers:
            worker.beat()
        signs.update(life().signs().values())
    assert 6 <= len(signs) and writes(api) - before <= 20


def test_who_is_kept_waiting_by_a_host_shows_that_the_run_lives(life, clock):
    """Another worker of the run renewed the sign last, and is done; this one comes here once a minute."""
    life().begin()
    done, waits = life(), life()
    clock.sleep(15)
    waits.beat()
    done.beat()
    clock.sleep(11)
    done.beat()
    signs = life().signs()
    clock.sleep(51)
    waits.beat()
    assert life().signs() != signs


def test_a_server_that_is_away_ends_nobody(api, life, clock):
    mine = life()
    mine.begin()
    path = LEASES + "/npu-maintenance"
    api.faults.update({("GET", path): (503, "away"), ("PATCH", path): (503, "away")})
    clock.sleep(60)
    mine.beat()
    api.faults.clear()
    before = life().signs()
    for _time in range(2):
        clock.sleep(20)
        mine.beat()
    assert life().signs() != before


def test_other_runs_keep_their_signs(api, life):
    life("run-1").begin()
    life("run-2").begin()
    life("run-1").end(["run-3"])
    assert list(life().signs()) == ["npuops.ascend/parked-by.run-2"]


def test_one_without_any_sign_is_dead_at_once(api, cluster, life, clock):
    life("run-2").begin()
    started = clock.now()
    assert run_liveness.living(cluster, {"run-3"}, life(), 90, clock, print) == set()
    assert clock.now() == started
    assert run_liveness.living(cluster, {"run-2", "run-3"}, life(), 90, clock, print) == set()
    assert 90 <= clock.now() - started < 100
