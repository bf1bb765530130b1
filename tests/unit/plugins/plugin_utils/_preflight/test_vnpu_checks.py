# Copyright (c) 2026, npuops.ascend maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight makes of npu_vnpu: of a host with four 310P, unless a test says otherwise."""

from __future__ import annotations

import pytest

from support.fleet.preflight import cluster_nodes, facts, host, only

HALVES = {"vir04": 1, "vir04_3c": 1}
ONE = [{"chips": [1], "templates": {"vir04": 1}}]
DUO = "huawei.com/Ascend310P"
SERVES = {"npuops.ascend/components": "enabled"}
CHANGE = {"npuops.ascend/vnpu-change": "2026-11-24T10:00:00Z"}
LOADED = {"driver": {"loaded": True, "managed": True}, "chip_numbers": [0, 1, 2, 3]}


def vnpu(chip, number, template):
    return {"chip": chip, "id": number, "template": template}


def plan(changed=True, problem=None):
    return dict(LOADED, vnpu_plan={"changed": changed, "target": [], "destroy": [], "create": [], "problem": problem})


def judged(wanted=None, fact=None, node=None, **options):
    config = {} if wanted is None else {"vnpu": wanted}
    if "share_count" in options:
        config["device_plugin_share_count"] = options["share_count"]
    entry = host(fact=facts("d500", "boot-a", **(fact or {})), **config)
    return only(entry, nodes=cluster_nodes("a", **(node or {})), **options)


def asked(wanted, **arguments):
    verdict = judged(wanted, **arguments)
    assert verdict.reasons == []
    return verdict.result()


def test_without_the_setting_they_stay():
    there = [vnpu(0, 100, "vir04")]
    for fact in ({}, {"vnpus": there}):
        verdict = judged(fact=fact)
        assert (verdict.reasons, verdict.notes) == ([], [])
        assert (verdict.result()["vnpu_layout"], verdict.vnpu_pause) == (None, False)
    assert judged(fact={"vnpus": there}).result()["offers"] == {DUO: 3, DUO + "-4c": 1}


def test_a_first_install_divides_the_chips_and_takes_nothing_out_of_service():
    result = asked(HALVES)
    assert result["vnpu_layout"] == [{"chips": None, "templates": HALVES}] and not result["vnpu_pause"]
    assert result["offers"] == {DUO: 0, DUO + "-4c": 4, DUO + "-4c.3cpu": 4}
    assert result["notes"] == [
        "its virtual NPUs change: 4 vir04, 4 vir04_3c on chip 0, 1, 2, 3 instead of whole chips",
        "whether its chips can be divided so, npu-smi says when the driver is loaded",
    ]


def test_chips_are_not_divided_while_the_device_plugin_of_others_offers_them():
    """An adoption runs install first, and moves the nodes after that; nothing of their pods may be touched."""

    def pods(names):
        raise AssertionError(names)

    result = asked(ONE, fact=plan(), adopting=True, npu_users=pods)
    assert (result["components"], result["vnpu_layout"], result["vnpu_pause"], result["offers"]) == ("held", None, False, {DUO: 4})
    assert result["notes"] == [
        "its virtual NPUs change with the first install after the adoption: 1 vir04 on chip 1 instead of whole chips"
    ]
    moved = {"labels": SERVES}
    assert asked(ONE, fact=plan(), node=moved, adopting=True)["vnpu_pause"], "a node that has ours already"


def test_a_node_in_service_leaves_it_meanwhile():
    result = asked(ONE, fact=plan(), node={"labels": SERVES})
    assert result["vnpu_pause"] and result["offers"] == {DUO: 3, DUO + "-4c": 1}
    assert result["notes"] == ["its virtual NPUs change: 1 vir04 on chip 1 instead of whole chips"]


def test_whole_chips_again():
    there = [vnpu(1, 116, "vir04")]
    result = asked([], fact=dict(plan(), vnpus=there), node={"labels": SERVES})
    assert (result["vnpu_layout"], result["vnpu_pause"], result["offers"]) == ([], True, {DUO: 4})


def test_what_is_there_already_is_left_alone():
    there = [vnpu(1, 116, "vir04")]
    for fact in (dict(plan(changed=False), vnpus=there), {"vnpus": there}):
        result = asked(ONE, fact=fact, node={"labels": SERVES})
        assert (result["vnpu_layout"], result["vnpu_pause"], result["notes"]) == (None, False, [])
        assert result["offers"] == {DUO: 3, DUO + "-4c": 1}


def test_pods_that_use_npus_are_named():
    def pods(names):
        assert names == ["a"]
        return {"a": ["team/train-0", "team/train-1"]}

    (reason,) = judged(ONE, fact=plan(), node={"labels": SERVES}, npu_users=pods).reasons
    assert reason == (
        "its virtual NPUs are to change, and pods use its NPUs: team/train-0, team/train-1. Let them end, or kubectl cordon a &&"
        " kubectl drain a --ignore-daemonsets --delete-emptydir-data; then run this again, and kubectl uncordon a"
    )


