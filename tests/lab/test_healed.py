# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a recovery promises, for molecule/heal: judged by an observer that watched it from outside."""

from __future__ import annotations

import json
import os
import pathlib

import pytest

from support.lab.observe import Recorded, end
from support.lab.observer import APPROVAL, LAST
from support.lab.rollout import proof
from support.lab.workloads import SCENARIO, SCENARIO_WORKLOADS, Team

WEDGED = "npuops.ascend/wedged"


@pytest.fixture(scope="module")
def observed(lab) -> Recorded:
    lab.wait_for(lambda: WEDGED not in lab.node("npu-a")["metadata"].get("annotations", {}), 60, "the agent has seen it recovered")
    return end(pathlib.Path(os.environ["NPU_OBSERVED"]))


def test_every_promise_was_kept(lab, observed):
    """One reboot of one node, no gap in what was seen, nothing left behind."""
    assert proof(lab, observed, {"npu-a": 1}) == []


def test_it_was_asked_for_first(observed):
    """Wedged, told, approved, cordoned: in this order."""
    seen = []
    for sight in observed.timeline:
        if sight.kind != "node" or sight.name != "npu-a":
            continue
        for what, there in (
            ("wedged", WEDGED in sight.annotations),
            ("approved", APPROVAL in sight.annotations),
            ("cordoned", sight.cordoned),
        ):
            if there and what not in seen:
                seen.append(what)
    assert seen == ["wedged", "approved", "cordoned"]


def test_the_record_says_why(observed):
    last = json.loads(observed.now()["npu-a"].annotations[LAST])
    assert last["reason"] == "recovery" and last["outcome"] == "success" and len(last["recoveries"]) == 1
    assert last["approval"]["time"] and last["to"] == {}


@pytest.mark.parametrize("name", SCENARIO_WORKLOADS)
def test_workloads_are_back(lab, name):
    Team(lab, SCENARIO).wait_available(name, SCENARIO_WORKLOADS[name])


def test_there_is_nothing_more_to_do(lab):
    text = lab.playbook("heal").stdout
    assert "None of 3 NPU nodes is wedged" in text, text
    assert "changed=0" in text and "changed=1" not in text, text
