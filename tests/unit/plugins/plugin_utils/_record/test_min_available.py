# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.npuops.ascend.plugins.module_utils._host.errors import NpuError
from ansible_collections.npuops.ascend.plugins.plugin_utils._record.min_available import MinAvailable

from support.kube.stub import node

A2, OTHER = "huawei.com/Ascend910", "huawei.com/Ascend310P"
NAMES = ("a", "b", "c")
SHORT = "without it, 16 huawei.com/Ascend910 would be allocatable, and npu_upgrade_min_available asks for 17"


def fleet(**changed):
    return {name: changed.get(name) or node(name, allocatable={A2: "8"}) for name in NAMES}


def short(wanted, nodes=None, name="a", away=()):
    return MinAvailable({A2: wanted}).shortage(nodes or fleet(), name, away)


@pytest.mark.parametrize(("wanted", "away", "told"), [(16, (), None), (17, (), SHORT), (8, ("b",), None), (9, ("b",), "8 huawei")])
def test_what_the_others_offer_has_to_be_enough(wanted, away, told):
    found = short(wanted, away=away)
    assert found is None if told is None else told in found


@pytest.mark.parametrize(
    "changed",
    [
        {"unschedulable": True},
        {"ready": False},
        {"annotations": {"npuops.ascend/wedged": "{}"}},
    ],
)
def test_a_node_that_serves_no_pods(changed):
    """It is nothing that remains, and its own maintenance takes nothing away."""
    gone = node("b", allocatable={A2: "8"}, **changed)
    assert short(9, fleet(b=gone)) and short(8, fleet(b=gone)) is None
    assert short(1000, fleet(b=gone), name="b") is None


def test_a_node_takes_nothing_of_what_it_does_not_offer():
    assert short(1000, fleet(a=node("a", allocatable={OTHER: "4"}))) is None
    assert short(1000, fleet(a=node("a", allocatable={A2: "0"}))) is None
    assert short(1000, name="of no chip") is None
    assert MinAvailable({OTHER: 4, A2: 17}).shortage(fleet(), "a", ()) == SHORT


@pytest.mark.parametrize(("wanted", "maximum", "number"), [(0, 0, 3), (8, 0, 2), (8, 1, 1), (9, 5, 1), (100, 5, 1)])
def test_how_many_at_once(wanted, maximum, number):
    assert MinAvailable({A2: wanted}).at_once(fleet(), NAMES, maximum) == number


def test_what_can_never_be():
    nodes = fleet(c=node("c", allocatable={A2: "8"}, ready=False))
    assert MinAvailable({A2: 16}).impossible(nodes, NAMES) == []
    (told,) = MinAvailable({A2: 17}).impossible(nodes, NAMES)
    assert told == (
        "npu_upgrade_min_available asks for 17 huawei.com/Ascend910, and all nodes together offer 24, so the maintenance of no node"
        " could begin. Lower it"
    )
    (told,) = MinAvailable({"huawei.com/Ascend911": 8}).impossible(nodes, NAMES)
    assert told == "npu_upgrade_min_available names huawei.com/Ascend911, which no NPU node of the cluster offers. Correct it"
    assert MinAvailable({A2: 24}).impossible(nodes, []) == []


@pytest.mark.parametrize("wanted", [{A2: -1}, {A2: "many"}, {A2: True}, {A2: 1.5}, {A2: None}, {"": 1}, {7: 1}])
def test_what_it_may_not_be(wanted):
    with pytest.raises(NpuError, match="npu_upgrade_min_available is not valid: .* such as huawei.com/Ascend910: 64"):
        MinAvailable(wanted)


def test_a_number_may_be_text():
    assert short("16") is None and short(" 17") == SHORT
    assert not MinAvailable() and not MinAvailable({})