def test_pods_are_looked_for_only_where_something_changes():
    def pods(names):
        raise AssertionError(names)

    asked(ONE, npu_users=pods)
    asked(ONE, fact=dict(plan(changed=False), vnpus=[vnpu(1, 116, "vir04")]), node={"labels": SERVES}, npu_users=pods)
    judged({"vir04": 9}, node={"labels": SERVES}, npu_users=pods)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"vir12_3c_32g": 1}, "npu_vnpu: layout, entry 1: the 310P has no template vir12_3c_32g; it has vir01, vir02"),
        ({"vir04": 9}, "npu_vnpu: layout, entry 1: the number of vir04 must be between 1 and 8, not 9"),
        ([{"chips": [0], "templates": HALVES}, {"chips": [0], "templates": HALVES}], "entry 2: chip 0 is in an earlier entry"),
        ("half", "npu_vnpu: half is no layout: it must be a mapping of templates"),
        (7, "npu_vnpu: 7 is no layout"),
        ([{"template": {"vir04": 1}}], "npu_vnpu: entry 1: {'template': {'vir04': 1}} is not a mapping with templates and chips"),
    ],
)
def test_what_cannot_be(wanted, reason):
    (told,) = judged(wanted).reasons
    assert reason in told


def test_a_chip_that_is_not_there():
    wanted = [{"chips": [4], "templates": {"vir04": 1}}]
    (told,) = judged(wanted, fact=plan()).reasons
    assert "entry 1: this host has no chip 4; its chips: 0, 1, 2, 3" in told
    # Only the driver knows the numbers.
    assert asked(wanted)["vnpu_layout"] == wanted


def test_chips_that_cannot_be_divided():
    (told,) = only(host(fact=facts("d100", "boot-a"), vnpu={"vir04": 1})).reasons
    assert "npu_vnpu: The 310 cannot be divided into virtual NPUs. Chips that can: 310P, 910A, 910B, 910C" in told


def test_what_the_host_says_against_it():
    (told,) = judged(HALVES, fact=plan(problem="This host has virtual NPUs that are not in its layout")).reasons
    assert told == "npu_vnpu: This host has virtual NPUs that are not in its layout"


@pytest.mark.parametrize("there", [{"fact": {"vnpus": [vnpu(0, 100, "vir04")]}}, {"wanted": HALVES}])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"share_count": 4},
            "npu_device_plugin_share_count is 4: the device plugin would not start. Set it to 1, or npu_vnpu to []",
        ),
        ({"hot_reset": "inference"}, "npu_device_plugin_hot_reset is inference: the driver does not reset such chips"),
    ],
)
def test_what_excludes_them(there, options, told):
    (reason,) = judged(**there, **options).reasons
    assert told in reason
    assert judged(**options).reasons == []
    # They go, so that nothing is excluded any more.
    assert judged(wanted=[], fact=dict(plan(), vnpus=[vnpu(0, 100, "vir04")]), **options).reasons == []


@pytest.mark.parametrize("annotations", [{}, CHANGE])
def test_a_node_that_somebody_else_keeps_out_of_service(annotations):
    kept = {"npuops.ascend/maintenance": "{}"} if annotations else {}
    result = asked(
        ONE, fact=plan(), node={"labels": {"npuops.ascend/components": "paused"}, "annotations": {**annotations, **kept}}
    )
    assert (result["vnpu_layout"], result["vnpu_pause"], result["offers"]) == (None, False, {DUO: 4})
    assert result["notes"][-1] == "its virtual NPUs would change: 1 vir04 on chip 1 instead of whole chips"


def test_what_an_earlier_run_could_not_create_is_still_wanted():
    there = {"vnpus": [vnpu(0, 100, "vir04")], "vnpus_missing": [vnpu(1, 116, "vir04")], **LOADED}
    node = {"labels": {"npuops.ascend/components": "paused"}, "annotations": CHANGE}
    result = asked(None, fact=there, node=node)
    assert [entry["chips"] for entry in result["vnpu_layout"]] == [[0], [1]]
    assert "2 vir04 on chip 0, 1 instead of 1 vir04 on chip 0" in result["notes"][0]


@pytest.mark.parametrize("wanted", [ONE, None])
def test_a_run_that_was_killed_is_gone_on_with(wanted):
    """Whatever the setting says by now, and although nothing is left to be changed on the host."""
    there = {"vnpus": [vnpu(1, 116, "vir04")], **(plan(changed=False) if wanted else LOADED)}
    node = {"labels": {"npuops.ascend/components": "paused"}, "annotations": CHANGE}
    result = asked(wanted, fact=there, node=node)
    assert (result["vnpu_layout"][0]["templates"], result["vnpu_pause"]) == ({"vir04": 1}, True)
    assert result["components"] == "enabled" and "goes on with the change" in result["notes"][0]
