# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout promises, for molecule/upgrade: judged by an observer that watched it from outside."""

from __future__ import annotations

import os
import pathlib

import pytest

from support.lab.observe import Recorded, end
from support.lab.observer import STATE
from support.lab.rollout import NPU_NODES, OTHER, proof, version_of
from support.lab.workloads import SCENARIO, SCENARIO_WORKLOADS, Team


@pytest.fixture(scope="module")
def directory() -> pathlib.Path:
    return pathlib.Path(os.environ["NPU_OBSERVED"])


@pytest.fixture(scope="module")
def observed(directory) -> Recorded:
    return end(directory)


@pytest.fixture(scope="module")
def version(directory) -> str:
    return (directory / "version").read_text(encoding="utf-8")


def test_every_promise_was_kept(lab, observed, version):
    """One node at a time, one reboot each, no gap in what was seen, nothing left behind."""
    assert proof(lab, observed, dict.fromkeys(NPU_NODES, 1), version, max_parallel=1) == []


def test_every_node_has_the_driver(lab, version):
    assert {node: version_of(lab, node) for node in NPU_NODES} == dict.fromkeys(NPU_NODES, version)


def test_every_node_was_labelled_before_the_first_cordon(observed):
    """A run that is killed after one of a hundred nodes must not look finished."""
    labelled = set()
    for sight in observed.timeline:
        if sight.kind == "node" and STATE in sight.labels:
            labelled.add(sight.name)
        if sight.kind == "node" and sight.cordoned:
            assert labelled == set(NPU_NODES)
            return
    pytest.fail("no node was cordoned")


def test_the_conditions_of_each_node_told_what_was_done(observed):
    """For other controllers, which know nothing of labels of ours."""
    wanted = [
        ["MaintenancePlanned"],
        ["MaintenanceInProgress"],
        ["DrainInProgress", "MaintenanceInProgress"],
        ["Drained", "MaintenanceInProgress"],
        [],
    ]
    for node in NPU_NODES:
        told = [sorted(sight.conditions) for sight in observed.timeline if sight.kind == "node" and sight.name == node]
        changes = [now for before, now in zip([None, *told], told) if now != before]
        assert changes[-len(wanted) :] == wanted, node


def test_the_users_own_tasks_ran_in_their_place(directory, version):
    """Before the cordon, and once the new driver was validated, before the node got work again; once each."""
    lines = (directory / "hooks").read_text(encoding="utf-8").splitlines()
    assert lines == [line for node in NPU_NODES for line in (f"{node} schedulable {OTHER[version]}", f"{node} cordoned {version}")]


def test_the_node_without_a_chip_was_left_alone(observed):
    for sight in observed.timeline:
        if sight.name == "cpu-a":
            assert not sight.cordoned and not sight.record and STATE not in sight.labels


@pytest.mark.parametrize("name", SCENARIO_WORKLOADS)
def test_workloads_are_back(lab, name):
    Team(lab, SCENARIO).wait_available(name, SCENARIO_WORKLOADS[name])
